/* Measurements of a run on synthetic images, computed from its events: medians over all steps but
 * the first, which warms up. */
#pragma once

#include <stdbool.h>

#include "common/error.h"
#include "common/job/job_spec.h"

enum bench_phase {
    BENCH_DATA,
    BENCH_FORWARD,
    BENCH_BACKWARD,
    BENCH_COMM,
    BENCH_OPTIM,
    BENCH_PHASES
};

const char *bench_phase_name(enum bench_phase phase); /* "forward" */

struct bench {
    bool evaluates;
    char gemm[16]; /* library used for the convolutions: own or openblas; "": an older worker */
    long steps;    /* number of measured steps */
    double images_per_sec;         /* sum over all workers */
    double step_ms;                /* in an evaluation, for one batch of a worker */
    double phase_ms[BENCH_PHASES]; /* of rank 0; in an evaluation, all time is forward */
    double gflop_per_image;        /* 2 x MACs of forward; 3 times that in training */
    double gflops;                 /* sum over all workers */
    double peak_gflops;            /* SGEMM on all threads of all workers at once; 0: unknown */
    double gb_per_image;           /* moved to and from memory, at least (worker/model/traffic.h);
                                      this and the next two are 0 with an older worker */
    double gb_per_sec;             /* sum over all workers */
    double stream_gb_per_sec;      /* of the memory, with all threads of all workers at once */
    double memory_bytes;           /* largest resident set size of a worker */
};

/* Reads events.jsonl of a successful run. ERR_CORRUPT. */
int bench_read(const char *events_path, const struct job_spec *spec, struct bench *out,
               struct error *e);

/* Runs a job on this machine, or on its hosts, and reads its measurements. Leaves no files.
 * ERR_INTERRUPTED after a signal. Uses the daemon's launcher, so the speed is that of a job. */
int bench_run(const struct job_spec *spec, struct bench *bench, struct error *e);
