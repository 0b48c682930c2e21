#include "worker/monitor.h"

#include <math.h>
#include <string.h>

#include "common/job/job_options.h"
#include "common/json.h"
#include "common/run/checkpoints.h"

static const double SMALLEST_CHANGE = 1e-8; /* of a rate; eps of ReduceLROnPlateau */

static const struct {
    const char *name;
    size_t offset;
    double first;
} numbers[] = {
    {"lr_scale",       offsetof(struct monitor, lr_scale),       1  },
    {"reference",      offsetof(struct monitor, reference),      NAN},
    {"reference_step", offsetof(struct monitor, reference_step), 0  },
    {"waited",         offsetof(struct monitor, waited),         0  },
    {"lr_reference",   offsetof(struct monitor, lr_reference),   NAN},
    {"lr_waited",      offsetof(struct monitor, lr_waited),      0  },
    {"lr_cooldown",    offsetof(struct monitor, lr_cooldown),    0  },
};
#define NUMBERS (sizeof numbers / sizeof numbers[0])

const char *monitor_name(const struct job_spec *spec)
{
    return job_option_choice(job_option_find("/eval/monitor"), (size_t)spec->eval.monitor);
}

/* Any number is better than NAN. */
static bool monitor_is_better(const struct job_spec *spec, double value, double than)
{
    if (isnan(than))
        return !isnan(value);
    return spec->eval.monitor == JOB_MONITOR_LOSS ? value < than : value > than;
}

/* Inserts the value behind equal ones. */
static bool monitor_rank(struct monitor_best *b, const struct job_spec *spec, int64_t step,
                         double value)
{
    size_t keep = (size_t)spec->checkpoint.keep_best, at = 0;

    while (at < b->count && !monitor_is_better(spec, value, b->values[at]))
        at++;
    if (at >= keep || isnan(value))
        return false;
    b->count += b->count < keep;
    memmove(&b->steps[at + 1], &b->steps[at], (b->count - at - 1) * sizeof *b->steps);
    memmove(&b->values[at + 1], &b->values[at], (b->count - at - 1) * sizeof *b->values);
    b->steps[at] = step;
    b->values[at] = value;
    return true;
}

static void monitor_plateau(struct monitor *m, const struct job_spec *spec, double value,
                            double rate)
{
    bool better =
        monitor_is_better(spec, value,
                          m->lr_reference * (1 + (spec->eval.monitor == JOB_MONITOR_LOSS ? -1 : 1) *
                                                     spec->lr.threshold));

    m->lr_waited = better ? 0 : m->lr_waited + 1;
    if (better)
        m->lr_reference = value;
    if (m->lr_cooldown > 0) {
        m->lr_cooldown--;
        m->lr_waited = 0;
    }
    if (m->lr_waited <= (double)spec->lr.patience)
        return;
    double reduced = fmax(rate * spec->lr.gamma, spec->lr.end);
    m->lr_cooldown = (double)spec->lr.cooldown;
    m->lr_waited = 0;
    if (rate - reduced > SMALLEST_CHANGE)
        m->lr_scale *= reduced / rate;
}

bool monitor_add(struct monitor *m, const struct job_spec *spec, int64_t step, double value,
                 double rate)
{
    double delta =
        spec->eval.monitor == JOB_MONITOR_LOSS ? -spec->eval.min_delta : spec->eval.min_delta;

    m->waited++;
    if (monitor_is_better(spec, value - delta, m->reference)) {
        m->reference = value;
        m->reference_step = (double)step;
        m->waited = 0;
    }
    if (spec->lr.decay == JOB_DECAY_PLATEAU && !isnan(rate))
        monitor_plateau(m, spec, value, rate);
    return monitor_rank(&m->best, spec, step, value);
}

bool monitor_is_over(const struct monitor *m, const struct job_spec *spec)
{
    return spec->eval.patience > 0 && m->waited >= (double)spec->eval.patience;
}

json_t *monitor_to_json(const struct monitor *m, const struct job_spec *spec)
{
    json_t *steps = json_array(), *values = json_array();
    json_t *out = json_pack("{s:s, s:o, s:o}", "monitor", monitor_name(spec), CHECKPOINT_BEST,
                            steps, "values", values);

    for (size_t i = 0; i < m->best.count; i++) {
        json_array_append_new(steps, json_integer(m->best.steps[i]));
        json_array_append_new(values, json_number(m->best.values[i]));
    }
    for (size_t i = 0; i < NUMBERS; i++) {
        const double *number = (const double *)((const char *)m + numbers[i].offset);
        json_object_set_new(out, numbers[i].name, json_number_or_null(*number));
    }
    return out;
}

void monitor_from_json(struct monitor *m, const json_t *json, const struct job_spec *spec)
{
    bool same = strcmp(json_get_text(json, "monitor", ""), monitor_name(spec)) == 0;
    const json_t *steps = json_object_get(json, CHECKPOINT_BEST),
                 *values = json_object_get(json, "values");

    *m = (struct monitor){0};
    for (size_t i = 0; i < NUMBERS; i++) /* the rate stays reduced in any case */
        *(double *)((char *)m + numbers[i].offset) =
            json_get_number(same || i == 0 ? json : NULL, numbers[i].name, numbers[i].first);
    for (size_t i = 0; i < json_array_size(steps) && same; i++)
        monitor_rank(&m->best, spec, json_integer_value(json_array_get(steps, i)),
                     json_number_value(json_array_get(values, i)));
}
