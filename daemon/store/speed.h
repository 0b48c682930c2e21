/* Measured speeds, of finished jobs and of trainctl bench and scale, and how good predictions were.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/plan/predict.h"
#include "daemon/store/store.h"

/* What a finished job or trainctl bench measured; key and processor as common/run/speed.h names
 * them. */
struct store_speed {
    const char *key, *cpu;
    double t;
    struct plan_sample sample;
    const char
        *owner; /* whose plans alone it is for, '' where nobody was named; NULL: everybody's */
};
struct store_audit;
/* audit is written in the same transaction; NULL: nothing. */
int store_speed_add(struct store *s, const struct store_speed *speed,
                    const struct store_audit *audit, struct error *e);
/* Those for the plans of a user (as submitted_by of a job), the newest first, at most `most`,
 * without those of the database that are not sound (speed_sample_is_sound). */
int store_speed_find(struct store *s, const char *key, const char *cpu, const char *by,
                     struct plan_sample *samples, size_t most, size_t *count, struct error *e);

/* How good an ended job's predictions were: JSON text. */
int store_job_set_forecast(struct store *s, int64_t id, const char *forecast, struct error *e);
/* These of the newest `most` jobs that have some; imported ones ran elsewhere and do not count. */
int store_forecast_each(struct store *s, int64_t most,
                        void (*visit)(void *context, const char *forecast), void *context,
                        struct error *e);
