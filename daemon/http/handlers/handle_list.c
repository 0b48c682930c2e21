#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/job/job_options.h"
#include "common/job/job_state.h"
#include "common/json.h"
#include "daemon/http/handlers/job_json.h"
#include "daemon/http/routes.h"
#include "daemon/store/job_row.h"
#include "daemon/store/job_search.h"

#define PATH_BYTES 128

struct list_query {
    struct store_job_filter filter;
    char key[PATH_BYTES];
    char *value;
    bool groups;
    char by[PATH_BYTES]; /* "$.optimizer.name"; "": by tag */
};

static int list_parse_states(const char *text, unsigned *states, struct error *e)
{
    char name[32];

    *states = 0;
    while (text && *text) {
        size_t length = strcspn(text, ",");
        snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1),
                 text);
        enum job_state state = job_state_of(name);
        if (state == JOB_STATE_COUNT)
            return error_set(e, ERR_USAGE,
                             "unknown state \"%s\"; the states are queued, starting, running, "
                             "evaluating, succeeded, failed and cancelled",
                             name);
        *states |= 1u << state;
        text += length + (text[length] == ',');
    }
    return 0;
}

static int list_parse_sort(const struct request *q, enum store_sort *sort, struct error *e)
{
    size_t i = *sort;
    int status = request_query_word(q, "sort", store_sort_name, &i, e);

    *sort = (enum store_sort)i;
    return status;
}

/* "ID", or "ID,KEY" if sorted. */
static int list_parse_after(const char *text, struct store_job_filter *filter, struct error *e)
{
    if (!text)
        return 0;
    size_t digits = strspn(text, "0123456789");
    filter->after = digits > 0 && digits <= 18 ? strtoll(text, NULL, 10) : 0;
    filter->after_key = text[digits] == ',' && filter->sort ? text + digits + 1 : NULL;
    if (filter->after > 0 && (!text[digits] || filter->after_key))
        return 0;
    return error_set(
        e, ERR_USAGE,
        "after must be the value of next on the previous page, a whole number from 1%s, "
        "not \"%s\"",
        filter->sort ? ", alone or followed by the sort key" : "", text);
}

static int list_parse_tags(const char *text, struct store_job_filter *filter, struct error *e)
{
    const struct job_option *option = job_option_find("/tags");
    size_t count = 0;

    for (const char *at = text; at && *at; at += *at == ',') {
        char tag[STORE_TAGS_BYTES];
        size_t length = strcspn(at, ",");
        snprintf(tag, sizeof tag, "%.*s", (int)length, at);
        if (++count > option->most || (double)length > option->max ||
            !job_text_right(JOB_TEXT_TAG, tag) || strcmp(at + length, ",") == 0)
            break;
        at += length;
        if (!*at) {
            filter->tags = text;
            return 0;
        }
    }
    return text ? error_set(e, ERR_USAGE,
                            "tag must be a job's tag, or several of them with commas between "
                            "them, not \"%.80s\": each is %s",
                            text, job_text_expects(JOB_TEXT_TAG))
                : 0;
}

/* Looks up a key such as optimizer.name and its path in the document. what: name of the parameter,
 * for errors. */
static const struct job_option *list_find_key(const char *what, const char *text, size_t length,
                                              char path[PATH_BYTES], struct error *e)
{
    char pointer[PATH_BYTES - 8], near[PROBLEM_KEY_BYTES];

    snprintf(pointer, sizeof pointer, "/%.*s", (int)(length < 100 ? length : 100), text);
    for (char *at = pointer; (at = strchr(at, '.'));)
        *at = '/';
    const struct job_option *option = job_option_find(pointer);
    const char *nearest = option ? NULL : job_option_nearest(pointer);
    snprintf(path, PATH_BYTES, "$.%s", pointer + 1);
    for (char *at = path; (at = strchr(at, '/'));)
        *at = '.';
    if (!option)
        error_set(e, ERR_USAGE, "%s: unknown job key %.*s%s%s%s", what,
                  (int)(length < 100 ? length : 100), text, nearest ? "; did you mean " : "",
                  nearest ? problem_key(nearest, near) : "", nearest ? "?" : "");
    return option;
}

/* Parses "optimizer.name=lars"; strings need no quotes. */
static int list_parse_where(const char *text, struct list_query *l, struct error *e)
{
    const char *equals = text ? strchr(text, '=') : NULL;

    if (text && (!equals || equals == text))
        return error_set(
            e, ERR_USAGE,
            "where must be KEY=VALUE, for example where=optimizer.name=lars, not \"%.80s\"", text);
    if (!text)
        return 0;
    const struct job_option *option =
        list_find_key("where", text, (size_t)(equals - text), l->key, e);
    if (!option)
        return -(int)e->code;
    json_t *value = json_loads(equals + 1, JSON_DECODE_ANY, NULL);
    if (option->type == JOB_OPTION_STRING && !json_is_string(value) && !json_is_null(value)) {
        json_decref(value);
        value = NULL;
    }
    if (!value)
        value = json_string(equals + 1);
    l->value = json_to_text(value, JSON_ENCODE_ANY | JSON_COMPACT);
    json_decref(value);
    l->filter.key = l->key;
    l->filter.value = l->value;
    return l->value ? 0 : error_set(e, ERR_USAGE, "the value of where is not UTF-8");
}

static int list_parse_group(const char *text, struct list_query *l, struct error *e)
{
    static const enum store_sort sorts[] = {STORE_SORT_NEWEST, STORE_SORT_NAME,
                                            STORE_SORT_BEST_TOP1, STORE_SORT_TIME};
    bool known = false;

    if (!text)
        return 0;
    l->groups = true;
    for (size_t i = 0; i < sizeof sorts / sizeof sorts[0]; i++)
        known = known || l->filter.sort == sorts[i];
    if (!known)
        return error_set(e, ERR_USAGE,
                         "groups are sorted by name, best_top1 or ttt_seconds, or without sort by "
                         "their number of jobs, not by %s",
                         store_sort_name(l->filter.sort));
    if (l->filter.after)
        return error_set(e, ERR_USAGE, "after cannot be used with group: groups have no pages");
    if (strcmp(text, "tag") == 0 || strcmp(text, "tags") == 0)
        return 0;
    return list_find_key("group", text, strlen(text), l->by, e) ? 0 : -(int)e->code;
}

static int list_parse(const struct request *q, struct list_query *l, struct error *e)
{
    struct store_job_filter *filter = &l->filter;
    const char *states = request_query(q, "state");

    filter->text = request_query(q, "q");
    filter->user = request_query(q, "user");
    filter->name = request_query(q, "name");
    filter->label = request_query(q, "label");
    if (filter->text && !*filter->text)
        filter->text = NULL;
    if (states && !*states)
        return error_set(e, ERR_USAGE, "state must not be empty; for example state=queued,running");
    if (list_parse_states(states, &filter->states, e) ||
        request_query_int(q, "limit", 1, 1000, 50, &filter->limit, e) ||
        request_query_int(q, "sweep", 1, INT64_MAX, 0, &filter->sweep, e) ||
        request_query_int(q, "finished_after", 1, INT64_MAX, 0, &filter->finished_after, e) ||
        list_parse_tags(request_query(q, "tag"), filter, e) ||
        list_parse_where(request_query(q, "where"), l, e) || list_parse_sort(q, &filter->sort, e) ||
        list_parse_after(request_query(q, "after"), filter, e))
        return -(int)e->code;
    return list_parse_group(request_query(q, "group"), l, e);
}

static int list_reply_jobs(const struct request *q, const struct store_job_filter *filter,
                           struct reply *r, struct error *e)
{
    struct store_jobs jobs;
    int64_t total, disk_bytes;
    char *next;

    if (store_disk_bytes(q->app->store, &disk_bytes, e) ||
        store_job_search(q->app->store, filter, &jobs, &total, &next, e))
        return -(int)e->code;
    struct json_text text = JSON_TEXT;
    json_text_open(&text, NULL, '{');
    json_text_open(&text, "jobs", '[');
    for (size_t i = 0; i < jobs.count; i++) {
        json_text_open(&text, NULL, '{');
        job_members(&text, q, &jobs.items[i]);
        json_text_close(&text, '}');
    }
    json_text_close(&text, ']');
    if (next && !filter->sort)
        json_text_raw(&text, "next", next);
    else
        json_text_string(&text, "next", next);
    free(next);
    json_text_integer(&text, "total", total);
    json_text_integer(&text, "disk_bytes", disk_bytes);
    json_text_close(&text, '}');
    store_jobs_clear(&jobs);
    return reply_json_text(r, 200, &text, e);
}

static void list_add_best(struct json_text *t, const struct store_group *g)
{
    if (!g->best_id) {
        json_text_raw(t, "best", NULL);
        return;
    }
    json_text_open(t, "best", '{');
    json_text_integer(t, "id", g->best_id);
    json_text_string(t, "name", g->best_name);
    json_text_real(t, "top1", g->best_top1);
    json_text_integer(t, "step", g->best_step);
    json_text_real(t, "epoch", g->best_epoch);
    json_text_real(t, "at", g->best_at);
    json_text_close(t, '}');
}

static void list_add_group(struct json_text *t, const struct store_group *g)
{
    json_text_open(t, NULL, '{');
    json_text_raw(t, "value", g->value);
    json_text_integer(t, "jobs", g->jobs);
    json_text_open(t, "states", '{');
    for (int i = 0; i < JOB_STATE_COUNT; i++)
        if (g->states[i])
            json_text_integer(t, job_state_name((enum job_state)i), g->states[i]);
    json_text_close(t, '}');
    list_add_best(t, g);
    json_text_rounded(t, "mean_ttt_seconds", g->mean_ttt_seconds);
    json_text_integer(t, "images", g->images);
    json_text_close(t, '}');
}

/* Replies with the groups, in the form of a list without jobs. */
static int list_reply_groups(const struct request *q, const struct list_query *l, struct reply *r,
                             struct error *e)
{
    struct store_job_filter one = l->filter;
    struct store_groups groups;
    struct store_jobs jobs;
    char *next;
    int64_t total, disk_bytes;

    one.limit = 1;
    one.sort = STORE_SORT_NEWEST;
    if (store_disk_bytes(q->app->store, &disk_bytes, e) ||
        store_job_search(q->app->store, &one, &jobs, &total, &next, e))
        return -(int)e->code;
    free(next);
    store_jobs_clear(&jobs);
    if (store_job_groups(q->app->store, &l->filter, *l->by ? l->by : NULL, &groups, e))
        return -(int)e->code;
    struct json_text text = JSON_TEXT;
    json_text_open(&text, NULL, '{');
    json_text_raw(&text, "jobs", "[]");
    json_text_open(&text, "groups", '[');
    for (size_t i = 0; i < groups.count; i++)
        list_add_group(&text, &groups.items[i]);
    json_text_close(&text, ']');
    json_text_integer(&text, "group_count", groups.total);
    json_text_raw(&text, "next", NULL);
    json_text_integer(&text, "total", total);
    json_text_integer(&text, "disk_bytes", disk_bytes);
    json_text_close(&text, '}');
    store_groups_clear(&groups);
    return reply_json_text(r, 200, &text, e);
}

int handle_job_list(const struct request *q, struct reply *r, struct error *e)
{
    struct list_query l = {.filter.order = STORE_NEWEST_FIRST};
    int status = list_parse(q, &l, e);

    if (!status)
        status = l.groups ? list_reply_groups(q, &l, r, e) : list_reply_jobs(q, &l.filter, r, e);
    free(l.value);
    return status;
}
