/* What a job leaves to its data: keys whose default depends on it (man/train-job.5, Defaults from
 * the data), and the numbers of images that a plan needs. */
#pragma once

#include <jansson.h>

#include "common/dataset/dataset.h"
#include "common/error.h"
#include "common/job/job_spec.h"
#include "common/plan/plan.h"
#include "common/problem.h"

/* Sets keys in a document (an object) that neither it nor its preset states. Returns explanations
 * for the plan. */
json_t *job_data_complete(json_t *document);

/* job_spec_read of the completed document, with presets. */
struct job_spec *job_data_read(json_t *document, struct problems *problems);

struct job_spec *job_data_load(const char *path, struct error *e);

/* ImageNet-1k's, the default of data.train_images. */
#define SYNTHETIC_TRAIN_IMAGES 1281167
/* At most data.train_images of synthetic data. */
#define SYNTHETIC_EVAL_IMAGES 50000

/* Counts the images of data sets that the caller has not opened. Numbers stated by
 * data.train_images and data.eval_images are used instead. Errors as dataset_count_parts; *pointer
 * is the key. */
int plan_inputs_count(const struct job_spec *spec, struct plan_inputs *inputs, const char **pointer,
                      struct error *e);

/* Adds a problem for each folder that cannot be opened or is empty: those that must be counted, and
 * with will_run_here all. Skips keys that have a problem. */
void plan_inputs_look(const struct job_spec *spec, bool will_run_here, struct problems *problems);

/* With data.locality node, divides a known inputs->train_images among the nodes. */
void plan_inputs_share_out(const struct job_spec *spec, struct plan_inputs *inputs);

struct plan_counts {
    struct dataset_counts train; /* of all nodes */
    int64_t eval;
};

/* From counts of open data sets (synthetic or none: 0). ERR_INTERNAL if a needed one is not
 * open. */
int plan_inputs_of_counts(const struct job_spec *spec, const struct plan_counts *counts,
                          struct plan_inputs *inputs, struct error *e);
