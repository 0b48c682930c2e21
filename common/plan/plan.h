/* The plan: what a job document means on data of a known size. Pure: no I/O, clock, MPI or SQLite.
 * Daemon, worker and client link this library, so they agree by construction. Formulas and sources:
 * explain.c. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/job/job_spec.h"
#include "common/plan/lr_schedule.h"
#include "common/plan/predict.h"
#include "common/problem.h"

struct plan_workers;

#define PLAN_LONG_SECONDS 86400 /* a longer run is the first warning, and asked about */

struct plan_inputs {
    struct plan_data {
        int64_t classes;   /* that the data have (of training, if there are any); 0: not known */
        int width, height; /* of the first training image; 0: not known */
        bool evaluates_training;              /* data.eval holds the training images */
        char other_classes[ERROR_TEXT_BYTES]; /* what is wrong with the classes of data.eval; "" */
        char remarks[2 * ERROR_TEXT_BYTES];   /* lines: what should be known of the data; "" */
    } data;
    int64_t train_images; /* counted, or data.train_images; must be >= 1 when mode is train */
    int64_t eval_images;  /* 0: no evaluation data, or not counted */
    int64_t node_images_least, node_images_most; /* data.locality node: of train_images, on the
                                                    nodes with the fewest and the most; else 0 */
    int64_t node_cores; /* or with cluster.smt its hardware threads: threads_per_worker is a share
                           of these; 0: it was stated, or is not known yet */
    const char *cores_source;           /* where they are from */
    const struct plan_workers *workers; /* that were chosen for the document; NULL: it says them */
    bool emulates_bf16;                 /* the processors have no instructions for it */
    struct plan_speed speed;            /* measured with this model and size; zeroed: not known */
    const struct plan_network *network; /* NULL: plan_network_default */
    struct plan_prices prices;          /* zeroed: not known */
    double node_share;                  /* of each node, that the job takes; 0: all of it */
    struct plan_band epochs; /* to predict the time of, instead of the job's; value 0: the job's */
};

struct plan_phase {
    int64_t step;        /* the first, of the schedule */
    double epoch;        /* at which it begins */
    int64_t first_image; /* counted over all epochs */
    int64_t size;        /* of the images; the largest if there is one phase only */
    int64_t batch_per_worker, global_batch;
    int64_t steps_per_epoch;
    double steps_in_epoch;
};

struct plan_size {
    int64_t step, size;
};

struct plan {
    enum job_mode mode;   /* eval: the numbers of training are 0, and null in the JSON */
    int64_t train_images; /* N */
    int64_t eval_images;
    int64_t world_size;      /* ranks */
    int64_t batch_per_node;  /* workers_per_node x batch_per_worker */
    int64_t global_batch;    /* B = nodes x batch_per_node x accumulate_steps; with several phases
                                this, steps per epoch and the rates are those of the last */
    int64_t steps_per_epoch; /* floor(N / B); data.locality node: of the node with the fewest */
    bool exact;              /* steps_rounding: epochs follow each other within a step */
    double steps_in_epoch;   /* steps_per_epoch; exact: N / B */
    int64_t node_images_least, node_images_most; /* as in the inputs */
    int64_t warmup_steps;
    int64_t train_steps;
    int64_t dropped_images_per_epoch; /* N - steps_per_epoch x B; exact: 0 */
    struct plan_phase
        phases[JOB_SIZES_MAX + 1];             /* rising; more than one with batch_schedule fill */
    size_t phase_count;                        /* 0: nothing is trained */
    struct plan_size sizes[JOB_SIZES_MAX + 1]; /* rising; the first at step 0 */
    size_t size_count;
    double size_cost; /* arithmetic of an image, mean over the run, by one at model.image_size */
    double step_cost; /* the same of a step, by one of the last batch */
    double peak_lr, start_lr;
    int64_t memory_bytes_per_worker; /* an estimate */
    struct lr_schedule lr;
    struct plan_predicted {
        bool known;
        struct plan_band step_seconds, images_per_sec, ttt_seconds;
        struct plan_band epochs;                /* that ttt_seconds is about */
        struct plan_band node_hours, kwh, cost; /* the last two NAN: not known */
        char currency[16];                      /* of the cost; "": not said */
    } predicted;
    json_t *warnings; /* array of strings */
    json_t *explain;  /* object: key -> {formula, inputs, value, source, meaning, change,
                        note?} */
};

void plan_destroy(struct plan *plan); /* NULL is fine */

/* Images of this size that a worker takes at a time: with batch_schedule fill, as many as fit into
 * the memory of batch_per_worker images of the largest size. */
int64_t plan_batch_of_size(const struct job_spec *spec, int64_t size);

const struct plan_phase *plan_phase_at(const struct plan *plan, int64_t step);
/* One past its last step; INT64_MAX for the last phase. */
int64_t plan_phase_end(const struct plan *plan, size_t i);
double plan_epochs_after(const struct plan *plan, int64_t steps);
double plan_steps_until(const struct plan *plan, double epochs);
int64_t plan_images_of_steps(const struct plan *plan, int64_t from, int64_t to);
/* Images per step, mean over the run; in evaluation global_batch. */
double plan_mean_batch(const struct plan *plan);
/* Whether something done every so many epochs (0: never) is due after these steps. */
bool plan_is_due(const struct plan *plan, double every_epochs, int64_t steps);

/* Arithmetic of an image relative to one of the job's largest size. */
double plan_size_cost(const struct job_spec *spec, int64_t size);

/* Arithmetic of the steps [from, to), in steps of the largest size and last batch. */
double plan_steps_cost(const struct plan *plan, const struct job_spec *spec, int64_t from,
                       int64_t to);

/* Forward passes per evaluated image, in those of an image of the largest size. */
double plan_evaluation_passes(const struct job_spec *spec);

int64_t plan_evaluations(const struct plan *plan, const struct job_spec *spec);

json_t *plan_band_to_json(bool known, const struct plan_band *band);

/* The API's keys: POST /v1/plan, trainctl plan --json, plan.json. */
json_t *plan_to_json(const struct plan *plan);
