#include "common/job/job_value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/text.h"
#include "common/xalloc.h"
#include "common/system/host.h"

static bool job_value_number_right(const struct job_option *o, const json_t *v)
{
    double x = json_number_value(v);

    if (!json_is_number(v) || !isfinite(x))
        return false;
    return (o->above_min ? x > o->min : x >= o->min) && (o->below_max ? x < o->max : x <= o->max);
}

/* 2.0 is an integer too, as in JSON Schema. */
static bool job_value_integer_right(const struct job_option *o, const json_t *v)
{
    return job_value_number_right(o, v) && json_number_value(v) == trunc(json_number_value(v));
}

static bool job_value_string_right(const struct job_option *o, const json_t *v)
{
    const char *text = json_string_value(v);
    size_t length = !text ? 0
                    : o->text == JOB_TEXT_PATH
                        ? json_string_length(v) /* the kernel limits bytes, not characters */
                        : text_length(text);

    return text && (double)length >= o->min && (double)length <= o->max;
}

/* Returns -1 if the value is no choice. */
static int job_value_choice_index(const struct job_option *o, const json_t *v)
{
    const char *text = json_string_value(v), *choice;

    for (int i = 0; text && (choice = job_option_choice(o, (size_t)i)); i++)
        if (strcmp(text, choice) == 0)
            return i;
    return -1;
}

static bool job_value_list_right(const struct job_option *o, const json_t *v)
{
    size_t count = json_array_size(v);

    if (!json_is_array(v) || count > o->most)
        return false;
    for (size_t i = 0; i < count; i++) {
        const json_t *element = json_array_get(v, i);
        if (o->type == JOB_OPTION_STRINGS ? !job_value_string_right(o, element)
            : o->whole                    ? !job_value_integer_right(o, element)
                                          : !job_value_number_right(o, element))
            return false;
    }
    return true;
}

static bool job_value_map_right(const struct job_option *o, const json_t *v)
{
    const char *name;
    json_t *value;

    if (!json_is_object(v) || json_object_size(v) > o->most)
        return false;
    json_object_foreach ((json_t *)(uintptr_t)v, name, value)
        if (!*name || strlen(name) > o->name_max || !job_value_string_right(o, value))
            return false;
    return true;
}

static bool job_value_steps_right(const struct job_option *o, const json_t *v)
{
    const json_t *first = json_array_get(v, 0), *last = json_array_get(v, 1);

    return json_array_size(v) == 2 && job_value_integer_right(o, first) &&
           job_value_integer_right(o, last) && json_number_value(first) <= json_number_value(last);
}

static bool value_right(const struct job_option *o, const json_t *v)
{
    if (json_is_null(v))
        return o->nullable;
    switch (o->type) {
    case JOB_OPTION_BOOLEAN:
        return json_is_boolean(v);
    case JOB_OPTION_INTEGER:
        return job_value_choice_index(o, v) >= 0 || job_value_integer_right(o, v);
    case JOB_OPTION_NUMBER:
        return job_value_number_right(o, v);
    case JOB_OPTION_STRING:
        return job_value_string_right(o, v);
    case JOB_OPTION_CHOICE:
    case JOB_OPTION_ARCH:
        return job_value_choice_index(o, v) >= 0;
    case JOB_OPTION_STRINGS:
    case JOB_OPTION_NUMBERS:
        return job_value_choice_index(o, v) >= 0 || job_value_list_right(o, v);
    case JOB_OPTION_STEPS:
        return job_value_steps_right(o, v);
    case JOB_OPTION_MAP:
        return job_value_map_right(o, v);
    case JOB_OPTION_SIZES: /* handled by job_value_check */
    case JOB_OPTION_NOTIFY:
        break;
    }
    return false;
}

static void job_value_fraction_words(const struct job_option *o, const json_t *v, char text[64])
{
    double value = json_number_value(v);
    bool percent = o->unit && strcmp(o->unit, "fraction") == 0 && value > 1 && value <= 100;

    text[0] = '\0';
    if (percent)
        snprintf(text, 64, "; %.10g %% is %.10g", value, value / 100);
}

static const char *job_value_nearest_choice(const struct job_option *o, const json_t *v)
{
    static const char *const half[] = {"fp16", "float16", "half", "mixed", "amp", "bfloat16"};
    const char *word = json_string_value(v), *choice;

    if (!word)
        return NULL;
    for (size_t i = 0; i < sizeof half / sizeof half[0]; i++)
        if (strcmp(word, half[i]) == 0 && strcmp(o->pointer, "/precision") == 0)
            return "bf16";
    struct suggest near = {.word = word};
    for (size_t i = 0; (choice = job_option_choice(o, i)); i++) {
        text_suggest(&near, choice);
        if (!near.best && strlen(choice) > 2 && strstr(word, choice))
            return choice; /* a word such as "polynomial" */
    }
    return near.best;
}

static bool job_value_option_check_kind(enum job_text kind, const json_t *v, const char *pointer,
                                        struct problems *problems)
{
    if (json_is_null(v) || job_text_right(kind, json_string_value(v)))
        return true;
    char *shown = json_excerpt(v), why[HOST_LIST_WRONG_BYTES] = "";
    if (kind == JOB_TEXT_HOST)
        host_list_expand(json_string_value(v), JOB_HOSTS_MAX, NULL, why);
    problems_add(problems, pointer, NULL, "must be %s, not %s%s%s", job_text_expects(kind),
                 shown ? shown : "this", *why ? ": " : "", why);
    free(shown);
    return false;
}

static bool job_value_check_text(const struct job_option *o, const json_t *v, const char *pointer,
                                 struct problems *problems)
{
    return job_value_option_check_kind(o->text, v, pointer, problems);
}

static bool job_value_check_first(const json_t *v, size_t i, const char *pointer,
                                  struct problems *problems)
{
    for (size_t k = 0; k < i; k++)
        if (json_equal(json_array_get(v, k), json_array_get(v, i))) {
            problems_add(problems, pointer, NULL, "is listed twice: \"%s\"",
                         json_string_value(json_array_get(v, i)));
            return false;
        }
    return true;
}

static bool job_value_check_texts(const struct job_option *o, const json_t *v,
                                  struct problems *problems)
{
    char pointer[80], wrong[HOST_LIST_WRONG_BYTES];
    size_t hosts = 0;

    for (size_t i = 0; i < json_array_size(v); i++) {
        snprintf(pointer, sizeof pointer, "%s/%zu", o->pointer, i);
        if (!job_value_check_text(o, json_array_get(v, i), pointer, problems) ||
            (o->unique && !job_value_check_first(v, i, pointer, problems)))
            return false;
        if (o->text == JOB_TEXT_HOST)
            hosts +=
                host_list_expand(json_string_value(json_array_get(v, i)), o->most, NULL, wrong);
        if (hosts > o->most) {
            problems_add(problems, o->pointer, NULL, "names more than %zu hosts", o->most);
            return false;
        }
    }
    return true;
}

static bool job_value_check_map(const struct job_option *o, const json_t *v,
                                struct problems *problems)
{
    const char *key;
    json_t *value;

    json_object_foreach ((json_t *)(uintptr_t)v, key, value) {
        char *pointer = problem_pointer(o->pointer, key);
        json_t *name = json_string(key);
        bool right = job_value_option_check_kind(o->names, name, pointer, problems) &&
                     job_value_check_text(o, value, pointer, problems);
        json_decref(name);
        free(pointer);
        if (!right)
            return false;
    }
    return true;
}

bool job_value_check(const struct job_option *o, const json_t *v, struct problems *problems)
{
    char expects[JOB_OPTION_EXPECTS_BYTES], fraction[64];
    size_t before = problems->count;

    if (o->type == JOB_OPTION_SIZES &&
        (job_sizes_check(v, o->pointer, o->min, o->max, problems) || problems->count > before))
        return problems->count == before;
    if (o->type == JOB_OPTION_NOTIFY && json_is_array(v) && json_array_size(v) <= o->most)
        return notice_rules_check(v, o->pointer, problems);
    if (value_right(o, v))
        return o->type == JOB_OPTION_STRING    ? job_value_check_text(o, v, o->pointer, problems)
               : o->type == JOB_OPTION_STRINGS ? job_value_check_texts(o, v, problems)
               : o->type == JOB_OPTION_MAP     ? job_value_check_map(o, v, problems)
                                               : true;
    job_option_expects(o, expects);
    char *shown = json_excerpt(v);
    if (shown && o->most && json_array_size(v) > o->most && strlen(shown) > 30)
        sprintf(shown, "%zu of them", json_array_size(v));
    job_value_fraction_words(o, v, fraction);
    problems_add(problems, o->pointer, job_value_nearest_choice(o, v), "must be %s, not %s%s",
                 expects, shown ? shown : "this", fraction);
    free(shown);
    return false;
}

static void *job_value_option_field(const struct job_option *o, const struct job_spec *spec)
{
    return (char *)(uintptr_t)spec + o->offset;
}

static void *job_value_flag_of(const struct job_option *o, const struct job_spec *spec)
{
    return (char *)(uintptr_t)spec + o->flag;
}

static char *job_value_option_copy_text(const char *text)
{
    return xstrdup(text);
}

void job_value_clear(const struct job_option *o, struct job_spec *spec)
{
    if (o->type == JOB_OPTION_STRING || o->type == JOB_OPTION_ARCH) {
        free(*(char **)job_value_option_field(o, spec));
        *(char **)job_value_option_field(o, spec) = NULL;
    } else if (o->type == JOB_OPTION_STRINGS || o->type == JOB_OPTION_MAP) {
        char ***list = job_value_option_field(o, spec);
        size_t *count = job_value_flag_of(o, spec);
        for (size_t i = 0; i < *count; i++)
            free((*list)[i]);
        free(*list);
        *list = NULL;
        *count = 0;
    } else if (o->type == JOB_OPTION_NOTIFY) {
        notice_rules_clear(job_value_option_field(o, spec));
    }
}

static char **job_value_new_list(size_t count)
{
    return count ? xcalloc(count + 1, sizeof(char *)) : NULL; /* terminated by NULL */
}

static void job_value_store_map(const struct job_option *o, const json_t *v, struct job_spec *spec)
{
    char **list = job_value_new_list(json_object_size(v));
    const char *name;
    json_t *value;
    size_t i = 0;

    *(char ***)job_value_option_field(o, spec) = list;
    *(size_t *)job_value_flag_of(o, spec) = json_object_size(v);
    json_object_foreach ((json_t *)(uintptr_t)v, name, value)
        if (asprintf(&list[i++], "%s=%s", name, json_string_value(value)) < 0)
            must_alloc(NULL);
}

static size_t job_value_store_hosts(const json_t *v, char **list)
{
    char wrong[HOST_LIST_WRONG_BYTES];
    size_t count = 0;

    for (size_t i = 0; i < json_array_size(v); i++)
        count += host_list_expand(json_string_value(json_array_get(v, i)), JOB_HOSTS_MAX - count,
                                  &list[count], wrong);
    return count;
}

static void job_value_store_strings(const struct job_option *o, const json_t *v,
                                    struct job_spec *spec)
{
    size_t count = json_is_string(v) ? 1 : json_array_size(v);
    char **list = job_value_new_list(count && o->text == JOB_TEXT_HOST ? JOB_HOSTS_MAX : count);

    if (o->text == JOB_TEXT_HOST)
        count = job_value_store_hosts(v, list);
    else
        for (size_t i = 0; i < count; i++)
            list[i] = job_value_option_copy_text(
                json_string_value(json_is_string(v) ? v : json_array_get(v, i)));
    *(char ***)job_value_option_field(o, spec) = list;
    *(size_t *)job_value_flag_of(o, spec) = count;
}

static int64_t job_value_option_integer(const struct job_option *o, const json_t *v)
{
    if (json_is_string(v))
        return (int64_t)o->min - 1 - job_value_choice_index(o, v);
    return json_is_integer(v) ? json_integer_value(v) : (int64_t)json_real_value(v);
}

static void job_value_store_numbers(const struct job_option *o, const json_t *v,
                                    struct job_spec *spec)
{
    double *numbers = job_value_option_field(o, spec);
    size_t count = json_is_string(v) ? 1 : json_array_size(v);

    for (size_t i = 0; i < count; i++)
        numbers[i] = json_is_string(v) ? (double)job_value_option_integer(o, v)
                                       : json_number_value(json_array_get(v, i));
    *(size_t *)job_value_flag_of(o, spec) = count;
}

static void job_value_store_steps(const struct job_option *o, const json_t *v,
                                  struct job_spec *spec)
{
    int64_t *pair = job_value_option_field(o, spec);

    pair[0] = job_value_option_integer(o, json_array_get(v, 0));
    pair[1] = job_value_option_integer(o, json_array_get(v, 1));
}
_Static_assert(offsetof(struct job_spec, profile.last_step) ==
                   offsetof(struct job_spec, profile.first_step) + sizeof(int64_t),
               "the pair is stored as an array");

static void job_value_store_sizes(const struct job_option *o, const json_t *v,
                                  struct job_spec *spec)
{
    struct job_sizes *sizes = job_value_flag_of(o, spec);

    job_sizes_read(v, sizes);
    *(int64_t *)job_value_option_field(o, spec) = sizes->at[sizes->count - 1].size;
}

void job_value_store(const struct job_option *o, const json_t *v, struct job_spec *spec)
{
    bool is_null = json_is_null(v);

    job_value_clear(o, spec);
    if (o->flag && o->nullable && o->type != JOB_OPTION_STRINGS)
        *(bool *)job_value_flag_of(o, spec) = !is_null;
    if (is_null)
        return;
    switch (o->type) {
    case JOB_OPTION_BOOLEAN:
        *(bool *)job_value_option_field(o, spec) = json_is_true(v);
        break;
    case JOB_OPTION_INTEGER:
        *(int64_t *)job_value_option_field(o, spec) = job_value_option_integer(o, v);
        break;
    case JOB_OPTION_NUMBER:
        *(double *)job_value_option_field(o, spec) = json_number_value(v);
        break;
    case JOB_OPTION_STRING:
    case JOB_OPTION_ARCH:
        *(char **)job_value_option_field(o, spec) =
            job_value_option_copy_text(json_string_value(v));
        break;
    case JOB_OPTION_CHOICE:
        *(int *)job_value_option_field(o, spec) = job_value_choice_index(o, v);
        break;
    case JOB_OPTION_STRINGS:
        job_value_store_strings(o, v, spec);
        break;
    case JOB_OPTION_NUMBERS:
        job_value_store_numbers(o, v, spec);
        break;
    case JOB_OPTION_STEPS:
        job_value_store_steps(o, v, spec);
        break;
    case JOB_OPTION_MAP:
        job_value_store_map(o, v, spec);
        break;
    case JOB_OPTION_SIZES:
        job_value_store_sizes(o, v, spec);
        break;
    case JOB_OPTION_NOTIFY:
        notice_rules_read(v, job_value_option_field(o, spec));
        break;
    }
}

/* Prints 90 rather than 90.0. */
static json_t *job_value_number_to_json(double x)
{
    return x == trunc(x) && fabs(x) < 1e15 ? json_integer((json_int_t)x) : json_number(x);
}

static json_t *job_value_word_to_json(const struct job_option *o, int64_t stored)
{
    return json_string(o->choices[(int64_t)o->min - 1 - stored]);
}

static json_t *job_value_list_to_json(const struct job_option *o, const struct job_spec *spec)
{
    size_t count = *(size_t *)job_value_flag_of(o, spec);
    const double *numbers = job_value_option_field(o, spec);

    if (o->type == JOB_OPTION_NUMBERS && o->choices && count && numbers[0] < o->min)
        return job_value_word_to_json(o, (int64_t)numbers[0]);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list,
                              o->type == JOB_OPTION_STRINGS
                                  ? json_string((*(char ***)job_value_option_field(o, spec))[i])
                                  : job_value_number_to_json(numbers[i]));
    if (count == 1 && job_value_choice_index(o, json_array_get(list, 0)) >= 0) {
        json_t *word = json_incref(json_array_get(list, 0));
        json_decref(list);
        return word;
    }
    return list;
}

static json_t *job_value_map_to_json(const struct job_option *o, const struct job_spec *spec)
{
    size_t count = *(size_t *)job_value_flag_of(o, spec);
    json_t *map = json_object();

    for (size_t i = 0; i < count; i++) {
        const char *pair = (*(char ***)job_value_option_field(o, spec))[i],
                   *equals = strchr(pair, '=');
        json_object_setn_new(map, pair, (size_t)(equals - pair), json_string(equals + 1));
    }
    return map;
}

static json_t *job_value_sizes_to_json(const struct job_option *o, const struct job_spec *spec)
{
    const struct job_sizes *sizes = job_value_flag_of(o, spec);

    return sizes->count > 1 ? job_sizes_to_json(sizes)
                            : json_integer(*(const int64_t *)job_value_option_field(o, spec));
}

json_t *job_value_load(const struct job_option *o, const struct job_spec *spec)
{
    const int64_t *integers = job_value_option_field(o, spec);
    const char *text;

    if (o->type == JOB_OPTION_STRINGS) {
        if (o->nullable && !*(char ***)job_value_option_field(o, spec))
            return json_null();
    } else if (o->flag && o->nullable && !*(bool *)job_value_flag_of(o, spec)) {
        return json_null();
    }
    switch (o->type) {
    case JOB_OPTION_BOOLEAN:
        return json_boolean(*(bool *)job_value_option_field(o, spec));
    case JOB_OPTION_INTEGER:
        return o->choices && (double)*integers < o->min ? job_value_word_to_json(o, *integers)
                                                        : json_integer(*integers);
    case JOB_OPTION_NUMBER:
        return job_value_number_to_json(*(double *)job_value_option_field(o, spec));
    case JOB_OPTION_STRING:
    case JOB_OPTION_ARCH:
        text = *(char **)job_value_option_field(o, spec);
        return text ? json_string(text) : json_null();
    case JOB_OPTION_CHOICE:
        return json_string(o->choices[*(int *)job_value_option_field(o, spec)]);
    case JOB_OPTION_STRINGS:
    case JOB_OPTION_NUMBERS:
        return job_value_list_to_json(o, spec);
    case JOB_OPTION_STEPS:
        return json_pack("[I, I]", (json_int_t)integers[0], (json_int_t)integers[1]);
    case JOB_OPTION_MAP:
        return job_value_map_to_json(o, spec);
    case JOB_OPTION_SIZES:
        return job_value_sizes_to_json(o, spec);
    case JOB_OPTION_NOTIFY:
        return notice_rules_to_json(job_value_option_field(o, spec));
    }
    return NULL;
}
