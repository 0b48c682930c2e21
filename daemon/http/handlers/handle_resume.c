#include "common/job/job_document.h"
#include "common/job/job_text.h"
#include "common/json.h"
#include "daemon/http/access/auth.h"
#include "daemon/http/access/job_policy.h"
#include "daemon/http/handlers/job_json.h"
#include "daemon/http/routes.h"
#include "daemon/job/job_requests.h"
#include "daemon/job/resume_point.h"

/* An empty body changes nothing. */
static int resume_read_changes(const struct request *q, json_t **changes, struct error *e)
{
    *changes = NULL;
    if (q->body_bytes == 0)
        return 0;
    *changes = json_document_parse(q->body, q->body_bytes, e);
    return *changes ? 0 : -(int)e->code;
}

/* Wrong types are reported elsewhere. */
static void resume_check_env(const struct request *q, json_t *env, struct problems *problems)
{
    const char *name;
    json_t *value;

    json_object_foreach (env, name, value)
        if (json_is_string(value) && job_text_right(JOB_TEXT_VARIABLE, name))
            job_policy_check_env(name, json_string_value(value), q->config, problems);
}

/* Only administrators may give mpirun arguments. */
static void resume_check_mpi_args(const struct request *q, const json_t *list,
                                  struct problems *problems)
{
    char *args[JOB_MPI_ARGS_MAX];
    size_t count = json_array_size(list);

    if (q->rights & RIGHT(ROLE_ADMIN) || count > JOB_MPI_ARGS_MAX)
        return;
    for (size_t i = 0; i < count; i++)
        if (!(args[i] = (char *)json_string_value(json_array_get(list, i))))
            return;
    job_policy_check_mpi_args(args, count, problems);
}

static void resume_check_changes(const struct request *q, const json_t *changes,
                                 struct problems *problems)
{
    const json_t *cluster = json_object_get(changes, "cluster");

    resume_check_mpi_args(q, json_object_get(cluster, "mpi_args"), problems);
    resume_check_env(q, json_object_get(cluster, "env"), problems);
    job_policy_check_mpi_prefix(json_string_value(json_object_get(cluster, "mpi_prefix")),
                                q->config, problems);
}

static int resume_reply(const struct request *q, json_t *numbers, struct reply *r, struct error *e)
{
    struct store_job job;

    if (store_job_get(q->app->store, q->id, &job, e)) {
        json_decref(numbers);
        return -(int)e->code;
    }
    struct json_text text = JSON_TEXT;
    json_text_open(&text, NULL, '{');
    job_members(&text, q, &job);
    json_text_value(&text, "resume", numbers);
    json_text_close(&text, '}');
    store_job_clear(&job);
    return reply_json_text(r, 202, &text, e);
}

/* An imported document was never submitted here, so check it now. */
static int resume_check_imported(const struct request *q, struct problems *problems,
                                 struct error *e)
{
    struct store_job job;
    int status = store_job_get(q->app->store, q->id, &job, e);

    if (status)
        return status;
    if (job.imported_from && resume_point_newest_step(job.run_dir, e) == 0 &&
        job_state_is_final(job.state)) {
        status = error_set(e, ERR_CONFLICT,
                           "job %lld was imported without its weights and cannot be resumed; "
                           "trainctl clone --submit starts it from the beginning",
                           (long long)q->id);
    } else if (job.imported_from) {
        const struct job_spec *spec = store_job_document(&job, e);
        status = spec ? 0 : -(int)e->code;
        if (spec)
            job_policy_check(spec, q->config, q->rights & RIGHT(ROLE_ADMIN), problems);
    }
    store_job_clear(&job);
    return status;
}

int handle_job_resume(const struct request *q, struct reply *r, struct error *e)
{
    struct problems problems = {0};
    json_t *changes, *numbers;

    if (resume_read_changes(q, &changes, e))
        return -(int)e->code;
    if (auth_check_job(q, q->id, e)) {
        json_decref(changes);
        return -(int)e->code;
    }
    resume_check_changes(q, changes, &problems);
    int status = resume_check_imported(q, &problems, e);
    if (!status)
        status = problems.count ? -(int)ERR_INVALID
                                : job_resume(q->app->jobs, q->id, changes, request_by(q), &problems,
                                             &numbers, e);
    json_decref(changes);
    if (status == 0)
        status = resume_reply(q, numbers, r, e);
    else if (problems.count)
        status = reply_refusal(r, ERR_INVALID, &problems);
    problems_clear(&problems);
    return status;
}
