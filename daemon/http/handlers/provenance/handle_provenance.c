/* GET /v1/jobs/ID/provenance. */
#include <microhttpd.h>
#include <sqlite3.h>

#include "common/json.h"
#include "common/system/process.h"
#include "config.h"
#include "daemon/http/handlers/provenance/job_provenance.h"

#define REPRODUCTIONS_MAX 100

static json_t *handle_provenance_daemon_facts(void)
{
    char id[PROCESS_BUILD_ID_BYTES];

    return json_pack("{s:s, s:o, s:s, s:s, s:s}", "version", PACKAGE_VERSION, "build_id",
                     json_text_or_null(process_build_id(id)), "sqlite", sqlite3_libversion(),
                     "microhttpd", MHD_get_version(), "jansson", jansson_version_str());
}

static int handle_provenance_reproduced_by(const struct request *q, json_t **list, struct error *e)
{
    int64_t ids[REPRODUCTIONS_MAX];
    size_t count;
    int status = store_job_reproduced_by(q->app->store, q->id, ids, REPRODUCTIONS_MAX, &count, e);

    *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(*list, json_integer((json_int_t)ids[i]));
    return status;
}

int handle_provenance(const struct request *q, struct reply *r, struct error *e)
{
    struct job_provenance p;
    json_t *by = NULL;
    int status = job_provenance_load(q, q->id, &p, e);

    if (!status)
        status = handle_provenance_reproduced_by(q, &by, e);
    if (status) {
        json_decref(by);
        job_provenance_clear(&p);
        return status;
    }
    json_t *slurm = p.job.slurm ? json_loads(p.job.slurm, 0, NULL) : NULL;
    json_t *attempts = json_object_get(p.file, "attempts");
    json_t *answer =
        json_pack("{s:I, s:o, s:o, s:s, s:o?, s:O?, s:o, s:o}", "job", (json_int_t)q->id, "daemon",
                  handle_provenance_daemon_facts(), "submitted_by",
                  json_text_or_null(p.job.submitted_by), "launcher", p.job.launcher, "slurm", slurm,
                  "reproduces", json_object_get(store_job_spec(&p.job), "reproduces"),
                  "reproduced_by", by, "attempts", attempts ? json_incref(attempts) : json_array());
    job_provenance_clear(&p);
    return reply_json(r, 200, answer, e);
}
