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
    int64_t job_id;     /* 0: not yet submitted */
    double metric;      /* NAN: none */
    char *reason;       /* why it is to be stopped, or NULL */
};
struct store_sweep {
    int64_t id;
    char *name;         /* NULL: unnamed */
    char *submitted_by; /* as in struct store_job */
    char *state;        /* running, succeeded, cancelled */
    json_t *document;   /* with all defaults filled in; NULL: cannot be parsed */
    int64_t train_images, eval_images;
    double created_at, finished_at; /* NAN: not yet */
    struct store_trial *trials;     /* ordered by rung and number */
    size_t count, capacity;
};
void store_sweep_clear(struct store_sweep *sweep); /* frees its contents */

/* Inserts a sweep with its first trials and sets sweep->id. *existed: the key was known and nothing
 * was inserted. Durable. ERR_CONFLICT: the key was used with another body. */
int store_sweep_insert(struct store *s, struct store_sweep *sweep, const struct store_key *key,
                       bool *existed, struct error *e);
int store_sweep_find_key(struct store *s, const struct store_key *key, int64_t *id,
                         struct error *e);
/* Adds trials; existing ones are unchanged. ERR_CONFLICT: the sweep has ended. */
int store_sweep_add_trials(struct store *s, int64_t id, const struct store_trial *trials,
                           size_t count, struct error *e);
int store_sweep_set_trial(struct store *s, int64_t id, const struct store_trial *trial,
                          struct error *e);
/* Ends a sweep and cancels its waiting trials. ERR_NOT_FOUND; ERR_CONFLICT: it has already
 * ended. */
int store_sweep_end(struct store *s, int64_t id, const char *state, double now, struct error *e);
int store_sweep_get(struct store *s, int64_t id, struct store_sweep *sweep, struct error *e);
/* Lists sweeps, newest first; only ids below `after` unless that is 0. */
int store_sweep_ids(struct store *s, bool running, int64_t after, int64_t *ids, size_t max,
                    size_t *count, struct error *e);
/* Lists ended sweeps with submitted trials, whose jobs still have to be cancelled. */
int store_sweep_ending(struct store *s, int64_t *ids, size_t max, size_t *count, struct error *e);
