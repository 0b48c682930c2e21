#include "client/document.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/api.h"
#include "common/dataset/job_data.h"
#include "common/job/job_document.h"
#include "common/job/job_value.h"
#include "common/json.h"
#include "common/system/file.h"
#include "common/text.h"

#define POINTER_BYTES 128

static const struct job_option *document_find_option(const char *pointer, struct error *e)
{
    const struct job_option *option = job_option_find(pointer);
    const char *near = option ? NULL : job_option_nearest(pointer);
    char key[PROBLEM_KEY_BYTES], other[PROBLEM_KEY_BYTES];

    if (option)
        return option;
    problem_key(pointer, key);
    if (job_option_is_group(pointer))
        error_set(e, ERR_USAGE, "%s is a group of keys: set one of them, e.g. %s.KEY=VALUE", key,
                  key);
    else if (near)
        error_set(e, ERR_USAGE, "there is no key %s in a job document; did you mean %s?", key,
                  problem_key(near, other));
    else
        error_set(e, ERR_USAGE, "there is no key %s in a job document: see man train-job", key);
    return NULL;
}

/* Returns the text itself for a key that takes a string, even if it looks like a number
 * (name=2024). */
static json_t *document_parse_value(const struct job_option *option, const char *text)
{
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);

    if (option->type == JOB_OPTION_STRING && value && !json_is_string(value) &&
        !json_is_null(value)) {
        json_decref(value);
        value = NULL;
    }
    return value ? value : json_string(text);
}

int document_set(json_t *document, const char *text, struct error *e)
{
    struct problems problems = {0};
    char pointer[POINTER_BYTES], key[PROBLEM_KEY_BYTES];
    const char *equals = strchr(text, '=');

    if (!equals || equals == text || (size_t)(equals - text) >= POINTER_BYTES - 1)
        return error_set(e, ERR_USAGE, "\"%s\" is not KEY=VALUE, e.g. lr.base=0.2", text);
    snprintf(pointer, sizeof pointer, "%s%.*s", *text == '/' ? "" : "/", (int)(equals - text),
             text);
    for (char *c = pointer; *text != '/' && (c = strchr(c, '.'));)
        *c = '/';
    const struct job_option *option = document_find_option(pointer, e);
    if (!option)
        return -(int)ERR_USAGE;
    json_t *value = document_parse_value(option, equals + 1);
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

int document_set_all(json_t *document, const struct cmd_args *args, struct error *e)
{
    int status = 0;

    for (int i = 0; i < args->repeated_count && !status; i++)
        status = document_set(document, args->repeated[i], e);
    return status;
}

int document_refuse(const struct problems *problems)
{
    const struct problem *first = &problems->items[0];
    char key[PROBLEM_KEY_BYTES];
    struct error e;

    if (problems->count == 1)
        error_set(&e, ERR_INVALID, "%s%s%s",
                  *first->pointer ? problem_key(first->pointer, key) : "",
                  *first->pointer ? ": " : "", first->message);
    else
        error_set(&e, ERR_INVALID, "the document has %zu problems, listed in \"errors\"",
                  problems->count);
    if (client.json)
        return cmd_fail_json(&e, problems_to_json(problems));
    json_t *problem =
        json_pack("{s:s, s:o}", "detail", e.text, "errors", problems_to_json(problems));
    char *text = api_problem_words(problem), *safe = text_escape_copy(text, "\n");
    fprintf(stderr, "trainctl: %s\n", safe);
    free(safe);
    free(text);
    json_decref(problem);
    return error_type(ERR_INVALID)->exit_code;
}

int document_images(const struct cmd_args *args, const char *option, int64_t *images,
                    struct error *e)
{
    const char *text = cmd_value(args, option);
    const char *end;
    long long number;

    *images = 0;
    if (!text)
        return 0;
    if (!cmd_whole(text, &end, &number) || *end || number < 1)
        return error_set(e, ERR_USAGE, "--%s: \"%s\" is not a number of images, 1 or more", option,
                         text);
    *images = number;
    return 0;
}

int document_state_images(struct job_spec *spec, const struct cmd_args *args, struct error *e)
{
    int64_t train, eval;

    if (document_images(args, "train-images", &train, e) ||
        document_images(args, "eval-images", &eval, e))
        return -(int)e->code;
    if (train) {
        spec->data.has_train_images = true;
        spec->data.train_images = train;
    }
    if (eval) {
        spec->data.has_eval_images = true;
        spec->data.eval_images = eval;
    }
    return 0;
}

int document_count(struct job_spec *spec, struct plan_inputs *inputs, json_t *remarks,
                   struct error *e)
{
    bool trains = spec->mode == JOB_MODE_TRAIN;

    *inputs = (struct plan_inputs){.train_images = -1, .eval_images = -1};
    const char *pointer;
    int status = plan_inputs_count(spec, inputs, &pointer, e);
    if (status && trains && inputs->train_images < 1) {
        bool elsewhere =
            access(spec->data.train, F_OK) != 0; /* otherwise it exists here and is invalid */
        error_prefix(e, elsewhere ? "data.train: the images cannot be counted here "
                                    "(set data.train_images or --train-images N)"
                                  : "data.train");
        return status;
    }
    if (status && access(spec->data.eval, F_OK) == 0)
        return error_prefix(e, "data.eval"); /* it exists here */
    if (status) {
        inputs->eval_images = 0;
        json_array_append_new(
            remarks, json_sprintf("the evaluation images cannot be counted here and are left out "
                                  "of the plan (set data.eval_images or --eval-images N): %s",
                                  e->text));
    }
    return 0;
}

/* Does not resolve symbolic links, because workers may see different ones. */
static json_t *document_absolute_of(const char *path, struct error *e)
{
    char folder[PATH_MAX], *real = NULL;
    json_t *absolute = NULL;

    while (strncmp(path, "./", 2) == 0)
        path += 2;
    bool known = getcwd(folder, sizeof folder);
    if (!known)
        error_set_errno(e, errno, "cannot resolve %s: the current folder is unknown", path);
    else if (strstr(path, "..") && (real = realpath(path, NULL)))
        absolute = json_string(real);
    else
        absolute = json_sprintf("%s/%s", strcmp(folder, "/") ? folder : "", path);
    if (known && !absolute)
        error_set(e, ERR_INVALID, "cannot name %s in a job: its absolute path is not UTF-8", path);
    free(real);
    return absolute;
}

static int document_make_absolute(json_t *object, const char *key, bool *changed, struct error *e)
{
    const char *path = json_string_value(json_object_get(object, key));

    if (!path || !*path || *path == '/' || strcmp(path, "synthetic") == 0)
        return 0;
    json_t *absolute = document_absolute_of(path, e);
    if (!absolute)
        return -(int)e->code;
    json_object_set_new(object, key, absolute);
    *changed = true;
    return 0;
}

int document_paths_absolute(json_t *document, bool *changed, struct error *e)
{
    json_t *data = json_object_get(document, "data");

    *changed = false;
    if (document_make_absolute(data, "train", changed, e) ||
        document_make_absolute(data, "eval", changed, e) ||
        document_make_absolute(json_object_get(document, "model"), "init", changed, e))
        return -(int)e->code;
    return 0;
}

int sweep_paths_absolute(json_t *sweep, bool *changed, struct error *e)
{
    static const char *const pointers[] = {"/data/train", "/data/eval", "/model/init"};
    const json_t *parameters = json_object_get(sweep, "parameters");
    int status = document_paths_absolute(json_object_get(sweep, "base"), changed, e);

    for (size_t p = 0; p < sizeof pointers / sizeof pointers[0]; p++) {
        json_t *values = json_object_get(parameters, pointers[p]);
        for (size_t i = 0; !status && i < json_array_size(values); i++) {
            json_t *one = json_pack("{s:O}", "path", json_array_get(values, i));
            status = document_make_absolute(one, "path", changed, e);
            json_array_set(values, i, json_object_get(one, "path"));
            json_decref(one);
        }
    }
    return status;
}

static const char *document_source(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

int document_read(const char *path, char **text, size_t *bytes, struct error *e)
{
    int status = file_read_text(path, JSON_DOCUMENT_LIMIT_BYTES, text, bytes, e);

    if (status || strspn(*text, " \t\r\n") < *bytes)
        return status;
    free(*text);
    *text = NULL;
    return error_set(e, ERR_USAGE, "%s is empty; it should contain a JSON document",
                     document_source(path));
}

static json_t *document_load(const char *path, struct error *e)
{
    char *text;
    size_t bytes;

    if (document_read(path, &text, &bytes, e))
        return NULL;
    json_t *document = json_document_parse(text, bytes, e);
    if (!document)
        error_prefix(e, "%s", document_source(path));
    free(text);
    return document;
}

int document_open(const char *path, const struct cmd_args *args, struct job_spec **spec)
{
    struct problems problems = {0};
    struct error e;
    json_t *document = document_load(path, &e);
    int code = 0;
    bool changed;

    *spec = NULL;
    if (!document || document_set_all(document, args, &e) ||
        document_paths_absolute(document, &changed, &e)) {
        json_decref(document);
        return cmd_fail(&e);
    }
    *spec = job_data_read(document, &problems);
    if (problems.count) {
        struct error ignored; /* also checks the data, to report all problems at once */
        if (*spec && document_state_images(*spec, args, &ignored) == 0)
            plan_inputs_look(*spec, false, &problems);
        code = document_refuse(&problems);
        job_spec_destroy(*spec);
        *spec = NULL;
    }
    json_decref(document);
    problems_clear(&problems);
    return code;
}
