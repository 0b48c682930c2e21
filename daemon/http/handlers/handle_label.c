/* PATCH /v1/jobs/ID: a JSON Merge Patch (RFC 7396), extended by add_tags and remove_tags for
 * concurrent changes of single tags. */
#include <stdlib.h>
#include <string.h>

#include "common/job/job_value.h"
#include "common/json.h"
#include "common/text.h"
#include "daemon/http/access/auth.h"
#include "daemon/http/handlers/job_json.h"
#include "daemon/http/routes.h"
#include "daemon/job/job_requests.h"

/* option: the key of the job document that accepts the same values. */
static const struct label_key {
    const char *name, *option;
    bool null; /* null is allowed */
} label_keys[] = {
    {"name",        "/name", true },
    {"tags",        "/tags", true },
    {"add_tags",    "/tags", false},
    {"remove_tags", "/tags", false},
    {"note",        "/note", true },
};
#define LABEL_KEYS (sizeof label_keys / sizeof label_keys[0])

static void label_refuse_key(const char *name, struct problems *problems)
{
    struct suggest near = {.word = name};
    char *pointer = problem_pointer("", name);
    size_t best = 0;

    for (size_t i = 0; i < LABEL_KEYS; i++) {
        const char *before = near.best;
        text_suggest(&near, label_keys[i].name);
        best = near.best != before ? i : best;
    }
    char *suggestion = near.best ? problem_pointer("", label_keys[best].name) : NULL;
    problems_add(problems, pointer, suggestion,
                 "cannot be changed here, only name, tags, add_tags, remove_tags and note");
    free(suggestion);
    free(pointer);
}

static void label_check_option(const struct label_key *key, const json_t *value,
                               struct problems *problems)
{
    struct problems own = {0};

    job_value_check(job_option_find(key->option), value, &own);
    for (size_t i = 0; i < own.count; i++) {
        const struct problem *p = &own.items[i];
        json_t *pointer = json_sprintf("/%s%s", key->name, p->pointer + strlen(key->option));
        problems_add(problems, json_string_value(pointer), p->suggestion, "%s", p->message);
        json_decref(pointer);
    }
    problems_clear(&own);
}

static void label_check(json_t *change, struct problems *problems)
{
    const char *name;
    json_t *value;

    json_object_foreach (change, name, value) {
        const struct label_key *key = NULL;
        for (size_t i = 0; i < LABEL_KEYS && !key; i++)
            key = strcmp(label_keys[i].name, name) == 0 ? &label_keys[i] : NULL;
        if (!key)
            label_refuse_key(name, problems);
        else if (!json_is_null(value) || !key->null)
            label_check_option(key, value, problems);
    }
}

int handle_job_label(const struct request *q, struct reply *r, struct error *e)
{
    struct problems problems = {0};
    struct store_job job;
    json_t *change = json_document_parse(q->body, q->body_bytes, e);
    int status = change ? auth_check_job(q, q->id, e) : -(int)e->code;

    if (!status)
        label_check(change, &problems);
    if (!status && !problems.count)
        status = job_label(q->app->jobs, q->id, change, request_by(q), e);
    json_decref(change);
    if (!status && problems.count)
        status = reply_refusal(r, ERR_INVALID, &problems);
    else if (!status)
        status = store_job_get(q->app->store, q->id, &job, e) ? -(int)e->code
                                                              : reply_job(r, q, 200, &job, e);
    problems_clear(&problems);
    return status;
}
