#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/job/job_document.h"
#include "common/xalloc.h"
#include "daemon/job/document.h"
#include "daemon/job/job_manager_internal.h"
#include "daemon/job/job_resources.h"

static int submit_insert(struct job_manager *m, const struct job_submission *s, const char *spec,
                         const char *plan, int64_t *id, bool *existed, struct error *e)
{
    /* A sweep submits its jobs by itself, and could do nothing but fail. */
    bool by_sweep = s->submitted_by && strncmp(s->submitted_by, "sweep ", 6) == 0;
    struct store_job_new row = {
        .name = s->spec->name,
        .submitted_by = s->submitted_by,
        .tags = (const char *const *)s->spec->tags,
        .tag_count = s->spec->tag_count,
        .note = s->spec->note,
        .spec = spec,
        .plan = plan,
        .idempotency_key = s->idempotency_key,
        .request_digest = s->request_digest,
        .priority = s->spec->priority,
        .size = job_size(m, s->spec, s->plan),
        .max_queued = by_sweep ? 0 : job_manager_limits(m).max_queued_per_user,
        .reason = "just submitted",
        .now = clock_now(),
    };
    return store_job_insert(m->store, &row, id, existed, e);
}

/* The first problem; of a list, whoever asked has all of them. */
static int submit_refuse_misfit(const struct problems *problems, struct error *e)
{
    char key[PROBLEM_KEY_BYTES];
    const struct problem *first = &problems->items[0];

    return error_set(e, ERR_INVALID, "%s: %s", problem_key(first->pointer, key), first->message);
}

int job_submit(struct job_manager *m, const struct job_submission *s, struct problems *problems,
               int64_t *id, bool *existed, struct error *e)
{
    bool before = false;
    int status = job_check_fits(m, s->spec, problems, e);

    if (!status && !problems->count)
        job_check_caps(m, s->spec, problems);
    if (!status && problems->count)
        status = submit_refuse_misfit(problems, e);
    if (status)
        return status;
    char *spec = must_alloc(job_json_text(job_spec_to_json(s->spec)));
    char *plan = must_alloc(job_json_text(plan_to_json(s->plan)));
    if (!status)
        status = submit_insert(m, s, spec, plan, id, &before, e);
    free(spec);
    free(plan);
    if (status)
        return status;
    if (existed)
        *existed = before;
    if (!before)
        log_info("job %lld: submitted by %s", (long long)*id, job_by_words(s->submitted_by));
    job_manager_wake(m);
    return 0;
}
