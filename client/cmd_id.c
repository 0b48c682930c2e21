/* The ids of jobs and sweeps as people name them: by number, by name, or the newest as "latest". */
#include <curl/curl.h>
#include <stdio.h>
#include <string.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/job.h"
#include "common/json.h"

#define LOOK_AT_MOST 1000 /* of the newest items */

/* A kind of thing with ids and names, of which GET path lists the newest first. */
struct id_kind {
    const char *what, *path, *list;
    const char *filter; /* by which only names that contain a text are listed */
};
static const struct id_kind jobs = {"job", "/v1/jobs", "jobs", "&name="};
static const struct id_kind sweeps = {"sweep", "/v1/sweeps", "sweeps", ""};

int cmd_id(const char *text, const char *what, const char *list, long *id, struct error *e)
{
    const char *end;
    long long number;

    if (!cmd_whole(text, &end, &number) || *end || number < 1)
        return error_set(e, ERR_USAGE, "\"%s\" is not the id of a %s: see \"trainctl %s\"", text,
                         what, list);
    *id = (long)number;
    return 0;
}

/* The first of these items that has the name; it and another must not both be active. 0: none. */
static int id_of_name(const struct id_kind *kind, const json_t *items, const char *name, long *id,
                      struct error *e)
{
    const json_t *item;
    bool active = false;
    size_t i;

    *id = 0;
    json_array_foreach (items, i, item) {
        struct job job = {.state = json_get_text(item, "state", "")};
        if (strcmp(json_get_text(item, "name", ""), name) != 0)
            continue;
        if (active && !job_ended(&job))
            return error_set(e, ERR_CONFLICT,
                             "%ss %ld and %lld are both named \"%s\" and have not ended: use an id",
                             kind->what, *id, json_get_integer(item, "id", 0), name);
        active = active || (!*id && !job_ended(&job));
        *id = *id ? *id : (long)json_get_integer(item, "id", 0);
    }
    return 0;
}

static int id_find(const struct id_kind *kind, const char *name, const char *list, long *id,
                   struct error *e)
{
    bool latest = strcmp(name, "latest") == 0;
    char *escaped = curl_easy_escape(NULL, name, 0), path[1024];
    json_t *answer;

    snprintf(path, sizeof path, "%s?limit=%d%s%s", kind->path, latest ? 1 : LOOK_AT_MOST,
             latest ? "" : kind->filter, latest || !*kind->filter ? "" : escaped);
    curl_free(escaped);
    if (api_get(path, &answer, e))
        return -(int)e->code;
    const json_t *items = json_object_get(answer, kind->list);
    int status = latest ? 0 : id_of_name(kind, items, name, id, e);
    if (latest)
        *id = (long)json_get_integer(json_array_get(items, 0), "id", 0);
    if (!status && !*id)
        status = latest ? error_set(e, ERR_NOT_FOUND, "there are no %ss yet", kind->what)
                        : error_set(e, ERR_NOT_FOUND, "no %s is named \"%s\": see \"trainctl %s\"",
                                    kind->what, name, list);
    json_decref(answer);
    return status;
}

/* Digits with what may stand around them are no name. */
static int id_read(const struct id_kind *kind, const char *text, const char *list, long *id,
                   struct error *e)
{
    return text[strspn(text, "0123456789+- \t")] ? id_find(kind, text, list, id, e)
                                                 : cmd_id(text, kind->what, list, id, e);
}

int cmd_job_id(const char *text, long *id, struct error *e)
{
    return id_read(&jobs, text, "list", id, e);
}

int cmd_sweep_id(const char *text, long *id, struct error *e)
{
    return id_read(&sweeps, text, "sweep list", id, e);
}

int cmd_job_ids(const struct cmd_args *args, long *ids, struct error *e)
{
    int status = 0;

    for (int i = 0; i < args->operand_count && !status; i++)
        status = cmd_job_id(args->operands[i], &ids[i], e);
    return status;
}

int cmd_show_of_job(const struct cmd_args *args)
{
    struct error e;
    char path[64];
    long id;

    if (cmd_job_id(args->operands[0], &id, &e) < 0)
        return cmd_fail(&e);
    snprintf(path, sizeof path, "/v1/jobs/%ld%s", id, args->cmd->document);
    return cmd_show_path(path, args->cmd->print);
}

int cmd_each_job(const struct cmd_args *args)
{
    struct error e;
    long ids[CMD_OPERANDS_MAX];
    int code = 0;

    if (cmd_job_ids(args, ids, &e) < 0)
        return cmd_fail(&e);
    for (int i = 0; i < args->operand_count; i++)
        if (args->cmd->one(ids[i], &e) < 0)
            code = cmd_fail(&e);
    return code;
}
