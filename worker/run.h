/*
 * One run of the worker: what all its parts share. Filled by start_run (start.h) on every rank,
 * collectively.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "common/dataset/dataset.h"
#include "common/job/job_spec.h"
#include "common/plan/plan.h"
#include "worker/comm/traincomm.h"
#include "worker/model/model.h"
#include "worker/provenance/chain.h"
#include "worker/report.h"
#include "worker/save/state.h"

/* Where a failure came from: the fields of a `failed` event. */
struct failure_site {
    int rank;
    char host[TRAINCOMM_HOST_BYTES];
};

struct run {
    struct traincomm *comm; /* borrowed */
    int rank, world;
    int threads;  /* of this rank */
    int comm_cpu; /* for the thread that sums gradients between machines; -1: there is none */
    char run_dir[PATH_MAX];
    char attempt_dir[PATH_MAX];
    struct job_spec *spec;
    struct plan *plan; /* NULL until the data were counted */
    struct model *model;
    struct ema *ema;     /* averaged weights, in train(); NULL: none */
    int64_t averaged_at; /* the last step after which the statistics were averaged; 0: none */
    struct model_tuning tuning;
    struct dataset *train_data, *eval_data; /* NULL: synthetic, or none; train_data: the part */
    char *classes;            /* rank 0: what they are called, for checkpoints; NULL: not known */
    struct dataset_part part; /* data.locality node: which node of how many this rank is on */
    struct report *report;
    double started;    /* monotonic clock at run_start: time to train counts from here */
    const char *phase; /* of a `failed` event: start data train evaluate checkpoint */
    struct failure_site failed_at;
    double run_started; /* Unix time of the first attempt's run_start */
    bool resumes;
    char resumed_from[PATH_MAX]; /* the checkpoint's folder; "": from the beginning */
    struct run_state from;       /* of that checkpoint */
    char init_path[PATH_MAX];    /* the file of model.init, rank 0; "": none */
    int64_t init_step;           /* at which the weights of model.init were saved; 0: not told */
    int64_t image_shift;         /* common/plan/replan.h */
    int64_t step_shift;   /* a step's number in the plan's schedule, less its number in the run */
    json_t *binding;      /* rank 0: what every rank got, for run_start */
    json_t *kernel_kinds; /* rank 0: as kernel_kinds.h makes it */
    json_t *provenance;   /* rank 0: this attempt's, once it was gathered */
    struct chain losses, evaluations; /* of all steps and evaluations of the run */
    json_t *warnings;                 /* of the start, rank 0: said behind run_start */
    bool measures_peak;
    bool cancelled;        /* the ranks agreed to stop, so the same on all of them */
    bool counted_labels;   /* of data.eval, and said which classes it has no images of */
    struct stall *stall;   /* borrowed; NULL: nobody watches */
    struct energy *energy; /* borrowed; NULL: nobody reads it */
    double sgemm_gflops;   /* of all ranks, behind the run */
};

/* Writes the `failed` event and the words on stderr (rank 0). */
void run_report_failure(struct run *r, const struct error *e);

/* Frees what start_run filled, whole or in part. */
void run_destroy(struct run *r);

/* status: 0, or this rank's error with *e filled. Returns 0 if all ranks had 0, else the error of
 * the lowest failing rank, in *e and r->failed_at on every rank. Collective. */
int run_agree(struct run *r, int status, struct error *e);

/* The same, and *stop becomes true on all ranks if it was on any. One collective if all is well. */
int run_agree_on_stop(struct run *r, int status, bool *stop, struct error *e);

/* How many epochs are done after so many steps of the run. */
double run_epoch(const struct run *r, int64_t step);

/* Images of all ranks in the steps from + 1 to `to` of the run. */
int64_t run_images(const struct run *r, int64_t from, int64_t to);

/* A `warning` event, and the words on stderr. */
int run_warn(struct run *r, int64_t step, const char *message, struct error *e);

/* Requested by SIGTERM, SIGINT, SIGUSR1 or a call: the ranks agree to stop after the step they are
 * in. */
void run_catch_signals(void);
void run_request_stop(void);
bool run_stop_requested(void);
