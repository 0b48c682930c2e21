/*
 * How many workers per node, and threads each, if the document leaves it to the plan
 * (cluster.workers_per_node 0). Every way to divide the node's cores is planned: memory, images per
 * worker, speed. Among those that fit the memory, keep enough images for batch norm and keep a
 * worker within a NUMA domain, the choice is the one with the fewest workers whose speed is within
 * PLAN_WORKERS_SLACK of the fastest: another worker costs memory, a copy of the weights to update
 * and a share of the sum of gradients, and without global_batch enlarges the global batch. A
 * condition that no way meets is dropped.
 *
 * With global_batch a worker's images are a share of it; without, they are batch_per_worker.
 */
#pragma once

#include "common/plan/predict.h"
#include "common/problem.h"

#define PLAN_WORKERS_SLACK 0.05
/* Without global_batch, where another number of workers changes the job. */
#define PLAN_WORKERS_SLACK_OPEN 0.1
/* Below this the error of batch norm rises: Wu and He 2018, Group Normalization, fig. 1. */
#define PLAN_NORM_IMAGES 16

/* Measured of such workers; false or zeroed: nothing. */
typedef bool plan_workers_speed(const struct job_spec *spec, struct plan_speed *speed,
                                void *context);

struct plan_workers_node {
    int64_t cores;        /* with cluster.smt hardware threads; at least 1 */
    int64_t domain_cores; /* of a NUMA domain or a socket; 0: not known */
    int64_t memory_bytes; /* 0: not known */
    plan_workers_speed *speed;
    void *context;
};

struct plan_workers {
    int64_t workers, threads;
    int64_t cores, memory_bytes; /* of the node */
    char ways[512];              /* "1 x 48: 0.93, 2 x 24: 0.97, ...": of the fastest's speed */
    char reason[512];
    struct plan_speed speed; /* as it follows from measured ones; zeroed: there are none */
};

/* Sets workers_per_node, threads_per_worker and the batch that follows. False: nothing fits, with
 * the reason in *problems. */
bool plan_workers_choose(struct job_spec *spec, const struct plan_workers_node *node,
                         struct plan_workers *chosen, struct problems *problems);
