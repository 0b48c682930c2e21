/*
 * What `trainctl bench` measures, from the events of a run on synthetic images. The first step
 * warms up (page faults, BLAS's buffers) and is left out; each number is the median of the others.
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
    char gemm[16]; /* what multiplied the convolutions: own or openblas; "": an older worker */
    long steps;    /* measured */
    double images_per_sec;         /* of all workers */
    double step_ms;                /* of evaluation: a batch of a worker */
    double phase_ms[BENCH_PHASES]; /* rank 0's; all of an evaluation is forward */
    double gflop_per_image; /* multiplications and additions: 2 x MACs forward, 3 times that to
                               train */
    double gflops;          /* of all workers */
    double peak_gflops;     /* SGEMM on all threads of all workers at once; 0: not known */
    double memory_bytes;    /* resident at most, of the worker that had most */
};

/* Reads events.jsonl of a run that ended well. ERR_CORRUPT if something is not in it. */
int bench_read(const char *events_path, const struct job_spec *spec, struct bench *out,
               struct error *e);

/* Runs a job on this machine, or on the hosts that it names, and reads what it measured
 * (bench_run.c); leaves nothing behind. A signal ends it: ERR_INTERRUPTED. */
int bench_run(const struct job_spec *spec, struct bench *bench, struct error *e);
