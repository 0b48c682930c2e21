/* The plan: what a job document means for data of a known size. Pure functions: no I/O, clock, MPI
 * or SQLite. Daemon, worker and client link this library, so their plans agree. Formulas and
 * sources: explain.c. */
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

#define PLAN_LONG_SECONDS 86400 /* a longer run is the first warning and needs a confirmation */

struct plan_inputs {
    struct plan_data {
        int64_t classes; /* of the training data, if any, else of the evaluation data; 0: unknown */
        int width, height;                    /* of the first training image; 0: unknown */
        bool evaluates_training;              /* data.eval contains the training images */
        char other_classes[ERROR_TEXT_BYTES]; /* problem with the classes of data.eval, or "" */
        char remarks[2 * ERROR_TEXT_BYTES];   /* remarks about the data, one per line, or "" */
    } data;
    int64_t train_images; /* counted, or data.train_images; must be >= 1 if mode is train */
    int64_t eval_images;  /* 0: no evaluation data, or not counted */
    int64_t node_images_least,
        node_images_most; /* with data.locality node, numbers of training images on the nodes with
                             the fewest and the most; else 0 */
    int64_t node_cores; /* or hardware threads with cluster.smt; threads_per_worker is derived from
                           it. 0: threads_per_worker was given, or not known yet */
    const char *cores_source;           /* where node_cores comes from */
    const struct plan_workers *workers; /* chosen by the plan; NULL: given by the document */
    bool emulates_bf16;                 /* the processors have no instructions for bf16 */
    struct plan_speed speed;            /* measured with this model and size; zeroed: unknown */
    const struct plan_network *network; /* NULL: plan_network_default */
    struct plan_prices prices;          /* zeroed: unknown */
    double node_share;                  /* fraction of each node that the job uses; 0: all of it */
    struct plan_band epochs; /* epochs to predict the time for; value 0: those of the job */
};

struct plan_phase {
    int64_t step;        /* first step, in the schedule */
    double epoch;        /* at the first step */
    int64_t first_image; /* position of the first image, counted over all epochs */
    int64_t size;        /* of the images; if there is only one phase, the largest size */
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
    int64_t world_size;      /* number of ranks */
    int64_t batch_per_node;  /* workers_per_node x batch_per_worker */
    int64_t global_batch;    /* B = nodes x batch_per_node x accumulate_steps; with several phases,
                                this, steps per epoch and the rates are those of the last phase */
    int64_t steps_per_epoch; /* floor(N / B); with data.locality node, that of the node with the
                                fewest images */
    bool exact;              /* data.steps_rounding: epochs may end within a step */
    double steps_in_epoch;   /* steps_per_epoch; if exact, N / B */
    int64_t node_images_least, node_images_most; /* same as in the inputs */
    int64_t warmup_steps;
    int64_t train_steps;
    int64_t dropped_images_per_epoch;            /* N - steps_per_epoch x B; if exact, 0 */
    struct plan_phase phases[JOB_SIZES_MAX + 1]; /* ascending; several with batch_schedule fill */
    size_t phase_count;                          /* 0: no training */
    struct plan_size sizes[JOB_SIZES_MAX + 1];   /* ascending; the first at step 0 */
    size_t size_count;
    double size_cost; /* computation per image, averaged over the run, relative to an image of size
                         model.image_size */
    double step_cost; /* computation per step, averaged over the run, relative to a step with the
                         last batch */
    double peak_lr, start_lr;
    int64_t memory_bytes_per_worker; /* estimate */
    struct lr_schedule lr;
    struct plan_predicted {
        bool known;
        struct plan_band step_seconds, images_per_sec, ttt_seconds;
        struct plan_band epochs;                /* epochs until ttt_seconds */
        struct plan_band node_hours, kwh, cost; /* kwh, cost: NAN if unknown */
        char currency[16];                      /* of the cost; "": not configured */
    } predicted;
    json_t *warnings; /* array of strings */
    json_t *explain;  /* object: key -> {formula, inputs, value, source, meaning, change,
                        note?} */
};

void plan_destroy(struct plan *plan); /* accepts NULL */

/* Returns the number of images of this size in a worker's batch. With batch_schedule fill it is as
 * many as fit into the memory for batch_per_worker images of the largest size. */
int64_t plan_batch_of_size(const struct job_spec *spec, int64_t size);

const struct plan_phase *plan_phase_at(const struct plan *plan, int64_t step);
/* Returns the step after the phase's last one; INT64_MAX for the last phase. */
int64_t plan_phase_end(const struct plan *plan, size_t i);
double plan_epochs_after(const struct plan *plan, int64_t steps);
double plan_steps_until(const struct plan *plan, double epochs);
int64_t plan_images_of_steps(const struct plan *plan, int64_t from, int64_t to);
/* Images per step, averaged over the run; in evaluation global_batch. */
double plan_mean_batch(const struct plan *plan);
/* Returns whether something done every `every_epochs` epochs (0: never) is due after `steps`. */
bool plan_is_due(const struct plan *plan, double every_epochs, int64_t steps);

/* Computation per image relative to an image of the job's largest size */
double plan_size_cost(const struct job_spec *spec, int64_t size);

/* Mean cost of the first steps relative to that of all: images grow during a run. */
double plan_cost_until(const struct plan *plan, const struct job_spec *spec, double steps);

/* Computation of the steps [from, to), in units of a step with the largest size and last batch */
double plan_steps_cost(const struct plan *plan, const struct job_spec *spec, int64_t from,
                       int64_t to);

/* Forward passes per evaluated image, in units of PREDICT_EVAL_COST of training an image of the
 * largest size; more with frozen parts, whose training takes less */
double plan_evaluation_passes(const struct job_spec *spec);

int64_t plan_evaluations(const struct plan *plan, const struct job_spec *spec);

json_t *plan_band_to_json(bool known, const struct plan_band *band);

/* Returns the plan with the API's keys, for POST /v1/plan, trainctl plan --json and plan.json. */
json_t *plan_to_json(const struct plan *plan);
