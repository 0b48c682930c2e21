/* What a job document leaves to its training data, the one place of these defaults; the rules:
 * man/train-job.5, Defaults from the data. */
#pragma once

#include <jansson.h>

#include "common/dataset/dataset.h"
#include "common/error.h"
#include "common/job/job_spec.h"
#include "common/plan/plan.h"
#include "common/problem.h"

/* Puts into a document (an object) what neither it nor its preset states, and the data here say.
 * Returns what it was: explanations of a plan. */
json_t *job_data_complete(json_t *document);

/* job_spec_read with presets, of the document that this completes. */
struct job_spec *job_data_read(json_t *document, struct problems *problems);

/* The same of a file. NULL with *e filled, if anything is wrong. */
struct job_spec *job_data_load(const char *path, struct error *e);

/* What a plan needs to know of the data: the one place where the sizes of data sets come from. */

/* Synthetic training images: as many as ImageNet-1k has, unless data.train_images differs. */
#define SYNTHETIC_TRAIN_IMAGES 1281167
/* Synthetic evaluation images: never more than data.train_images says of synthetic data. */
#define SYNTHETIC_EVAL_IMAGES 50000

/* Counts what the job names, for those who have not opened it: the daemon and the client.
 * data.train_images and data.eval_images spare the counting: what they state is not opened.
 * ERR_NOT_FOUND and the other errors of dataset_count_parts; *pointer is the key they are about
 * then. */
int plan_inputs_count(const struct job_spec *spec, struct plan_inputs *inputs, const char **pointer,
                      struct error *e);

/* Adds a problem for each folder of the job that cannot be opened or is empty: those that are
 * counted, and with will_run_here the others too. Keys that have a problem already are left out. */
void plan_inputs_look(const struct job_spec *spec, bool will_run_here, struct problems *problems);

/* Where inputs->train_images is known and the data are not looked at: with data.locality node each
 * node has its share of them. */
void plan_inputs_share_out(const struct job_spec *spec, struct plan_inputs *inputs);

/* What open data sets hold: the worker. Synthetic or none: all 0. */
struct plan_counts {
    struct dataset_counts train; /* of all nodes */
    int64_t eval;
};

/* The same from the counts of data sets that are open already. ERR_INTERNAL where one is needed and
 * was not opened. */
int plan_inputs_of_counts(const struct job_spec *spec, const struct plan_counts *counts,
                          struct plan_inputs *inputs, struct error *e);
