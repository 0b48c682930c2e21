#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/dataset/job_data.h"
#include "common/job/job_document.h"
#include "common/job/job_state.h"
#include "common/json.h"
#include "common/number.h"
#include "common/plan/lr_schedule.h"
#include "common/plan/plan_build.h"
#include "common/plan/preset_times.h"
#include "common/text.h"
#include "common/run/speed.h"
#include "daemon/http/access/auth.h"
#include "daemon/http/access/job_policy.h"
#include "daemon/http/handlers/job_json.h"
#include "daemon/http/handlers/job_provenance.h"
#include "daemon/http/routes.h"
#include "daemon/job/job_estimate.h"
#include "daemon/job/job_requests.h"
#include "daemon/job/job_resources.h"
#include "daemon/job/job_run.h"
#include "daemon/store/audit.h"
#include "daemon/store/speed.h"

/* Free with plan_prepared_clear. */
struct prepared {
    struct job_spec *spec;
    struct plan *plan;
    struct problems problems; /* errors in the document */
    struct job_cores cores;
    char *cores_unknown; /* why the cores are unknown */
};

static void plan_prepared_clear(struct prepared *p)
{
    plan_destroy(p->plan);
    job_spec_destroy(p->spec);
    problems_clear(&p->problems);
    free(p->cores_unknown);
}

static bool plan_runs_here(const struct job_spec *spec)
{
    return spec->cluster.launcher == JOB_LAUNCHER_LOCAL && !job_spec_names_hosts(spec);
}

/* Counts the data and looks up speeds. Data that cannot be counted is a problem of the document. */
static int plan_find_inputs(const struct request *q, struct prepared *p, struct plan_inputs *inputs,
                            struct error *e)
{
    struct job_slots slots;

    memset(inputs, 0, sizeof *inputs);
    job_manager_slots(q->app->jobs, &slots);
    int status = job_estimate_speed(q->app->store, p->spec, job_threads(p->spec, slots.total),
                                    request_by(q), &inputs->speed, e);
    if (status)
        return status;
    struct plan_speed known_speed = inputs->speed;
    const char *pointer;
    if (plan_inputs_count(p->spec, inputs, &pointer, e)) {
        if (e->code == ERR_NO_MEMORY || e->code == ERR_INTERNAL)
            return -(int)e->code;
        problems_add(&p->problems, pointer, NULL, "%s", e->text);
        plan_inputs_look(p->spec, false,
                         &p->problems); /* check the second set even if the first is invalid */
    }
    inputs->speed = known_speed;
    inputs->prices = q->config->prices;
    inputs->node_share = job_node_share(p->spec, slots.total);
    inputs->emulates_bf16 = p->spec->precision == JOB_PRECISION_BF16 && plan_runs_here(p->spec) &&
                            !speed_cpu_has("avx512_bf16");
    return 0;
}

/* Only a job that will run needs the number of threads. */
static void plan_share_cores(const struct request *q, bool will_run, struct prepared *p)
{
    struct problems problems = {0};
    int status = job_share_cores(q->app->jobs, p->spec, request_by(q), &p->cores, &problems);

    if (status && !will_run && p->cores.node.cores == 0 && !job_spec_leaves_workers(p->spec))
        p->cores_unknown = strdup(problems.items[0].message);
    else if (status)
        problems_add(&p->problems, problems.items[0].pointer, NULL, "%s",
                     problems.items[0].message);
    problems_clear(&problems);
}

static void plan_check_reproduces(const struct request *q, struct prepared *p)
{
    struct store_job job;
    struct error e;

    if (!p->spec->has_reproduces)
        return;
    if (store_job_get(q->app->store, p->spec->reproduces, &job, &e)) {
        problems_add(&p->problems, "/reproduces", NULL, "%s to reproduce", e.text);
        return;
    }
    if (job_repro_check(&job, &e))
        problems_add(&p->problems, "/reproduces", NULL, "%s", e.text);
    store_job_clear(&job);
}

/* Reports all problems that can be found without counting images. */
static void plan_check_document(const struct request *q, json_t *document, bool will_run,
                                struct prepared *p)
{
    p->spec = job_data_read(document, &p->problems);
    if (!p->spec)
        return;
    /* Slurm's nodes may see different paths. */
    bool here = will_run && p->spec->cluster.launcher == JOB_LAUNCHER_LOCAL &&
                !problems_about(&p->problems, "/cluster/launcher");
    struct problems refused = {0};
    job_policy_check(p->spec, q->config, !will_run || (q->rights & RIGHT(ROLE_ADMIN)), &refused);
    problems_extend(&p->problems, &refused);
    problems_clear(&refused);
    if (p->problems.count || here)
        plan_inputs_look(p->spec, here, &p->problems);
    plan_check_reproduces(q, p);
    if (!problems_within(&p->problems, "/model"))
        job_policy_check_weights(p->spec, &p->problems);
}

/* Returns 0 with p->plan or p->problems filled, or a negative error if the request is invalid. */
static int plan_prepare(const struct request *q, bool will_run, struct prepared *p, struct error *e)
{
    struct plan_inputs inputs;

    if (q->body_bytes == 0)
        return error_set(e, ERR_USAGE,
                         "the body must be a job document: curl -d '{\"data\": {\"train\": "
                         "\"/path/to/shards\"}}'");
    json_t *document = json_document_parse(q->body, q->body_bytes, e);
    if (!document)
        return -(int)e->code;
    plan_check_document(q, document, will_run, p);
    json_decref(document);
    if (p->problems.count)
        return 0;
    plan_share_cores(q, will_run, p);
    if (p->problems.count)
        return 0;
    int status = plan_find_inputs(q, p, &inputs, e);
    if (status || p->problems.count)
        return status;
    job_cores_to_plan_inputs(&p->cores, &inputs);
    p->plan = plan_make(p->spec, &inputs, &p->problems);
    if (!p->plan && p->problems.count == 0)
        return error_set(e, ERR_INTERNAL, "this document cannot be planned");
    return 0;
}

/* Adds the learning rate curve, and the batch script for Slurm if possible. */
static int plan_reply(const struct request *q, const struct prepared *p, struct reply *r,
                      struct error *e)
{
    json_t *plan = plan_to_json(p->plan);
    char *script = NULL;

    if (p->spec->cluster.launcher == JOB_LAUNCHER_SLURM &&
        p->spec->cluster.threads_per_worker > 0 &&
        job_slurm_script(q->app->jobs, p->spec, p->plan, &script, e) == 0)
        json_object_set_new(plan, "sbatch", json_string(script));
    free(script);
    json_object_set_new(plan, "lr_curve", lr_curve(&p->plan->lr));
    return reply_json(r, 200, plan, e);
}

static void plan_warn_of_misfit(const struct request *q, const struct prepared *p)
{
    struct problems problems = {0};
    char key[PROBLEM_KEY_BYTES];
    struct error ignored;

    if (p->spec->cluster.launcher == JOB_LAUNCHER_LOCAL &&
        job_check_fits(q->app->jobs, p->spec, &problems, &ignored) == 0)
        for (size_t i = 0; i < problems.count; i++)
            json_array_append_new(p->plan->warnings,
                                  json_sprintf("%s: %s",
                                               problem_key(problems.items[i].pointer, key),
                                               problems.items[i].message));
    problems_clear(&problems);
}

int handle_plan(const struct request *q, struct reply *r, struct error *e)
{
    struct prepared p = {0};
    int status = plan_prepare(q, false, &p, e);

    if (status == 0 && p.problems.count) {
        status = reply_refusal(r, ERR_INVALID, &p.problems);
    } else if (status == 0) {
        if (p.cores_unknown)
            json_array_append_new(p.plan->warnings, json_string(p.cores_unknown));
        plan_warn_of_misfit(q, &p);
        status = plan_reply(q, &p, r, e);
    }
    plan_prepared_clear(&p);
    return status;
}

/* Replies with warnings and the job, or only its id, state and URL with return=minimal (RFC
 * 7240). */
static int plan_answer_with_job(const struct request *q, int64_t id, bool existed, struct reply *r,
                                struct error *e)
{
    struct json_text text = JSON_TEXT;
    struct store_job job;
    char url[40];

    if (store_job_get(q->app->store, id, &job, e))
        return -(int)e->code;
    json_t *warnings = json_incref(json_object_get(store_job_plan(&job), "warnings"));
    snprintf(url, sizeof url, "/v1/jobs/%lld", (long long)id);
    reply_header(r, "Location", "%s", url);
    json_text_open(&text, NULL, '{');
    if (q->prefer && strcasestr(q->prefer, "return=minimal")) {
        reply_header(r, "Preference-Applied", "return=minimal");
        json_text_integer(&text, "id", id);
        json_text_string(&text, "state", job_state_name(job.state));
        json_text_string(&text, "url", url);
        json_text_value(&text, "warnings", warnings);
    } else {
        json_text_value(&text, "warnings", warnings);
        job_members(&text, q, &job);
    }
    json_text_close(&text, '}');
    store_job_clear(&job);
    return reply_json_text(r, existed ? 200 : 201, &text, e);
}

static int plan_submit(const struct request *q, const char *digest, struct reply *r,
                       struct error *e)
{
    struct prepared p = {0};
    int64_t id;
    bool existed = false;

    int status = plan_prepare(q, true, &p, e);
    if (status == 0 && p.problems.count) {
        status = reply_refusal(r, ERR_INVALID, &p.problems);
    } else if (status == 0) {
        struct job_submission submission = {p.spec, p.plan, q->idempotency_key, digest,
                                            request_by(q)};
        status = job_submit(q->app->jobs, &submission, &p.problems, &id, &existed, e);
        if (status == 0)
            status = plan_answer_with_job(q, id, existed, r, e);
        else if (p.problems.count)
            status = reply_refusal(r, ERR_INVALID, &p.problems);
    }
    plan_prepared_clear(&p);
    return status;
}

int handle_job_submit(const struct request *q, struct reply *r, struct error *e)
{
    char digest[DIGEST_BYTES];
    int64_t earlier = 0;

    int status = request_key(q, digest, e);
    const struct store_key key = {q->idempotency_key, digest, request_by(q)};
    if (status == 0 && key.key)
        status = store_job_find_key(q->app->store, &key, &earlier, e);
    if (status)
        return status;
    return earlier ? plan_answer_with_job(q, earlier, true, r, e) : plan_submit(q, digest, r, e);
}

static struct plan_speed plan_preset_speed(const struct job_spec *spec, void *context)
{
    const struct request *q = context;
    struct plan_speed speed = {0};
    struct job_slots slots;
    struct error e;

    job_manager_slots(q->app->jobs, &slots);
    job_estimate_speed(q->app->store, spec, job_threads(spec, slots.total), request_by(q), &speed,
                       &e);
    return speed;
}

static int plan_read_decimal(const struct request *q, const char *name, double min, double max,
                             double *value, struct error *e)
{
    const char *text = request_query(q, name);
    const char *end;

    if (!text)
        return 0;
    if (!number_read(text, &end, value) || *end || !(*value >= min && *value <= max))
        return error_set(e, ERR_USAGE, "%s must be a number from %g to %g, not \"%s\"", name, min,
                         max, text);
    return 0;
}

int handle_preset_times(const struct request *q, struct reply *r, struct error *e)
{
    struct preset_times times = {
        .prices = q->config->prices, .speed = plan_preset_speed, .context = (void *)q};
    double percent = 100 * PREDICT_TARGET;

    if (plan_read_decimal(q, "target", 0.01, 100, &percent, e) ||
        plan_read_decimal(q, "node_speed", 1e-6, 1e9, &times.node_speed, e) ||
        request_query_int(q, "nodes", 1, 65536, 16, &times.nodes, e))
        return -(int)e->code;
    times.target = percent / 100;
    return reply_json(r, 200,
                      json_pack("{s:o, s:I, s:o}", "target", json_number(times.target), "nodes",
                                (json_int_t)times.nodes, "presets", preset_times(&times)),
                      e);
}

/* Accepts keys such as "resnet50-imagenet-224-fp32-t1", see speed_key(). */
static bool plan_is_speed_key(const char *key)
{
    size_t length = key ? strlen(key) : 0;

    return length > 0 && length < SPEED_KEY_BYTES &&
           strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789_.+-") == length;
}

#define SPEEDS_MAX 50

int handle_speeds(const struct request *q, struct reply *r, struct error *e)
{
    struct plan_sample samples[SPEEDS_MAX];
    const char *key = request_query(q, "key");
    char cpu[SPEED_CPU_BYTES];
    size_t count;

    if (!plan_is_speed_key(key))
        return error_set(e, ERR_USAGE,
                         "key must be a speed key, for example key=resnet50-imagenet-224-fp32-t1");
    int status = store_speed_find(q->app->store, key, speed_cpu(cpu), request_by(q), samples,
                                  SPEEDS_MAX, &count, e);
    if (status)
        return status;
    json_t *speeds = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(speeds, speed_sample_to_json(&samples[i]));
    return reply_json(r, 200,
                      json_pack("{s:s, s:s, s:o}", "key", key, "cpu", cpu, "speeds", speeds), e);
}

static int plan_read_speed(const json_t *body, struct store_speed *speed, struct error *e)
{
    speed->key = json_string_value(json_object_get(body, "key"));
    speed->cpu = json_string_value(json_object_get(body, "cpu"));
    if (!plan_is_speed_key(speed->key))
        return error_set(e, ERR_INVALID,
                         "key must be a speed key, for example \"resnet50-imagenet-224-fp32-t1\"");
    if (!speed->cpu || !*speed->cpu || strlen(speed->cpu) >= SPEED_CPU_BYTES ||
        !text_is_printable(speed->cpu))
        return error_set(e, ERR_INVALID,
                         "cpu must be the model name of the processor in /proc/cpuinfo");
    if (!speed_sample_read(body, &speed->sample))
        return error_set(e, ERR_INVALID, "%s", SPEED_BOUNDS);
    if (json_object_size(body) > 7)
        return error_set(e, ERR_INVALID,
                         "a speed has key, cpu, image_seconds, update_seconds, exchange_seconds, "
                         "workers and batch, and nothing else");
    return 0;
}

/* Stores a speed; an operator's counts for everybody's plans. */
static int plan_speed_keep(const struct request *q, struct store_speed *speed, struct error *e)
{
    const char *by = request_by(q);
    bool shared = q->rights & RIGHT(ROLE_OPERATOR);
    char detail[SPEED_KEY_BYTES + SPEED_CPU_BYTES + 64];
    const struct store_audit line = {STORE_AUDIT_SPEED_ADD, 0, by, detail, speed->t};

    snprintf(detail, sizeof detail, "%s on %s: %.4g s an image%s", speed->key, speed->cpu,
             speed->sample.image_seconds, shared ? ", for all users" : "");
    speed->owner = shared ? NULL : by ? by : "";
    return store_speed_add(q->app->store, speed, &line, e);
}

int handle_speed_add(const struct request *q, struct reply *r, struct error *e)
{
    struct store_speed speed = {.t = clock_now()};
    json_t *body = json_document_parse(q->body ? q->body : "", q->body_bytes, e);

    if (!body)
        return -(int)e->code;
    int status = plan_read_speed(body, &speed, e);
    if (!status)
        status = plan_speed_keep(q, &speed, e);
    if (!status)
        status = reply_json(r, 201, speed_sample_to_json(&speed.sample), e);
    json_decref(body);
    return status;
}
