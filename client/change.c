#include "client/change.h"

#include <stdio.h>
#include <string.h>

#include "common/job/job_options.h"
#include "common/json.h"

#define POINTER_BYTES 128

/* "lr.base" and "/lr/base" are one. */
static void change_pointer_of(const char *key, size_t length, char pointer[POINTER_BYTES])
{
    snprintf(pointer, POINTER_BYTES, "%s%.*s", *key == '/' ? "" : "/", (int)length, key);
    for (char *c = pointer; *key != '/' && (c = strchr(c, '.'));)
        *c = '/';
}

static const struct job_option *change_find_option(const char *pointer, struct error *e)
{
    const struct job_option *option = job_option_find(pointer);
    const char *near = option ? NULL : job_option_nearest(pointer);
    char key[PROBLEM_KEY_BYTES], other[PROBLEM_KEY_BYTES];

    if (option)
        return option;
    problem_key(pointer, key);
    if (job_option_is_group(pointer))
        error_set(e, ERR_USAGE, "%s is a group of keys: set one of them, as in %s.KEY=VALUE", key,
                  key);
    else if (near)
        error_set(e, ERR_USAGE, "there is no key %s in a job document; did you mean %s?", key,
                  problem_key(near, other));
    else
        error_set(e, ERR_USAGE, "there is no key %s in a job document: see man train-job", key);
    return NULL;
}

/* A string where the key takes one, whatever it looks like: a job may be called 2024. */
static json_t *change_parse_value(const struct job_option *option, const char *text)
{
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);

    if (option->type == JOB_OPTION_STRING && value && !json_is_string(value) &&
        !json_is_null(value)) {
        json_decref(value);
        value = NULL;
    }
    return value ? value : json_string(text);
}

int change_apply(json_t *document, const char *text, struct error *e)
{
    struct problems problems = {0};
    char pointer[POINTER_BYTES], key[PROBLEM_KEY_BYTES];
    const char *equals = strchr(text, '=');

    if (!equals || equals == text || (size_t)(equals - text) >= POINTER_BYTES - 1)
        return error_set(e, ERR_USAGE, "\"%s\" is not KEY=VALUE, e.g. lr.base=0.2", text);
    change_pointer_of(text, (size_t)(equals - text), pointer);
    const struct job_option *option = change_find_option(pointer, e);
    if (!option)
        return -(int)ERR_USAGE;
    json_t *value = change_parse_value(option, equals + 1);
    if (!value)
        return error_set(e, ERR_USAGE, "the value of %s is not UTF-8", problem_key(pointer, key));
    if (job_value_check(option, value, &problems)) {
        json_set_at(document, pointer, value);
        return 0;
    }
    json_decref(value);
    const struct problem *p = &problems.items[0];
    error_set(e, ERR_USAGE, "%s: %s%s%s%s", problem_key(pointer, key), p->message,
              p->suggestion ? "; did you mean " : "", p->suggestion ? p->suggestion : "",
              p->suggestion ? "?" : "");
    problems_clear(&problems);
    return -(int)ERR_USAGE;
}

int changes_apply(json_t *document, const struct cmd_args *args, struct error *e)
{
    int status = 0;

    for (int i = 0; i < args->repeated_count && !status; i++)
        status = change_apply(document, args->repeated[i], e);
    return status;
}
