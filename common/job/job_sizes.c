#include "common/job/job_sizes.h"
#include "common/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void job_sizes_expects(double min, double max, char *text, size_t bytes)
{
    snprintf(text, bytes,
             "an integer from %.16g to %.16g, a list [[epoch, size], ...] of at most %d such sizes "
             "that begins at epoch 0 and rises, or an object of the sizes \"from\" and \"to\", the "
             "first and the last epoch of their \"ramp\", and a \"multiple\" (%d)",
             min, max, JOB_SIZES_MAX, JOB_SIZE_MULTIPLE);
}

static bool sizes_is_integer(const json_t *v, double min, double max)
{
    double x = json_number_value(v);

    return json_is_number(v) && x == trunc(x) && x >= min && x <= max;
}

static bool sizes_is_epoch(const json_t *v)
{
    double x = json_number_value(v);

    return json_is_number(v) && x >= 0 && x <= 10000;
}

struct size_bounds {
    const char *pointer;
    double min, max;
};

static void sizes_check_entry(const json_t *list, size_t i, const struct size_bounds *b,
                              struct problems *problems)
{
    const json_t *entry = json_array_get(list, i), *before = i ? json_array_get(list, i - 1) : NULL;
    const json_t *epoch = json_array_get(entry, 0), *size = json_array_get(entry, 1);
    const json_t *last_epoch = json_array_get(before, 0), *last_size = json_array_get(before, 1);
    char at[96];

    snprintf(at, sizeof at, "%s/%zu", b->pointer, i);
    if (json_array_size(entry) != 2) {
        problems_add(problems, at, NULL, "must be a pair [epoch, size]");
        return;
    }
    if (!sizes_is_epoch(epoch))
        problems_add(problems, at, NULL, "must begin with an epoch, a number from 0 to 10000");
    else if (i == 0 && json_number_value(epoch) != 0)
        problems_add(problems, at, NULL, "must be the size from epoch 0 on, not from epoch %.10g",
                     json_number_value(epoch));
    else if (i && sizes_is_epoch(last_epoch) &&
             json_number_value(epoch) <= json_number_value(last_epoch))
        problems_add(problems, at, NULL,
                     "goes back to epoch %.10g after epoch %.10g: epochs must rise",
                     json_number_value(epoch), json_number_value(last_epoch));
    if (!sizes_is_integer(size, b->min, b->max))
        problems_add(problems, at, NULL, "must end with a size, an integer from %.16g to %.16g",
                     b->min, b->max);
    else if (i && sizes_is_integer(last_size, b->min, b->max) &&
             json_number_value(size) < json_number_value(last_size))
        problems_add(problems, at, NULL,
                     "goes back to %.10g pixels after %.10g: sizes must not shrink",
                     json_number_value(size), json_number_value(last_size));
}

static void sizes_check_list(const json_t *list, const struct size_bounds *b,
                             struct problems *problems)
{
    size_t count = json_array_size(list);

    if (count < 1 || count > JOB_SIZES_MAX)
        problems_add(problems, b->pointer, NULL, "must have 1 to %d sizes, not %zu", JOB_SIZES_MAX,
                     count);
    for (size_t i = 0; i < count && i < JOB_SIZES_MAX; i++)
        sizes_check_entry(list, i, b, problems);
}

static void sizes_refuse_key(const char *pointer, const char *key, const char *message,
                             struct problems *problems)
{
    char at[96];

    snprintf(at, sizeof at, "%s/%s", pointer, key);
    problems_add(problems, at, NULL, "%s", message);
}

static void sizes_check_known(const json_t *ramp, const char *pointer, struct problems *problems)
{
    static const char *const known[] = {"from", "to", "ramp", "multiple"};
    const char *key;
    json_t *value;

    json_object_foreach ((json_t *)(uintptr_t)ramp, key, value) {
        bool found = false;
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
            found = found || strcmp(known[i], key) == 0;
        if (found)
            continue;
        char *at = problem_pointer(pointer, key);
        problems_add(problems, at, NULL, "a ramp of sizes has from, to, ramp and multiple only");
        free(at);
    }
}

static void sizes_check_epochs(const json_t *epochs, const char *pointer, struct problems *problems)
{
    const json_t *first = json_array_get(epochs, 0), *last = json_array_get(epochs, 1);

    if (json_array_size(epochs) != 2 || !sizes_is_epoch(first) || !sizes_is_epoch(last))
        sizes_refuse_key(pointer, "ramp", "must be two epochs [first, last] from 0 to 10000",
                         problems);
    else if (json_number_value(last) <= json_number_value(first))
        sizes_refuse_key(pointer, "ramp",
                         "goes backwards: its last epoch must come after its first", problems);
}

static void sizes_check_ends(double from, double to, double multiple, const char *pointer,
                             struct problems *problems)
{
    char message[128];

    if (to < from)
        sizes_refuse_key(pointer, "to", "must not be smaller than from: sizes must not shrink",
                         problems);
    else if ((to - from) / multiple + 1 > JOB_SIZES_MAX) {
        snprintf(message, sizeof message,
                 "makes %.0f sizes, more than %d: take a larger one, or a list of sizes",
                 floor((to - from) / multiple) + 1, JOB_SIZES_MAX);
        sizes_refuse_key(pointer, "multiple", message, problems);
    }
    snprintf(message, sizeof message, "must be a multiple of %.10g (\"multiple\")", multiple);
    if (fmod(from, multiple) != 0)
        sizes_refuse_key(pointer, "from", message, problems);
    if (fmod(to, multiple) != 0)
        sizes_refuse_key(pointer, "to", message, problems);
}

static void sizes_check_ramp(const json_t *ramp, const struct size_bounds *b,
                             struct problems *problems)
{
    const json_t *from = json_object_get(ramp, "from"), *to = json_object_get(ramp, "to");
    const json_t *multiple = json_object_get(ramp, "multiple");
    char range[96];

    snprintf(range, sizeof range, "must be an integer from %.16g to %.16g", b->min, b->max);
    sizes_check_known(ramp, b->pointer, problems);
    if (!sizes_is_integer(from, b->min, b->max))
        sizes_refuse_key(b->pointer, "from", range, problems);
    if (!sizes_is_integer(to, b->min, b->max))
        sizes_refuse_key(b->pointer, "to", range, problems);
    sizes_check_epochs(json_object_get(ramp, "ramp"), b->pointer, problems);
    if (multiple && !sizes_is_integer(multiple, 1, b->max))
        sizes_refuse_key(b->pointer, "multiple", "must be an integer above 0", problems);
    else if (sizes_is_integer(from, b->min, b->max) && sizes_is_integer(to, b->min, b->max))
        sizes_check_ends(json_number_value(from), json_number_value(to),
                         multiple ? json_number_value(multiple) : JOB_SIZE_MULTIPLE, b->pointer,
                         problems);
}

bool job_sizes_check(const json_t *value, const char *pointer, double min, double max,
                     struct problems *problems)
{
    struct size_bounds b = {pointer, min, max};
    size_t before = problems->count;

    if (json_is_array(value))
        sizes_check_list(value, &b, problems);
    else if (json_is_object(value))
        sizes_check_ramp(value, &b, problems);
    else
        return sizes_is_integer(value, min, max);
    return problems->count == before;
}

static void sizes_add(struct job_sizes *s, double epoch, int64_t size)
{
    if (s->count && s->at[s->count - 1].size == size)
        return;
    if (s->count < JOB_SIZES_MAX)
        s->at[s->count++] = (struct job_size){epoch, size};
}

static void sizes_expand(struct job_sizes *s)
{
    double from = (double)s->ramp.from, to = (double)s->ramp.to;
    double multiple = (double)s->ramp.multiple;

    for (double epoch = 0; epoch < s->ramp.last + 1; epoch++) {
        double share = (epoch - s->ramp.first) / (s->ramp.last - s->ramp.first);
        double size = from + (to - from) * fmin(1, fmax(0, share));
        sizes_add(s, epoch, (int64_t)(multiple * floor(size / multiple + 0.5)));
    }
}

static int64_t sizes_integer(const json_t *v)
{
    return (int64_t)json_number_value(v);
}

static void sizes_read_ramp(const json_t *value, struct job_sizes *s)
{
    const json_t *epochs = json_object_get(value, "ramp");
    const json_t *multiple = json_object_get(value, "multiple");

    s->ramps = true;
    s->ramp.from = sizes_integer(json_object_get(value, "from"));
    s->ramp.to = sizes_integer(json_object_get(value, "to"));
    s->ramp.multiple = multiple ? sizes_integer(multiple) : JOB_SIZE_MULTIPLE;
    s->ramp.first = json_number_value(json_array_get(epochs, 0));
    s->ramp.last = json_number_value(json_array_get(epochs, 1));
    sizes_expand(s);
}

void job_sizes_read(const json_t *value, struct job_sizes *sizes)
{
    *sizes = (struct job_sizes){0};
    if (json_is_object(value))
        sizes_read_ramp(value, sizes);
    else if (json_is_array(value))
        for (size_t i = 0; i < json_array_size(value); i++) {
            const json_t *entry = json_array_get(value, i);
            sizes_add(sizes, json_number_value(json_array_get(entry, 0)),
                      sizes_integer(json_array_get(entry, 1)));
        }
    else
        sizes_add(sizes, 0, sizes_integer(value));
}

static json_t *sizes_number(double x)
{
    return x == trunc(x) ? json_integer((json_int_t)x) : json_number(x);
}

json_t *job_sizes_to_json(const struct job_sizes *sizes)
{
    json_t *list = json_array();

    if (sizes->ramps) {
        json_decref(list);
        return json_pack("{s:I, s:I, s:[o, o], s:I}", "from", (json_int_t)sizes->ramp.from, "to",
                         (json_int_t)sizes->ramp.to, "ramp", sizes_number(sizes->ramp.first),
                         sizes_number(sizes->ramp.last), "multiple",
                         (json_int_t)sizes->ramp.multiple);
    }
    for (size_t i = 0; i < sizes->count; i++)
        json_array_append_new(list, json_pack("[o, I]", sizes_number(sizes->at[i].epoch),
                                              (json_int_t)sizes->at[i].size));
    return list;
}
