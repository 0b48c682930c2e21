/* State of one run, shared by all parts of the worker. Filled by start_run (start.h) on every rank,
 * collectively. */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "common/dataset/dataset.h"
#include "common/job/job_spec.h"
#include "common/plan/plan.h"
#include "worker/comm/traincomm.h"
#include "worker/model/model.h"
#include "worker/save/state.h"
#include "worker/report.h"

/* Fields of a `failed` event */
struct failure_site {
    int rank;
    char host[TRAINCOMM_HOST_BYTES];
};

struct run {
    struct traincomm *comm; /* borrowed */
    int rank, world;
    int threads;  /* of this rank */
    int comm_cpu; /* of the thread that sums gradients between machines, or -1 */
    char run_dir[PATH_MAX];
    char attempt_dir[PATH_MAX];
    struct job_spec *spec;
    struct plan *plan; /* NULL until the images are counted */
    struct model *model;
    double *class_weights; /* derived from the data, for the loss; or NULL */
    struct ema *ema;       /* averaged weights, in train(); or NULL */
    int64_t averaged_at;   /* step after which the statistics were last averaged; 0: never */
    struct model_tuning tuning;
    struct dataset *train_data,
        *eval_data;           /* NULL: synthetic, or none; train_data: this node's part */
    char *classes;            /* rank 0: class names, for checkpoints; NULL: unknown */
    struct dataset_part part; /* with data.locality node: this rank's node and their number */
    struct report *report;
    double started;    /* monotonic clock at run_start; time to train counts from here */
    const char *phase; /* for a `failed` event: start data train evaluate checkpoint */
    struct failure_site failed_at;
    double run_started; /* Unix time of the first attempt's run_start */
    bool resumes;
    char resumed_from[PATH_MAX]; /* folder of the checkpoint; "": none */
    struct run_state from;       /* state in that checkpoint */
    char init_path[PATH_MAX];    /* rank 0: file of model.init; "": none */
    int64_t init_step;           /* step of the weights in init_path; 0: unknown */
    int64_t image_shift;         /* see common/plan/replan.h */
    int64_t step_shift;          /* step in the plan's schedule minus step of the run */
    json_t *binding;             /* rank 0, for run_start */
    json_t *kernel_kinds;        /* rank 0: see kernel_kinds() */
    json_t *provenance;          /* rank 0: this attempt's, once gathered */
    struct monitor monitor;
    struct digest_chain losses, evaluations; /* over all steps and evaluations of the run */
    json_t *warnings;                        /* rank 0: from the start, reported after run_start */
    bool measures_peak;
    bool cancelled;        /* the ranks agreed to stop; the same on all of them */
    bool counted_labels;   /* the classes without images in data.eval were reported */
    struct stall *stall;   /* borrowed; may be NULL */
    struct energy *energy; /* borrowed; may be NULL */
    double sgemm_gflops, stream_gb_per_sec; /* of all ranks, measured after the run */
};

/* Writes the `failed` event and logs the error (rank 0). */
void run_report_failure(struct run *r, const struct error *e);

/* Frees what start_run filled, also after a failure. */
void run_destroy(struct run *r);

/* status: 0, or this rank's error with *e filled. Returns 0 if all ranks passed 0, else the error
 * of the lowest failing rank, in *e and r->failed_at on every rank. Collective. */
int run_agree(struct run *r, int status, struct error *e);

/* Like run_agree, and *stop becomes true on all ranks if it is on any. */
int run_agree_on_stop(struct run *r, int status, bool *stop, struct error *e);

/* Epochs completed after `step` steps of the run. */
double run_epoch(const struct run *r, int64_t step);

/* Images of all ranks in steps from + 1 to `to` of the run. */
int64_t run_images(const struct run *r, int64_t from, int64_t to);

/* Writes a `warning` event and logs it. */
int run_warn(struct run *r, int64_t step, const char *message, struct error *e);

/* SIGTERM, SIGINT, SIGUSR1 or run_request_stop: the ranks agree to stop after the current step. */
void run_catch_signals(void);
void run_request_stop(void);
bool run_stop_requested(void);

/* Averages over the ranks, in double so that averaging equal numbers changes no bit. Collective. */
void run_average(struct run *r, float *numbers, size_t count);

/* Makes crashes and MPI errors also report whether memory was exhausted, which they do not say by
 * themselves. Call once after MPI's start, whose own signal handlers run afterwards. */
void run_report_crashes(struct traincomm *comm);
