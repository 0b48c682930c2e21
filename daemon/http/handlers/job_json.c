#include "daemon/http/handlers/job_json.h"

#include "common/clock.h"
#include "daemon/job/job_estimate.h"

#define MEMBER_id(name)       json_text_integer(t, #name, job->name);
#define MEMBER_string(name)   json_text_string(t, #name, job->name);
#define MEMBER_state(name)    json_text_string(t, #name, job_state_name(job->name));
#define MEMBER_integer(name)  json_text_integer(t, #name, job->name);
#define MEMBER_positive(name) json_text_positive(t, #name, job->name);
#define MEMBER_known(name)    json_text_known(t, #name, job->name != JOB_FIELD_NULL, job->name);
#define MEMBER_real(name)     json_text_real(t, #name, job->name);
#define MEMBER_time(name)     json_text_time(t, #name, job->name);
#define MEMBER_raw(name)      json_text_raw(t, #name, job->name);
#define MEMBER_string_if(name)                                                                     \
    if (job->name)                                                                                 \
        json_text_string(t, #name, job->name);
#define MEMBER_raw_if(name)                                                                        \
    if (job->name)                                                                                 \
        json_text_raw(t, #name, job->name);
#define MEMBER_hidden(name)
#define MEMBER_rounded(name)                        json_text_rounded(t, #name, cost.name);
#define MEMBER_label(name)                          json_text_string(t, #name, name);
#define MEMBER_band(name)                           json_text_value(t, #name, name);
#define MEMBER(name, storage, column, form, notice) MEMBER_##form(name)

void job_members(struct json_text *t, const struct request *q, const struct store_job *job)
{
    const struct plan_prices *prices = &q->config->prices;
    struct job_cost cost = job_cost_of(job, prices, clock_now());
    const char *energy_source = job_energy_source_name(cost.source), *currency = prices->currency;
    json_t *time_left = job_estimate_time_left(q->app->jobs, job, clock_now());

    JOB_FIELDS(MEMBER)
    JOB_DOCUMENTS(MEMBER)
}

int reply_job(struct reply *r, const struct request *q, int status, struct store_job *job,
              struct error *e)
{
    struct json_text text = JSON_TEXT;

    json_text_open(&text, NULL, '{');
    job_members(&text, q, job);
    json_text_close(&text, '}');
    store_job_clear(job);
    return reply_json_text(r, status, &text, e);
}
