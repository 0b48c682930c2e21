#pragma once

#include <jansson.h>

#include "client/cmd.h"
#include "common/plan/plan.h"

/* The text of a file ("-": standard input), which the caller frees. ERR_USAGE if it is blank. */
int document_read(const char *path, char **text, size_t *bytes, struct error *e);

/* Reads a file ("-": standard input), applies --set, makes its paths absolute and checks it.
 * Returns 0, or the exit code with *spec NULL and all problems printed. The caller destroys *spec.
 */
int document_open(const char *path, const struct cmd_args *args, struct job_spec **spec);

/* Sets one KEY=VALUE, the key as lr.base or /lr/base. A VALUE that is not JSON is a string. Keys
 * and values are checked by the table of job options: ERR_USAGE, with the nearest valid key. */
int document_set(json_t *document, const char *text, struct error *e);

int document_set_all(json_t *document, const struct cmd_args *args, struct error *e);

/* Prints the problems as the daemon's answer would be printed; returns the exit code. */
int document_refuse(const struct problems *problems);

/* --train-images or --eval-images; 0: not given. */
int document_images(const struct cmd_args *args, const char *option, int64_t *images,
                    struct error *e);

/* Sets data.train_images and data.eval_images by these options. */
int document_state_images(struct job_spec *spec, const struct cmd_args *args, struct error *e);

/* Counts the images. Training images are required; if evaluation data is not on this machine, that
 * is only added to *remarks. */
int document_count(struct job_spec *spec, struct plan_inputs *inputs, json_t *remarks,
                   struct error *e);

/* Makes paths absolute that are relative to the current folder, as the daemon requires. *changed:
 * there were some. */
int document_paths_absolute(json_t *document, bool *changed, struct error *e);
int sweep_paths_absolute(json_t *sweep, bool *changed, struct error *e);
