/*
 * Chooses the number of workers per node and threads per worker if the document leaves it to the
 * plan (cluster.workers_per_node 0). Each way to divide the node's cores is planned: memory, images
 * per worker, speed. Among those that fit into memory, have enough images for batch norm and keep
 * each worker within a NUMA domain, it chooses the one with the fewest workers whose speed is
 * within PLAN_WORKERS_SLACK of the fastest: another worker costs memory, a copy of the weights to
 * update and a share of the sum of gradients, and without global_batch increases the global batch.
 * A condition that no way meets is dropped.
 *
 * With global_batch, the images of a worker are a share of it; without it, batch_per_worker.
 */
#pragma once

#include "common/plan/predict.h"
#include "common/problem.h"

#define PLAN_WORKERS_SLACK 0.05
/* Used without global_batch, when another number of workers changes the job */
#define PLAN_WORKERS_SLACK_OPEN 0.1
/* Below this the error of batch norm increases: Wu and He 2018, Group Normalization, fig. 1. */
#define PLAN_NORM_IMAGES 16

/* Finds the measured speed of such workers. Returns false, or a zeroed *speed, if there is none. */
typedef bool plan_workers_speed(const struct job_spec *spec, struct plan_speed *speed,
                                void *context);

struct plan_workers_node {
    int64_t cores;        /* hardware threads with cluster.smt; at least 1 */
    int64_t domain_cores; /* of a NUMA domain or a socket; 0: unknown */
    int64_t memory_bytes; /* 0: unknown */
    plan_workers_speed *speed;
    void *context;
};

struct plan_workers {
    int64_t workers, threads;
    int64_t cores, memory_bytes; /* of the node */
    char ways[512]; /* fractions of the fastest speed: "1 x 48: 0.93, 2 x 24: 0.97, ..." */
    char reason[512];
    struct plan_speed speed; /* derived from measurements; zeroed: there are none */
};

/* Sets workers_per_node, threads_per_worker and the resulting batch. Returns false if nothing fits,
 * and adds the reason to *problems. */
bool plan_workers_choose(struct job_spec *spec, const struct plan_workers_node *node,
                         struct plan_workers *chosen, struct problems *problems);
