/* A job document of the command line, for commands that need no daemon. */
#pragma once

#include "client/cmd.h"
#include "common/plan/plan.h"
#include "common/plan/workers.h"

/* The text of a document ("-": standard input), which the caller frees; one of blanks alone is
 * refused. */
int document_read(const char *path, char **text, size_t *bytes, struct error *e);

/* Reads a document ("-": standard input), changes it as --set says, makes its paths absolute and
 * checks it. Returns 0, or the exit code with *spec NULL and everything that is wrong printed. The
 * caller destroys *spec. */
int document_open(const char *path, const struct cmd_args *args, struct job_spec **spec);

/* What a document means on this machine: with the workers that the plan chose. */
struct planned {
    struct job_spec *spec;
    struct plan_workers workers;
    struct plan *plan;
};

/* Reads a document and plans it (cmd_plan.c). Returns 0, or the exit code with what is wrong
 * printed. *p is zeroed, and cleared in any case. */
int plan_file(const char *path, const struct cmd_args *args, struct planned *p);
void planned_clear(struct planned *p);
void plan_print_warnings(FILE *out, const struct plan *plan);

/* Prints what is wrong as the daemon's answer would be; returns the exit code. */
int document_refuse(const struct problems *problems);

/* --train-images and --eval-images; 0: not given. */
int document_images(const struct cmd_args *args, const char *option, int64_t *images,
                    struct error *e);

/* The same as data.train_images and data.eval_images of the job. */
int document_state_images(struct job_spec *spec, const struct cmd_args *args, struct error *e);

/* Counts the images. Those for training are needed for a plan; evaluation data that is elsewhere is
 * only mentioned, in *remarks. */
int document_count(struct job_spec *spec, struct plan_inputs *inputs, json_t *remarks,
                   struct error *e);

/* Paths that are relative to the current folder become absolute ones, as the daemon wants them.
 * *changed: there were some. */
int document_paths_absolute(json_t *document, bool *changed, struct error *e);
int sweep_paths_absolute(json_t *sweep, bool *changed, struct error *e);
