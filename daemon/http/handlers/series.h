/* Series of metrics for responses. More rows than points are down-sampled to mean, minimum and
 * maximum over equal numbers of steps, placed at the middle. */
#pragma once

#include <stdint.h>

#include "daemon/http/handlers/images_by_step.h"
#include "daemon/http/json_text.h"
#include "daemon/store/metric.h"

#define SERIES_POINTS_MAX 20000 /* per response; bounds its memory */

struct series;

struct series_shape {
    unsigned wanted; /* bits of event_metric_at */
    bool images;     /* add the number of images seen as a CSV column (always present in JSON) */
    int64_t points;  /* >= 2 */
    bool exact;      /* each part is a point; otherwise down-sample over these steps: */
    int64_t first_step, last_step;
};
struct series *series_create(const struct series_shape *shape); /* returns NULL if out of memory */

/* A store_metric_visit. Steps must increase. If exact, rows after the last point are ignored. */
void series_add(void *context, const struct store_metric_part *part);

void series_end(struct series *s); /* call it after the last part */

/* Writes "rows", "points", "downsampled", the arrays "step", "images", "epoch", "t" and one for
 * each metric, and if down-sampled the objects "min" and "max". Missing numbers are null. Means
 * have 12 digits. */
void series_members(struct json_text *t, const struct series *s, const struct images_by_step *seen);

/* Returns RFC 4180 lines: step,epoch,t,METRICS,images, with METRIC_min,METRIC_max if down-sampled.
 * The caller frees them; NULL: out of memory. */
char *series_to_csv(const struct series *s, const struct images_by_step *seen, size_t *bytes);

int64_t series_next(const struct series *s);

void series_destroy(struct series *s);
