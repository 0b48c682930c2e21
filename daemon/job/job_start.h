/*
 * The steps of a start, one by one (DO_PREPARE to DO_OPEN_GATE), as act.h carries them out. A
 * daemon that is killed between two of them has started nothing that it does not find again.
 */
#pragma once

#include "daemon/job/job_manager_internal.h"

struct start;

/* Takes over what *job points to. NULL: no memory. */
struct start *start_create(struct store_job *job);
void start_clear(struct start *s); /* NULL is fine */

int start_prepare(struct job_manager *m, struct active_job *a, struct error *e);
int start_store_attempt(struct job_manager *m, struct active_job *a, struct error *e);
int start_launcher(struct job_manager *m, struct active_job *a, struct error *e);
int start_store_launcher(struct job_manager *m, struct active_job *a, struct error *e);
int start_open_gate(struct job_manager *m, struct active_job *a, struct error *e);
int start_abandon(struct job_manager *m, struct active_job *a, struct error *e);

/* The column slurm of a job; the caller frees it. */
char *start_slurm_json(const char *name, const struct slurm_status *status);
