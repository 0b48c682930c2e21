#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/run/provenance.h"
#include "daemon/http/handlers/job_json.h"
#include "daemon/http/handlers/job_provenance.h"
#include "daemon/http/routes.h"

#define JOBS_MAX 20

struct compared {
    size_t count;
    struct store_job jobs[JOBS_MAX];
    json_t *documents[JOBS_MAX]; /* without the labels, which are also members of the job */
    json_t *files[JOBS_MAX];     /* provenance.json; NULL: it has none */
};

static int compare_parse_ids(const char *text, int64_t *ids, size_t *count, struct error *e)
{
    const char *at = text;

    for (*count = 0; at && *at; at += *at == ',') {
        size_t digits = strspn(at, "0123456789");
        if (digits == 0 || digits > 18 || !strchr(",", at[digits]) || *count == JOBS_MAX)
            break;
        ids[(*count)++] = strtoll(at, NULL, 10);
        at += digits;
    }
    if (*count >= 2 && !*at && at[-1] != ',')
        return 0;
    return error_set(e, ERR_USAGE, "ids must name 2 to %d jobs, for example ids=1,2; not \"%.60s\"",
                     JOBS_MAX, text ? text : "");
}

static int compare_compared_load(const struct request *q, struct compared *c, struct error *e)
{
    int64_t ids[JOBS_MAX];
    size_t count;

    if (compare_parse_ids(request_query(q, "ids"), ids, &count, e))
        return -(int)e->code;
    for (size_t i = 0; i < count; i++) {
        if (store_job_get(q->app->store, ids[i], &c->jobs[i], e))
            return -(int)e->code;
        c->count++;
        c->documents[i] = json_copy((json_t *)store_job_spec(&c->jobs[i]));
        json_object_del(c->documents[i], "tags");
        json_object_del(c->documents[i], "note");
        free(c->jobs[i].spec);
        free(c->jobs[i].plan);
        c->jobs[i].spec = c->jobs[i].plan = NULL; /* summaries omit the documents */
        /* One job's limit is shared by all. */
        c->files[i] = job_provenance_file(q, &c->jobs[i], PROVENANCE_LIMIT_BYTES / count);
    }
    return 0;
}

static void compare_compared_clear(struct compared *c)
{
    for (size_t i = 0; i < c->count; i++) {
        store_job_clear(&c->jobs[i]);
        json_decref(c->documents[i]);
        json_decref(c->files[i]);
    }
}

static json_t *compare_runs(const struct compared *c)
{
    const json_t *attempts[JOBS_MAX];
    json_t *unknown = json_array();

    for (size_t i = 0; i < c->count; i++) {
        attempts[i] = provenance_attempt(c->files[i]);
        if (!attempts[i])
            json_array_append_new(unknown, json_integer((json_int_t)c->jobs[i].id));
    }
    return json_pack("{s:o, s:o}", "differences", provenance_differences(attempts, c->count),
                     "unknown", unknown);
}

int handle_compare(const struct request *q, struct reply *r, struct error *e)
{
    struct compared c = {0};
    struct json_text text = JSON_TEXT;

    if (compare_compared_load(q, &c, e)) {
        compare_compared_clear(&c);
        return -(int)e->code;
    }
    json_t *differences = json_array();
    json_differences(c.documents, c.count, differences);
    json_text_open(&text, NULL, '{');
    json_text_open(&text, "jobs", '[');
    for (size_t i = 0; i < c.count; i++) {
        json_text_open(&text, NULL, '{');
        job_members(&text, q, &c.jobs[i]);
        json_text_close(&text, '}');
    }
    json_text_close(&text, ']');
    json_text_value(&text, "differences", differences);
    json_text_value(&text, "provenance", compare_runs(&c));
    json_text_close(&text, '}');
    compare_compared_clear(&c);
    return reply_json_text(r, 200, &text, e);
}
