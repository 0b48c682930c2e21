/* GET schema, presets, routes and health. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/job/job_document.h"
#include "common/job/recipe/preset.h"
#include "common/json.h"
#include "config.h"
#include "daemon/http/access/role.h"
#include "daemon/http/openapi.h"
#include "daemon/http/routes.h"
#include "daemon/store/store_open.h"

#define ROOM_BYTES (1 << 20) /* needed for a job's row, its plan and the first lines of its log */

int handle_schema(const struct request *q, struct reply *r, struct error *e)
{
    (void)q;
    int status = reply_json(r, 200, job_spec_schema(), e);
    r->type = "application/schema+json";
    return status;
}

int handle_presets(const struct request *q, struct reply *r, struct error *e)
{
    (void)q;
    return reply_json(r, 200, json_pack("{s:o}", "presets", preset_list()), e);
}

int handle_whoami(const struct request *q, struct reply *r, struct error *e)
{
    int role = ROLES - 1;

    while (role > ROLE_ANYONE && role_at(role)->rights != q->rights)
        role--;
    return reply_json(
        r, 200,
        json_pack("{s:o, s:s}", "who", json_text_or_null(q->who), "role", role_at(role)->name), e);
}

int handle_openapi(const struct request *q, struct reply *r, struct error *e)
{
    (void)q;
    return reply_json(r, 200, openapi_document(), e);
}

int handle_healthz(const struct request *q, struct reply *r, struct error *e)
{
    (void)q;
    return reply_json(r, 200, json_pack("{s:s, s:s}", "status", "ok", "version", PACKAGE_VERSION),
                      e);
}

/* Returns an error if the disk is full, including an exceeded quota or a lack of inodes. */
static int about_check_room(const char *folder, struct error *e)
{
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    int failed = fd < 0 || fallocate(fd, 0, 0, ROOM_BYTES) ? errno : 0;

    if (fd >= 0)
        close(fd);
    if (failed == ENOSPC || failed == EDQUOT)
        return error_set(
            e, ERR_NO_SPACE,
            "the disk of the state folder is full: no jobs are accepted until there is "
            "room again");
    if (failed == EROFS || failed == EACCES)
        return error_set(e, ERR_IO, "cannot write to the state folder: %s", strerror(failed));
    return 0;
}

int handle_readyz(const struct request *q, struct reply *r, struct error *e)
{
    struct job_slots slots;

    if (store_check(q->app->store, e) || about_check_room(q->config->state, e)) {
        reply_problem(r, 503, e, NULL);
        return 0;
    }
    job_manager_slots(q->app->jobs, &slots);
    return reply_json(r, 200,
                      json_pack("{s:s, s:b, s:{s:I, s:I}, s:{s:I, s:I}}", "status", "ready",
                                "require_token", (int)q->config->require_token, "slots", "total",
                                (json_int_t)slots.total, "used", (json_int_t)slots.used, "jobs",
                                "running", (json_int_t)slots.running, "queued",
                                (json_int_t)slots.queued),
                      e);
}
