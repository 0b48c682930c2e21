/*
 * A job's metrics as an answer. Where there are more rows than points, the steps are shared out
 * evenly over the points, and of each the mean, the minimum and the maximum of every metric are
 * told, at its middle step.
 */
#pragma once

#include <stdint.h>

#include "daemon/http/handlers/images_by_step.h"
#include "daemon/http/json_text.h"
#include "daemon/store/metric.h"

#define SERIES_POINTS_MAX 20000 /* of one answer: bounds its memory */

struct series;

struct series_shape {
    unsigned wanted; /* bits of event_metric_at */
    bool images;     /* the images seen, as a column of CSV; JSON has them always */
    int64_t points;  /* >= 2 */
    bool exact;      /* each part is a point; else down-sampled over these steps: */
    int64_t first_step, last_step;
};
struct series *series_create(const struct series_shape *shape); /* NULL without memory */

/* A store_metric_visit; context is the series. Steps must rise; exact: those behind the last point
 * are left out, else the first part is the first row. */
void series_add(void *context, const struct store_metric_part *part);

void series_end(struct series *s); /* all were added */

/* Members of an open object: "rows", "points", "downsampled", "step": [], "images": [],
 * "epoch": [], "t": [], "loss": [], ..., and where it was down-sampled "min" and "max": {"loss":
 * [], ...}. null where no step had such a number. Means have 12 digits, all else is as it was
 * stored. */
void series_members(struct json_text *t, const struct series *s, const struct images_by_step *seen);

/* The same as RFC 4180 lines under a line of names: step,epoch,t,loss,...,images with
 * loss_min,loss_max behind loss where it was down-sampled; nothing for null. The caller frees it;
 * NULL: no memory. */
char *series_to_csv(const struct series *s, const struct images_by_step *seen, size_t *bytes);

/* The step behind the last one taken: where to go on. */
int64_t series_next(const struct series *s);

void series_destroy(struct series *s);
