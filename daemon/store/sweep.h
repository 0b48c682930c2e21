/* Sweeps and their trials. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/job_insert.h"

struct store_trial {
    int64_t rung, number;
    char *point, *spec; /* JSON text */
    char *state;        /* waiting, submitted, succeeded, failed, cancelled */
    int64_t job_id;     /* 0: not submitted yet */
    double metric;      /* NAN: none */
    char *reason;       /* why it is to stop, or NULL */
};
struct store_sweep {
    int64_t id;
    char *name;         /* NULL: none given */
    char *submitted_by; /* as of a job */
    char *state;        /* running, succeeded, cancelled */
    json_t *document;   /* every default written out; NULL: not readable */
    int64_t train_images, eval_images;
    double created_at, finished_at; /* NAN: not yet */
    struct store_trial *trials;     /* by rung and number */
    size_t count, room;
};
void store_sweep_clear(struct store_sweep *sweep); /* frees what it points to */

/* With its first trials; sets sweep->id. *existed: the key was known, nothing was inserted.
 * ERR_CONFLICT: with another body. Durable. */
int store_sweep_insert(struct store *s, struct store_sweep *sweep, const struct store_key *key,
                       bool *existed, struct error *e);
int store_sweep_find_key(struct store *s, const struct store_key *key, int64_t *id,
                         struct error *e);
/* Existing trials stay. ERR_CONFLICT: the sweep has ended. */
int store_sweep_add_trials(struct store *s, int64_t id, const struct store_trial *trials,
                           size_t count, struct error *e);
int store_sweep_set_trial(struct store *s, int64_t id, const struct store_trial *trial,
                          struct error *e);
/* Cancels waiting trials. ERR_NOT_FOUND; ERR_CONFLICT: it has ended. */
int store_sweep_end(struct store *s, int64_t id, const char *state, double now, struct error *e);
int store_sweep_get(struct store *s, int64_t id, struct store_sweep *sweep, struct error *e);
/* The newest first, below `after` if not 0. */
int store_sweep_ids(struct store *s, bool running, int64_t after, int64_t *ids, size_t most,
                    size_t *count, struct error *e);
/* Ended ones with submitted trials, whose jobs are to be cancelled. */
int store_sweep_ending(struct store *s, int64_t *ids, size_t most, size_t *count, struct error *e);
