#pragma once

#include <jansson.h>

#include "client/cmd.h"
#include "common/plan/plan.h"

/* Reads a file ("-": standard input). The caller frees *text. ERR_USAGE if it is blank. */
int document_read(const char *path, char **text, size_t *bytes, struct error *e);

/* Reads a file ("-": standard input), applies --set, makes its paths absolute and validates it.
 * Returns 0, or the exit code with *spec NULL after printing all problems. The caller destroys
 * *spec. */
int document_open(const char *path, const struct cmd_args *args, struct job_spec **spec);

/* Sets one KEY=VALUE; the key is lr.base or /lr/base. A VALUE that is not JSON is a string. Keys
 * and values are checked against the table of job options: ERR_USAGE, with the most similar key. */
int document_set(json_t *document, const char *text, struct error *e);

int document_set_all(json_t *document, const struct cmd_args *args, struct error *e);

/* Prints the problems in the form of the daemon's answer. Returns the exit code. */
int document_refuse(const struct problems *problems);

/* Gets --train-images or --eval-images; 0: not given. */
int document_images(const struct cmd_args *args, const char *option, int64_t *images,
                    struct error *e);

/* Sets data.train_images and data.eval_images from these options. */
int document_state_images(struct job_spec *spec, const struct cmd_args *args, struct error *e);

/* Counts the images. Training images are required; if evaluation data is not on this machine, only
 * adds a remark to *remarks. */
int document_count(struct job_spec *spec, struct plan_inputs *inputs, json_t *remarks,
                   struct error *e);

/* Makes paths absolute that are relative to the current folder, as the daemon requires. *changed:
 * whether there were any. */
int document_paths_absolute(json_t *document, bool *changed, struct error *e);
int sweep_paths_absolute(json_t *sweep, bool *changed, struct error *e);
