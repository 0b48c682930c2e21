/* Measured speeds, and how good forecasts were. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/plan/predict.h"
#include "daemon/store/store.h"

/* key and cpu as in common/run/speed.h. */
struct store_speed {
    const char *key, *cpu;
    double t;
    struct plan_sample sample;
    const char *owner; /* for whose plans, '' if nobody was named; NULL: everybody's */
};
struct store_audit;
/* audit: written in the same transaction, or NULL. */
int store_speed_add(struct store *s, const struct store_speed *speed,
                    const struct store_audit *audit, struct error *e);
/* For plans of this user, the newest first, without unsound ones (speed_sample_is_sound). */
int store_speed_find(struct store *s, const char *key, const char *cpu, const char *by,
                     struct plan_sample *samples, size_t most, size_t *count, struct error *e);

/* JSON text. */
int store_job_set_forecast(struct store *s, int64_t id, const char *forecast, struct error *e);
/* The newest `most`, without imported jobs. */
int store_forecast_each(struct store *s, int64_t most,
                        void (*visit)(void *context, const char *forecast), void *context,
                        struct error *e);
