/* Use of this machine per user, in slot-seconds per bin of six hours, written when an attempt ends.
 * A sweep's jobs count for its owner. */
#pragma once

#include "daemon/store/store.h"

struct sql;

/* user "": unnamed. */
struct store_use {
    char *user;
    double slot_seconds;    /* decayed with the half-life */
    int64_t running, slots; /* current, on this machine */
    int64_t queued;
};
struct store_uses {
    struct store_use *items; /* ordered by name */
    size_t count, capacity;
    double slot_seconds; /* sum over all users */
};
int store_usage(struct store *s, double now, double half_life_seconds, struct store_uses *uses,
                struct error *e);
void store_uses_clear(struct store_uses *uses);
/* Returns the user's share, 0 to 1. */
double store_uses_share(const struct store_uses *uses, const char *user);

/* Gets the user to whom a submitted_by counts. The caller frees *user. */
int store_usage_user(struct store *s, const char *submitted_by, char **user, struct error *e);

/* Runs in the transaction that ends an attempt, before its state is written. */
int store_usage_end(struct sql *c, int64_t job_id, double now, struct error *e);

/* ERR_TOO_MANY: the user has `max` queued jobs already. */
int store_usage_check_queued(struct sql *c, const char *submitted_by, int64_t max, struct error *e);
