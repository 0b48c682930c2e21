/* What a job takes, and whether this node can have it. */
#pragma once

#include "common/job/job_spec.h"
#include "common/problem.h"
#include "common/plan/plan.h"
#include "daemon/job/job.h"
#include "daemon/store/job_insert.h"

/* total cores as slots of the job's kind: with cluster.smt their hardware threads. */
int64_t job_machine_slots(const struct job_spec *spec, int64_t total);
int64_t job_threads(const struct job_spec *spec, int64_t total); /* per worker, resolved */

/* The least slots that a host of the job is said to have; total where none is said. */
int64_t job_hosts_slots(const struct job_spec *spec, int64_t total);

/* Adds a problem if it takes more slots than one user may. Thread-safe. */
void job_check_caps(struct job_manager *m, const struct job_spec *spec, struct problems *problems);

/* Of each of its nodes' cores, the part that the job takes: above 0, at most 1. */
double job_node_share(const struct job_spec *spec, int64_t total);

/* What the queue must know of a plan. */
struct store_job_size job_size(const struct job_manager *m, const struct job_spec *spec,
                               const struct plan *plan);

/* Adds as problems why it can never run on this node. Negative: Slurm cannot start it. */
int job_check_fits(const struct job_manager *m, const struct job_spec *spec,
                   struct problems *problems, struct error *e);
