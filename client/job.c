#include "client/job.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/api.h"
#include "client/views/format.h"
#include "common/buffer.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/xalloc.h"

static const struct {
    const char *state, *color;
    int outcome;
} states[] = {
    {"queued",     NULL,     -1 },
    {"starting",   "cyan",   -1 },
    {"running",    "blue",   -1 },
    {"evaluating", "blue",   -1 },
    {"succeeded",  "green",  0  },
    {"failed",     "red",    1  },
    {"cancelled",  "yellow", 130},
};

#define READ_text(name)   job->name = json_get_text(json, #name, "");
#define READ_number(name) job->name = json_get_number(json, #name, NAN);
#define READ_none(name)
#define READ(name, storage, column, form, notice) JOB_MEMBER_##form(READ, name)

void job_read(const json_t *json, struct job *job)
{
    const json_t *left = json_object_get(json, "time_left");

    JOB_FIELDS(READ)
    job->checkpoint_step = json_get_number(json, "checkpoint_step", NAN);
    job->id = (long)json_integer_value(json_object_get(json, "id"));
    job->left = json_get_number(left, "value", NAN);
    job->left_low = json_get_number(left, "low", NAN);
    job->left_high = json_get_number(left, "high", NAN);
    job->read_at = clock_now();
}

char *job_tags_words(const json_t *json)
{
    struct buffer words = BUFFER((size_t)64 << 10);
    const json_t *tag;
    size_t i;

    buffer_printf(&words, "%s", "");
    json_array_foreach (json_object_get(json, "tags"), i, tag)
        buffer_printf(&words, "%s%s", i ? ", " : "", json_string_value(tag));
    return must_alloc(buffer_take(&words, NULL));
}

char *job_note_words(const json_t *json)
{
    char *words = xstrdup(json_get_text(json, "note", ""));

    for (char *at = words; (at = strpbrk(at, "\n\t"));)
        *at = ' ';
    return words;
}

static void job_read_number(double *field, const json_t *body, const char *key)
{
    double value = json_get_number(body, key, NAN);

    if (!isnan(value))
        *field = value;
}

bool job_take_event(struct job *job, const char *type, const json_t *body)
{
    bool step = strcmp(type, "step") == 0, eval = strcmp(type, "eval") == 0;

    bool counts = job_evaluates_only(job) && (eval || strcmp(type, "eval_progress") == 0);

    if (counts)
        job_read_number(&job->evaluated_images, body, "images");
    if (!step && !eval)
        return counts;
    job_read_number(&job->step, body, "step");
    job_read_number(&job->epoch, body, "epoch");
    if (step) {
        job_read_number(&job->loss, body, "loss");
        job_read_number(&job->lr, body, "lr");
        job_read_number(&job->images_per_sec, body, "images_per_sec");
    } else {
        job_read_number(&job->top1, body, "top1");
        job_read_number(&job->top5, body, "top5");
    }
    return true;
}

int job_fetch(long id, json_t **json, struct job *job, struct error *e)
{

    int code = api_call("GET", json, e, "/v1/jobs/%ld", id);
    if (code == 0)
        job_read(*json, job);
    return code;
}

int job_outcome(const struct job *job)
{
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++)
        if (strcmp(states[i].state, job->state) == 0)
            return states[i].outcome;
    return -1;
}

bool job_ended(const struct job *job)
{
    return job_outcome(job) >= 0;
}

const char *job_state_color(const char *state)
{
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++)
        if (strcmp(states[i].state, state) == 0)
            return states[i].color;
    return NULL;
}

static double job_training_left(const struct job *job)
{
    if (!(job->images_per_sec > 0) || isnan(job->train_steps) || isnan(job->global_batch))
        return NAN;
    return (job->train_steps - (isnan(job->step) ? 0 : job->step)) * job->global_batch /
           job->images_per_sec;
}

struct job_left job_time_left(const struct job *job, double now)
{
    double passed = now - job->read_at;

    if (job_ended(job))
        return (struct job_left){NAN, NAN, NAN};
    if (isnan(job->left))
        return (struct job_left){job->step < job->train_steps ? job_training_left(job) : NAN, NAN,
                                 NAN};
    return (struct job_left){fmax(job->left - passed, 0), fmax(job->left_low - passed, 0),
                             fmax(job->left_high - passed, 0)};
}

char *job_left_words(char *text, size_t bytes, struct job_left left)
{
    char value[FORMAT_BYTES], low[FORMAT_BYTES], high[FORMAT_BYTES];

    format_duration(value, sizeof value, left.value);
    if (isnan(left.low) || isnan(left.high))
        snprintf(text, bytes, "%s", value);
    else
        snprintf(text, bytes, "%s (%s to %s)", value, format_duration(low, sizeof low, left.low),
                 format_duration(high, sizeof high, left.high));
    return text;
}

bool job_evaluates_only(const struct job *job)
{
    return job->train_steps == 0 && job->eval_images > 0;
}

const char *job_time_label(const struct job *job)
{
    return job_evaluates_only(job) ? "time to evaluate" : "time to train";
}

char *job_done_words(char *text, size_t bytes, const struct job *job)
{
    char done[FORMAT_BYTES], all[FORMAT_BYTES];

    if (job_evaluates_only(job))
        snprintf(text, bytes, "%s of %s images",
                 format_count(done, sizeof done, (long long)job->evaluated_images),
                 format_count(all, sizeof all, (long long)job->eval_images));
    else
        snprintf(text, bytes, "step %.0f of %.0f", isnan(job->step) ? 0 : job->step,
                 job->train_steps);
    return text;
}

double job_progress(const struct job *job)
{
    if (job_evaluates_only(job))
        return fmin(1, job->evaluated_images / job->eval_images);
    if (!(job->train_steps > 0) || isnan(job->step))
        return 0;
    return fmin(1, job->step / job->train_steps);
}

void job_print_outcome(const struct job *job)
{
    char text[FORMAT_BYTES];
    const char *between = ": ";

    printf("job %ld %s", job->id, job->state);
    if (*job->reason && job_outcome(job) != 0) {
        printf("%s%s", between, job->reason);
        between = "; ";
    }
    if (!isnan(job->top1)) {
        printf("%stop-1 %s", between, format_percent(text, sizeof text, job->top1));
        between = ", ";
    }
    if (!isnan(job->top5)) {
        printf("%stop-5 %s", between, format_percent(text, sizeof text, job->top5));
        between = ", ";
    }
    if (!isnan(job->images_per_sec) && job_outcome(job) == 0) {
        printf("%s%s", between, format_rate(text, sizeof text, job->images_per_sec));
        between = ", ";
    }
    if (!isnan(job->ttt_seconds))
        printf("%s%s %s", between, job_time_label(job),
               format_duration(text, sizeof text, job->ttt_seconds));
    putchar('\n');
    fflush(stdout);
}
