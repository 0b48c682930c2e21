/* Measured speeds, and the accuracy of forecasts. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/plan/predict.h"
#include "daemon/store/store.h"

/* key and cpu are described in common/run/speed.h. */
struct store_speed {
    const char *key, *cpu;
    double t;
    struct plan_sample sample;
    const char *owner; /* user for whose plans it counts, '' if unnamed; NULL: everybody's */
};
struct store_audit;
/* audit: written in the same transaction; may be NULL. */
int store_speed_add(struct store *s, const struct store_speed *speed,
                    const struct store_audit *audit, struct error *e);
/* Lists the speeds usable for plans of this user, newest first, without implausible ones
 * (speed_sample_is_sound). */
int store_speed_find(struct store *s, const char *key, const char *cpu, const char *by,
                     struct plan_sample *samples, size_t max, size_t *count, struct error *e);

/* forecast: JSON text. */
int store_job_set_forecast(struct store *s, int64_t id, const char *forecast, struct error *e);
/* Visits the newest `max` forecasts, except those of imported jobs. */
int store_forecast_each(struct store *s, int64_t max,
                        void (*visit)(void *context, const char *forecast), void *context,
                        struct error *e);
