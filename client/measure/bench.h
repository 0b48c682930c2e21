/*
 * Measurements of a run on synthetic images, from its events. The first step, which warms up, is
 * left out; each number is the median of the others.
 */
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
    char gemm[16];         /* library of the convolutions: own or openblas; "": an older worker */
    long steps;            /* measured */
    double images_per_sec; /* of all workers */
    double step_ms;        /* in an evaluation, of one batch of a worker */
    double phase_ms[BENCH_PHASES]; /* rank 0's; an evaluation is all forward */
    double gflop_per_image;        /* 2 x MACs of forward; 3 times that in training */
    double gflops;                 /* of all workers */
    double peak_gflops;            /* SGEMM on all threads of all workers at once; 0: unknown */
    double memory_bytes;           /* largest resident set of a worker */
};

/* Reads events.jsonl of a successful run. ERR_CORRUPT. */
int bench_read(const char *events_path, const struct job_spec *spec, struct bench *out,
               struct error *e);

/* Runs a job on this machine, or on the hosts it names, and reads its measurements. Leaves no
 * files. ERR_INTERRUPTED after a signal. mpirun is started by the daemon's launcher, so the speed
 * is that of a job. */
int bench_run(const struct job_spec *spec, struct bench *bench, struct error *e);
