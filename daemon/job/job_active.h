/* The jobs that the loop has to do with: as objects, not what happens to them. */
#pragma once

#include "daemon/job/job_manager_internal.h"

/* A job in the phase `phase`, which has no launcher yet; not in the list. job->spec is needed.
 * NULL: no memory. */
struct active_job *active_create(struct job_manager *m, const struct store_job *job,
                                 enum job_phase phase, struct error *e);

/* Puts it at the end of the list: it takes its slots. */
void active_add(struct job_manager *m, struct active_job *a);

/* An attempt's folder and its events: made by active_open, followed from active_switch on, which
 * cannot fail; or closed. */
struct active_attempt {
    int64_t attempt;
    char *folder;
    struct ingest *ingest;
};
int active_open(struct job_manager *m, const struct active_job *a, int64_t attempt,
                struct active_attempt *opened, struct error *e);
void active_switch(struct job_manager *m, struct active_job *a, struct active_attempt *opened);
void active_close(struct active_attempt *opened);

/* Also takes it out of the list; its processes go on. */
void active_destroy(struct job_manager *m, struct active_job *a);

/* NULL: the loop has nothing to do with it. */
struct active_job *active_find(const struct job_manager *m, int64_t id);

/* It has an attempt that runs, or waits in Slurm's queue. */
bool active_is_under_way(const struct active_job *a);

/* Slots of this machine that are taken. */
int64_t active_slots(const struct job_manager *m);
