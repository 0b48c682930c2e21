/*
 * Sweeps over job keys: POST /v1/sweeps.
 *
 *     {"name": "lr", "base": {job document}, "method": "grid" | "random" | "halving",
 *      "parameters": {"lr.base": [0.1, 0.4], "optimizer.momentum": {"min": 0.8, "max": 0.99}},
 *      "samples": 8, "sampling": "random" | "halton", "seed": 1, "concurrency": 1,
 *      "metric": "top1", "goal": "max",
 *      "budget": {"key": "epochs", "min": 1, "max": 9, "eta": 3},
 *      "early_stop": {"rule": "none" | "median" | "rung", "from": 0.25, "least": 2}}
 *
 * A grid takes every combination of lists. Random and halving draw `samples` points: of a list one
 * value, of a range a uniform number ("log": true: of its logarithm, "integer": true: whole). With
 * sampling halton the points are not independent but spread evenly (halton.h).
 * Halving gives all points the least budget, the best 1/eta of them eta times as much, and so on to
 * the greatest; each rung trains anew with a schedule of its own length, for a schedule that is cut
 * off says little of a whole one. State is in SQLite (sweep, sweep_trial); a trial's job is
 * submitted under a key of its own, so a daemon that is killed submits none twice.
 */
#pragma once

#include "common/plan/plan.h"
#include "daemon/job/job.h"
#include "daemon/store/job_insert.h"
#include "daemon/store/sweep.h"

#define SWEEP_TRIALS_MAX   1000
#define SWEEPS_RUNNING_MAX 256                /* that go on at a time */
#define SWEEP_PROBLEMS_MAX 50                 /* are told; what is behind them is not looked at */
#define SWEEP_TEXT_MAX     ((size_t)16 << 20) /* of the documents of all points, in bytes */

/* Adds what this caller's jobs may not name to *problems. */
struct sweep_permit {
    void (*check)(const struct job_spec *spec, const void *context, struct problems *problems);
    const void *context;
};

/* A document and who sent it. */
struct sweep_new {
    const json_t *document;
    struct sweep_permit permit;
    struct store_key key; /* and by whom */
};

/* Checks a document; everything that is wrong goes into *problems (then 0 and *id 0). Durable when
 * it returns. *existed: the key came before, and *id is that sweep. Thread-safe. */
int sweep_create(struct job_manager *m, const struct sweep_new *new, struct problems *problems,
                 int64_t *id, bool *existed, struct error *e);

/* What the sweep of a document would run and take, as the API tells it (NULL with
 * *problems or *e): jobs, rungs, images, time, slot-hours, cost. Starts nothing. Thread-safe. */
json_t *sweep_preview(struct job_manager *m, const struct sweep_new *new,
                      const struct plan_prices *prices, struct problems *problems, struct error *e);

/* Ends it and cancels its jobs, asked by somebody (NULL: nobody was named). ERR_NOT_FOUND,
 * ERR_CONFLICT. Thread-safe. */
int sweep_cancel(struct job_manager *m, int64_t id, const char *by, struct error *e);

/* The loop's: takes results, submits what may run, promotes, ends. Returns after how many seconds
 * it must be called again, though nothing else happens; INFINITY: it need not. */
double sweeps_go_on(struct job_manager *m);

/* The loop's, once a second: asks trials that lose to stop (sweep_stop.c tells the rules). */
void sweeps_stop_losers(struct job_manager *m);

/* The sweep with its table of results, the best first (the highest rung, then the metric). */
json_t *sweep_to_json(const struct store_sweep *sweep);

/* Inside: visits the sweeps that run, the oldest first, each as it is stored, and again while the
 * visit returns 1; its error is logged. document: the sweep's, parsed. false: a visit failed for
 * what may pass. */
typedef int sweep_visit(struct job_manager *m, struct store_sweep *sweep, const json_t *document,
                        struct error *e);
bool sweeps_visit_running(struct job_manager *m, sweep_visit *visit);

/* Inside: what a checked document makes: its trials of the first rung, with what is wrong with any
 * of them, and the counted images. Clear *sweep with store_sweep_clear. */
int sweep_make(struct job_manager *m, const json_t *document, const struct sweep_new *new,
               struct store_sweep *sweep, struct problems *problems, struct error *e);

/* Inside: the plan of a trial, as it would be submitted now, or NULL and *e. Of *inputs the caller
 * may set prices, and a speed where it knows one that was not measured. */
struct plan *sweep_plan_trial(struct job_manager *m, const struct store_sweep *sweep,
                              struct job_spec *spec, struct plan_inputs *inputs,
                              struct problems *problems, struct error *e);

/* sweep_document.c, inside. A document with its defaults, or NULL with problems. */
json_t *sweep_document_check(const json_t *document, struct problems *problems);
/* {"lr.base": 0.1, ...} of point `number`; NULL behind the last. */
json_t *sweep_point(const json_t *document, int64_t number);
/* The job of a point in a rung: a new document. */
json_t *sweep_job(const json_t *document, const json_t *point, int64_t rung);
/* The budget of a rung; 0: there is no such rung. */
double sweep_budget(const json_t *document, int64_t rung);
