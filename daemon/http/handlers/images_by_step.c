#include "daemon/http/handlers/images_by_step.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/json.h"
#include "common/xalloc.h"
#include "common/run/attempt.h"
#include "daemon/store/event.h"
#include "daemon/store/metric.h"

struct images_reader {
    struct store *store;
    int64_t job_id;
    int lookups; /* lookups left */
    struct images_by_step *seen;
};

struct images_row {
    size_t rate, ms; /* indices in event_metric_at */
    int64_t step, batch;
};

static void images_take(void *context, const struct store_metric_part *part)
{
    struct images_row *row = context;
    double batch = part->of[row->rate].sum * part->of[row->ms].sum / 1e3;

    row->step = part->step;
    row->batch = isfinite(batch) ? llround(batch) : 0;
}

static size_t images_metric(const char *name)
{
    size_t i = 0;

    while (strcmp(event_metric_at(i)->name, name) != 0)
        i++;
    return i;
}

/* Gets the batch of this step or of the next one with a row; 0 if there is none. */
static int images_batch(struct images_reader *r, int64_t step, int64_t *batch, struct error *e)
{
    struct images_row row = {.rate = images_metric("images_per_sec"),
                             .ms = images_metric("step_ms")};
    int status = store_metric_each(r->store, r->job_id, step, 1, images_take, &row, e);

    r->lookups--;
    *batch = row.batch;
    return status;
}

static void images_append(struct images_by_step *seen, int64_t first_step, int64_t batch)
{
    struct images_part *last = seen->count ? &seen->parts[seen->count - 1] : NULL;
    int64_t before = last ? last->before + (first_step - last->first_step) * last->batch : 0;

    if (!last || last->batch != batch)
        array_add(seen->parts, seen->count, seen->capacity) =
            (struct images_part){first_step, before, batch};
}

/* Handles one attempt: batches never grow, so changes are found by bisection. */
static int images_of_attempt(struct images_reader *r, int64_t from, int64_t to, struct error *e)
{
    int64_t batch = 0, last = 0;
    int status = images_batch(r, to, &last, e);

    while (!status && from <= to && r->lookups > 0) {
        if ((status = images_batch(r, from, &batch, e)))
            break;
        images_append(r->seen, from, batch);
        if (batch == last)
            break;
        int64_t same = from, other = to, between;
        while (!status && other - same > 1) {
            int64_t middle = same + (other - same) / 2;
            status = images_batch(r, middle, &between, e);
            *(between == batch ? &same : &other) = middle;
        }
        from = other;
    }
    if (!status && r->lookups <= 0)
        images_append(r->seen, from, -1);
    return status;
}

static int images_ascending(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Returns the last steps of the attempts, ascending; the caller frees them. Rows after `now` were
 * written by an earlier attempt, which got further. */
static int images_resumed(struct store *s, int64_t job_id, int64_t now, int64_t **steps,
                          size_t *count, struct error *e)
{
    const struct store_event_range range = {.job_id = job_id, .types = "run_start"};
    json_t *events;
    const json_t *event;
    size_t i;
    int status = store_event_list(s, &range, &events, e);

    *count = 0;
    *steps = NULL;
    if (status)
        return status;
    *steps = xcalloc(json_array_size(events) + 1, sizeof **steps);
    if (now > 0)
        (*steps)[(*count)++] = now;
    json_array_foreach (events, i, event) {
        int64_t step = json_get_integer(event, "resumed_step", 0);
        if (step > 0)
            (*steps)[(*count)++] = step;
    }
    json_decref(events);
    qsort(*steps, *count, sizeof **steps, images_ascending);
    return 0;
}

int images_by_step_read(struct store *s, const struct store_job *job, struct images_by_step *seen,
                        struct error *e)
{
    struct images_reader r = {s, job->id, IMAGES_LOOKUPS, seen};
    struct store_metric_ends ends;
    int64_t *resumed, from = 1;
    size_t count;

    *seen = (struct images_by_step){0};
    if (store_metric_ends(s, job->id, 0, INT64_MAX, 2, &ends, e))
        return -(int)e->code;
    if (ends.rows == 0)
        return 0;
    int status = images_resumed(s, job->id, job->step, &resumed, &count, e);
    for (size_t i = 0; !status && i <= count && r.lookups > 0; i++) {
        int64_t to = i < count && resumed[i] < ends.last_step ? resumed[i] : ends.last_step;
        if (to >= from)
            status = images_of_attempt(&r, from, to, e);
        from = to >= from ? to + 1 : from;
    }
    free(resumed);
    return status;
}

int64_t images_by_step_at(const struct images_by_step *seen, int64_t step)
{
    size_t at = 0, behind = seen->count;

    while (at + 1 < behind) {
        size_t middle = at + (behind - at) / 2;
        *(seen->parts[middle].first_step <= step ? &at : &behind) = middle;
    }
    if (seen->count == 0 || seen->parts[at].batch < 0)
        return -1;
    const struct images_part *part = &seen->parts[at];
    return part->before + (step - part->first_step + 1) * part->batch;
}

void images_by_step_clear(struct images_by_step *seen)
{
    free(seen->parts);
    *seen = (struct images_by_step){0};
}
