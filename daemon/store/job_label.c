#include "daemon/store/job_label.h"

#include <stdlib.h>
#include <string.h>

#include "common/job/job_fields.h"
#include "common/job/job_spec.h"
#include "common/xalloc.h"
#include "daemon/store/audit.h"
#include "daemon/store/event.h"
#include "daemon/store/sql.h"

static const char *const keys[] = {"name", "tags", "note"};
#define KEY_COUNT (sizeof keys / sizeof keys[0])

/* Returns a new object {"name", "tags", "note"}, or NULL with *e. */
static json_t *label_read(struct sql *c, int64_t id, struct error *e)
{
    sqlite3_stmt *row =
        sql_query(c, e, "select name, " JOB_TAGS_COLUMN ", note from job where id = ?", "i", id);
    int found = sql_row(c, row, e);

    if (found == 0)
        error_set(e, ERR_NOT_FOUND, "there is no job %lld", (long long)id);
    if (found <= 0)
        return NULL;
    json_t *labels = json_pack("{s:s?, s:o?, s:s?}", keys[0], sqlite3_column_text(row, 0), keys[1],
                               json_loads((const char *)sqlite3_column_text(row, 1), 0, NULL),
                               keys[2], sqlite3_column_text(row, 2));
    sql_done(row);
    return must_alloc(labels);
}

static int label_compare_tags(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Returns a new sorted list of unique tags. */
static json_t *label_tags(const json_t *before, const json_t *change)
{
    const json_t *given = json_object_get(change, "tags"), *list, *tag;
    json_t *set = json_object(), *sorted = json_array(), *ignored;
    const char *names[JOB_TAGS_MAX * 4], *name;
    size_t i, count = 0;

    list = given ? given : before;
    json_array_foreach (list, i, tag)
        json_object_set_new(set, json_string_value(tag), json_true());
    list = json_object_get(change, "add_tags");
    json_array_foreach (list, i, tag)
        json_object_set_new(set, json_string_value(tag), json_true());
    list = json_object_get(change, "remove_tags");
    json_array_foreach (list, i, tag)
        json_object_del(set, json_string_value(tag));
    json_object_foreach (set, name, ignored)
        if (count < sizeof names / sizeof names[0])
            names[count++] = name;
    qsort(names, count, sizeof names[0], label_compare_tags);
    for (i = 0; i < count; i++)
        json_array_append_new(sorted, json_string(names[i]));
    json_decref(set);
    return sorted;
}

/* Returns a new object of the changed keys. */
static json_t *label_differences(const json_t *before, const json_t *change)
{
    json_t *after = json_object();

    for (size_t i = 0; i < KEY_COUNT; i++) {
        const json_t *old = json_object_get(before, keys[i]),
                     *given = json_object_get(change, keys[i]);
        json_t *value = strcmp(keys[i], "tags") == 0 ? label_tags(old, change)
                        : !given                     ? json_deep_copy(old)
                                                     : json_deep_copy(given);
        if (json_equal(value, old))
            json_decref(value);
        else
            json_object_set_new(after, keys[i], value);
    }
    return after;
}

int store_tags_insert(struct sql *c, int64_t id, const char *const *tags, size_t count,
                      struct error *e)
{
    int status = 0;

    for (size_t i = 0; i < count && !status; i++)
        status = sql_run(c, e, NULL, "insert into job_tag (job_id, tag) values (?, ?)", "is", id,
                         tags[i]);
    return status;
}

static int label_write_tags(struct sql *c, int64_t id, const json_t *list, struct error *e)
{
    const char *tags[JOB_TAGS_MAX];
    size_t count = json_array_size(list);

    if (count > JOB_TAGS_MAX)
        return error_set(e, ERR_INVALID,
                         "tags: job %lld would have %zu tags, but at most %d are allowed: remove "
                         "some with remove_tags",
                         (long long)id, count, JOB_TAGS_MAX);
    for (size_t i = 0; i < count; i++)
        tags[i] = json_string_value(json_array_get(list, i));
    int status = sql_run(c, e, NULL, "delete from job_tag where job_id = ?", "i", id);
    return status ? status : store_tags_insert(c, id, tags, count, e);
}

int store_label_document(struct sql *c, int64_t id, struct error *e)
{
    return sql_run(c, e, NULL,
                   "update job set spec = json_set(spec, '$.name', name, '$.note', note, "
                   "'$.tags', json(" JOB_TAGS_COLUMN ")) where id = ?",
                   "i", id);
}

static void label_names(const json_t *fields, char *text, size_t bytes)
{
    size_t used = 0;

    for (size_t i = 0; i < KEY_COUNT; i++)
        if (json_object_get(fields, keys[i]))
            used += (size_t)snprintf(text + used, bytes - used, "%s%s", used ? "," : "", keys[i]);
}

static int label_tell(struct sql *c, int64_t id, json_t *fields, const char *by, double now,
                      struct error *e)
{
    char names[64] = "";
    struct store_audit line = {STORE_AUDIT_JOB_LABEL, id, by, names, now};

    label_names(fields, names, sizeof names);
    int status = store_audit_write(c, &line, e);
    if (by)
        json_object_set_new(fields, "by", json_string(by));
    return status ? status : store_event_of_attempt(c, id, "labels", fields, now, e);
}

static int label_write(struct sql *c, int64_t id, const json_t *fields, struct error *e)
{
    const json_t *name = json_object_get(fields, "name"), *note = json_object_get(fields, "note"),
                 *tags = json_object_get(fields, "tags");
    int status = sql_run(c, e, NULL,
                         "update job set name = iif(?2, ?3, name), note = iif(?4, ?5, note) "
                         "where id = ?1",
                         "iisis", id, (int64_t)(name != NULL), json_string_value(name),
                         (int64_t)(note != NULL), json_string_value(note));

    if (!status && tags)
        status = label_write_tags(c, id, tags, e);
    return status ? status : store_label_document(c, id, e);
}

int store_job_label(struct store *s, int64_t id, const json_t *change, const char *by, double now,
                    struct error *e)
{
    struct sql *c = sql_write_begin(s, true, e);
    int status = 0;

    if (!c)
        return -(int)e->code;
    json_t *before = label_read(c, id, e);
    json_t *fields = before ? label_differences(before, change) : NULL;
    if (!fields)
        status = -(int)e->code;
    else if (json_object_size(fields) > 0)
        status = label_write(c, id, fields, e);
    if (!status && json_object_size(fields) > 0)
        status = label_tell(c, id, fields, by, now, e);
    json_decref(before);
    json_decref(fields);
    return sql_write_end(s, c, status, e);
}
