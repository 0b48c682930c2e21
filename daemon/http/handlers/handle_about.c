/* What the daemon says of itself: schema, presets, routes, health. */
#include <stdio.h>
#include <string.h>

#include "common/job/job_document.h"
#include "common/job/recipe/preset.h"
#include "config.h"
#include "daemon/http/routes.h"

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

int handle_readyz(const struct request *q, struct reply *r, struct error *e)
{
    struct job_slots slots;

    if (store_check(q->app->store, e)) {
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
