/* Resuming on request: a job that failed or was cancelled goes back into the queue. */
#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "common/log.h"
#include "daemon/job/job_replan.h"
#include "daemon/job/run_dir.h"

static int resume_check_state(const struct store_job *job, struct error *e)
{
    if (job->state == JOB_SUCCEEDED)
        return error_set(e, ERR_CONFLICT, "job %lld has succeeded: there is nothing to resume",
                         (long long)job->id);
    if (!job_state_is_final(job->state))
        return error_set(e, ERR_CONFLICT,
                         "job %lld is %s: only one that has failed or was cancelled can be resumed",
                         (long long)job->id, job_state_name(job->state));
    if (strcmp(json_get_text(store_job_spec(job), "mode", "train"), "train") == 0)
        return 0;
    return error_set(e, ERR_CONFLICT,
                     "job %lld evaluates, which has no checkpoints: submit its document again",
                     (long long)job->id);
}

int job_resume(struct job_manager *m, int64_t id, const json_t *changes, const char *by,
               struct problems *problems, json_t **answer, struct error *e)
{
    struct again a = {0};
    char reason[512];

    *answer = NULL;
    int status = store_job_get(m->store, id, &a.job, e);
    if (!status)
        status = resume_check_state(&a.job, e);
    if (!status)
        status = run_dir_check(m->store, &a.job, e);
    if (!status)
        status = again_prepare(m, changes, &a, problems, e);
    if (!status) {
        int used =
            snprintf(reason, sizeof reason, "resumed on request, from its checkpoint of step %lld",
                     (long long)a.at.step);
        if (a.at.passed_over)
            snprintf(reason + used, sizeof reason - (size_t)used,
                     ", as that of step %lld cannot be used: %s", (long long)a.at.passed_over,
                     a.at.why_not);
        status = again_store(m, &a, false, reason, by, e);
    }
    if (!status) {
        *answer = json_incref(a.numbers);
        log_info("job %lld: resumed by %s%s", (long long)id, job_by_words(by),
                 a.spec->priority != a.job.priority ? ", with another priority" : "");
        job_manager_wake(m);
    }
    again_clear(&a);
    return status;
}
