/* Derives from the data what a job leaves open: keys whose default depends on the data
 * (man/train-job.5, Defaults from the data), and the numbers of images for the plan. */
#pragma once

#include <jansson.h>

#include "common/dataset/dataset.h"
#include "common/error.h"
#include "common/job/job_spec.h"
#include "common/plan/plan.h"
#include "common/problem.h"

/* Sets keys in a document (an object) that are set neither in it nor in its preset. Returns
 * explanations for the plan. */
json_t *job_data_complete(json_t *document);

/* Calls job_spec_read with presets for the completed document. */
struct job_spec *job_data_read(json_t *document, struct problems *problems);

struct job_spec *job_data_load(const char *path, struct error *e);

/* Number of ImageNet-1k's training images, the default of data.train_images */
#define SYNTHETIC_TRAIN_IMAGES 1281167
/* Number of ImageNet-1k's validation images; never more than data.train_images */
#define SYNTHETIC_EVAL_IMAGES 50000

/* Counts the images of data sets that the caller has not opened, unless data.train_images and
 * data.eval_images are given. Errors as for dataset_count_parts; *pointer is then the key. */
int plan_inputs_count(const struct job_spec *spec, struct plan_inputs *inputs, const char **pointer,
                      struct error *e);

/* Adds a problem for each folder that cannot be opened or is empty; checks those that must be
 * counted, and with will_run_here all. Ignores keys that already have a problem. */
void plan_inputs_look(const struct job_spec *spec, bool will_run_here, struct problems *problems);

/* With data.locality "node", divides inputs->train_images, if known, among the nodes. */
void plan_inputs_share_out(const struct job_spec *spec, struct plan_inputs *inputs);

struct plan_counts {
    struct dataset_counts train; /* of all nodes together */
    int64_t eval;
};

/* Sets the numbers from counts of open data sets (synthetic or none: 0). Returns ERR_INTERNAL if a
 * required data set is not open. */
int plan_inputs_of_counts(const struct job_spec *spec, const struct plan_counts *counts,
                          struct plan_inputs *inputs, struct error *e);
