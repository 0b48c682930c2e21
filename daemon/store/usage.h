/*
 * Who used this machine, and how much: slot-seconds in bins of six hours, written once, when an
 * attempt ends. The jobs of a sweep count as those of who submitted it.
 */
#pragma once

#include "daemon/store/store.h"

struct sql;

/* One user; "" is whoever was not named. */
struct store_use {
    char *user;
    double slot_seconds;    /* decayed: what is a half-life old counts half */
    int64_t running, slots; /* now, on this machine */
    int64_t queued;
};
struct store_uses {
    struct store_use *items; /* by name */
    size_t count, room;
    double slot_seconds; /* of all */
};
int store_usage(struct store *s, double now, double half_life_seconds, struct store_uses *uses,
                struct error *e);
void store_uses_clear(struct store_uses *uses);
/* The user's part of all use, 0 to 1; 0 for who used nothing. */
double store_uses_share(const struct store_uses *uses, const char *user);

/* The user of a job with this submitted_by (NULL: nobody was named): a new text. */
int store_usage_user(struct store *s, const char *submitted_by, char **user, struct error *e);

/* In the transaction that ends an attempt, before that is written. */
int store_usage_end(struct sql *c, int64_t job_id, double now, struct error *e);

/* ERR_TOO_MANY: who submits has so many queued jobs already. In the transaction that inserts. */
int store_usage_check_queued(struct sql *c, const char *submitted_by, int64_t most,
                             struct error *e);
