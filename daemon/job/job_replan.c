#include "daemon/job/job_replan.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/assert_always.h"
#include "common/clock.h"
#include "common/dataset/job_data.h"
#include "common/document.h"
#include "common/job/job_document.h"
#include "common/job/recipe/preset.h"
#include "common/log.h"
#include "common/plan/plan_build.h"
#include "common/plan/replan.h"
#include "common/run/attempt.h"
#include "common/system/file.h"
#include "common/text.h"
#include "common/xalloc.h"
#include "common/json.h"
#include "daemon/job/job_estimate.h"
#include "daemon/job/job_resources.h"
#include "daemon/store/attempt.h"
#include "launch/hosts.h"

static int replan_read_place(const struct store_job *job, struct resume_point *at, struct error *e)
{
    int found = resume_point_find(job->run_dir, at, e);

    if (found > 0)
        return 0;
    if (found < 0 && !at->passed_over)
        return error_prefix(e, "job %lld cannot be resumed", (long long)job->id);
    if (found < 0)
        return error_set(e, e->code,
                         "job %lld cannot be resumed, as none of its checkpoints can be used; the "
                         "newest: %s",
                         (long long)job->id, at->why_not);
    return error_set(e, ERR_CONFLICT,
                     "job %lld has no checkpoint to resume from: submit its document again, with "
                     "checkpoint.every_steps or every_epochs, to have checkpoints next time",
                     (long long)job->id);
}

/* Merges the changes into the stored document. Returns a new reference, or NULL with problems. */
static json_t *replan_merge(const struct store_job *job, const json_t *changes,
                            struct problems *problems)
{
    static const struct document_key resume_keys[] = {
        {.name = "cluster"}, {.name = "restart"}, {.name = "priority"}, {0}};
    json_t *document = json_deep_copy(store_job_spec(job)), *value;
    const char *key;

    document_check((json_t *)changes, "", resume_keys,
                   "cannot be changed by a resume: only cluster, restart and priority can",
                   problems);
    json_object_foreach ((json_t *)changes, key, value) {
        json_t *group = json_object_get(document, key);
        if (json_is_object(group) && json_is_object(value))
            json_object_update(group, value);
        else
            json_object_set(document, key, value);
    }
    /* If the workers change, restart.on_fewer_nodes decides about the batches. */
    json_object_set_new(document, "global_batch", json_null());
    if (problems->count == 0)
        return document;
    json_decref(document);
    return NULL;
}

static struct job_spec *replan_changed_spec(const struct store_job *job, const json_t *changes,
                                            struct problems *problems, struct error *e)
{
    struct job_spec *spec = NULL;
    const struct job_spec *before = store_job_document(job, e);
    json_t *document = before ? replan_merge(job, changes, problems) : NULL;

    if (document)
        spec = job_spec_parse(document, preset_lookup, NULL, problems);
    json_decref(document);
    if (spec && job_spec_leaves_workers(spec))
        problems_add(
            problems, "/cluster/workers_per_node", NULL,
            "0 lets the plan choose for a new job; a resumed job keeps its workers unless it "
            "is given another number");
    if (spec && problems->count == 0) {
        int64_t nodes = spec->cluster.nodes, workers = spec->cluster.workers_per_node;
        spec->cluster.nodes = before->cluster.nodes;
        spec->cluster.workers_per_node = before->cluster.workers_per_node;
        int status = nodes * workers == job_spec_world_size(before)
                         ? 0
                         : replan_spec(spec, nodes * workers, e);
        spec->cluster.nodes = nodes;
        spec->cluster.workers_per_node = workers;
        if (!status)
            return spec;
    } else if (before) {
        error_set(e, ERR_INVALID, "these changes are invalid");
    }
    job_spec_destroy(spec);
    return NULL;
}

static struct plan *replan_new_plan(struct job_manager *m, const struct job_spec *spec,
                                    const char *by, const json_t *old_plan,
                                    struct problems *problems, struct error *e)
{
    struct plan_inputs inputs = {
        .train_images = json_integer_value(json_object_get(old_plan, "train_images")),
        .eval_images = json_integer_value(json_object_get(old_plan, "eval_images")),
    };
    struct plan *plan = NULL;

    plan_inputs_share_out(spec, &inputs);
    if (job_estimate_speed(m->store, spec, job_threads(spec, m->slots), by, &inputs.speed, e) ==
        0) {
        plan = plan_make(spec, &inputs, problems);
        if (!plan)
            error_set(e, ERR_INVALID, "cannot plan the job for these workers");
    }
    return plan;
}

static json_t *replan_numbers(const json_t *spec, const json_t *plan)
{
    static const char *const of_plan[] = {
        "world_size", "global_batch", "steps_per_epoch",        "train_steps",
        "peak_lr",    "start_lr",     "memory_bytes_per_worker"};
    static const char *const of_spec[] = {"batch_per_worker", "accumulate_steps"};
    json_t *out = json_object();

    for (size_t i = 0; i < sizeof of_plan / sizeof of_plan[0]; i++)
        json_object_set(out, of_plan[i], json_object_get(plan, of_plan[i]));
    for (size_t i = 0; i < sizeof of_spec / sizeof of_spec[0]; i++)
        json_object_set(out, of_spec[i], json_object_get(spec, of_spec[i]));
    json_object_set(out, "threads_per_worker",
                    json_object_get(json_object_get(spec, "cluster"), "threads_per_worker"));
    return out;
}

void job_replan_clear(struct job_replan *r)
{
    store_job_clear(&r->job);
    job_spec_destroy(r->spec);
    plan_destroy(r->plan);
    json_decref(r->numbers);
    json_decref(r->before);
    free(r->wanted);
    free(r->spec_text);
    free(r->plan_text);
}

static void replan_count(struct job_replan *r)
{
    int64_t schedule_step, shift;
    json_t *spec = job_spec_to_json(r->spec), *plan = plan_to_json(r->plan);

    replan_place(r->at.epoch, r->at.epoch_images, r->plan, &schedule_step, &shift);
    int64_t left = r->plan->train_steps - schedule_step;
    r->last_step = r->at.step + (left > 0 ? left : 0);
    if (!r->before)
        r->before = replan_numbers(store_job_spec(&r->job), store_job_plan(&r->job));
    r->numbers = must_alloc(json_pack("{s:I, s:I, s:O, s:o}", "step", (json_int_t)r->at.step,
                                      "steps_left", (json_int_t)(left > 0 ? left : 0), "before",
                                      r->before, "after", replan_numbers(spec, plan)));
    r->spec_text = json_take_text(spec);
    r->plan_text = json_take_text(plan);
}

int job_replan_prepare(struct job_manager *m, const json_t *changes, struct job_replan *r,
                       struct problems *problems, struct error *e)
{
    assert_object(m, JOB_MANAGER_MAGIC);
    if (replan_read_place(&r->job, &r->at, e))
        return -(int)e->code;
    r->spec = replan_changed_spec(&r->job, changes, problems, e);
    if (!r->spec || job_check_fits(m, r->spec, problems, e))
        return -(int)e->code;
    if (problems->count)
        return error_set(e, ERR_INVALID, "%s", problems->items[0].message);
    r->plan =
        replan_new_plan(m, r->spec, r->job.submitted_by, store_job_plan(&r->job), problems, e);
    if (!r->plan)
        return -(int)e->code;
    replan_count(r);
    return 0;
}

int job_replan_store(struct job_manager *m, const struct job_replan *r, bool keeps_place,
                     const char *reason, const char *by, struct error *e)
{
    assert_object(m, JOB_MANAGER_MAGIC);
    struct store_job_again again = {
        .spec = r->spec_text,
        .plan = r->plan_text,
        .wanted = r->wanted,
        .priority = r->spec->priority,
        .size = job_size(m, r->spec, r->plan),
        .resumes = true,
        .other_speed = json_integer_value(json_object_get(store_job_plan(&r->job), "world_size")) !=
                       r->plan->world_size,
        .keeps_place = keeps_place,
        .max_queued = job_manager_limits(m).max_queued_per_user,
        .event = r->numbers,
        .reason = reason,
        .now = clock_now(),
        .by = by,
    };
    double of_plan = (double)r->last_step / (double)r->plan->train_steps;
    again.size.train_steps = r->last_step;
    again.size.predicted_seconds *= of_plan;
    again.size.predicted_low_seconds *= of_plan;
    again.size.predicted_high_seconds *= of_plan;
    pthread_mutex_lock(&m->files); /* it may be in the course of removal */
    int status = store_job_again(m->store, r->job.id, &again, e);
    pthread_mutex_unlock(&m->files);
    return status;
}

static json_t *replan_for_slots(struct job_manager *m, const struct store_job *job, struct error *e)
{
    const struct job_spec *spec = store_job_document(job, e);

    if (!spec)
        return NULL;
    int64_t threads = spec->cluster.threads_per_worker;
    int64_t workers = job_machine_slots(spec, m->slots) / (threads > 0 ? threads : 1);
    if (workers > spec->cluster.workers_per_node)
        workers = spec->cluster.workers_per_node;
    return must_alloc(json_pack("{s:{s:I}}", "cluster", "workers_per_node", (json_int_t)workers));
}

static json_t *replan_for_hosts(const struct hosts_found *found)
{
    json_t *hosts = json_array();

    for (size_t i = 0; i < found->usable_count; i++)
        json_array_append_new(hosts, json_string(found->usable[i]));
    return must_alloc(json_pack("{s:{s:I, s:o}}", "cluster", "nodes",
                                (json_int_t)found->usable_count, "hosts", hosts));
}

/* Returns what to restore when the job grows. */
static char *replan_take_wanted(struct job_replan *r)
{
    const json_t *document = store_job_spec(&r->job),
                 *cluster = json_object_get(document, "cluster");

    if (r->job.wanted || !r->spec->restart.grow)
        return r->spec->restart.grow ? xstrdup(r->job.wanted) : NULL;
    return json_take_text(must_alloc(
        json_pack("{s:{s:O, s:O}, s:O, s:O, s:O}", "cluster", "nodes",
                  json_object_get(cluster, "nodes"), "hosts", json_object_get(cluster, "hosts"),
                  "batch_per_worker", json_object_get(document, "batch_per_worker"),
                  "accumulate_steps", json_object_get(document, "accumulate_steps"), "steps",
                  json_object_get(document, "steps"))));
}

/* found: the available hosts; NULL: use this node's slots. */
static int replan_fewer(struct job_manager *m, int64_t id, const struct hosts_found *found,
                        struct error *e)
{
    struct job_replan r = {0};
    struct problems problems = {0};
    char reason[FAILURE_TEXT_BYTES + 128];
    json_t *changes = NULL;
    int status = store_job_get(m->store, id, &r.job, e);

    if (!status)
        changes = found ? replan_for_hosts(found) : replan_for_slots(m, &r.job, e);
    if (changes)
        status = job_replan_prepare(m, changes, &r, &problems, e);
    else
        status = -(int)e->code;
    if (!status) {
        r.wanted = found ? replan_take_wanted(&r) : xstrdup_or_null(r.job.wanted);
        if (found)
            snprintf(reason, sizeof reason, "continues with %lld workers on %zu host%s%s: %s",
                     (long long)job_spec_world_size(r.spec), found->usable_count,
                     plural((long long)found->usable_count),
                     r.wanted ? " and grows again when more answer" : "", found->problems);
        else
            snprintf(reason, sizeof reason,
                     "continues with %lld workers, as this node has only %lld slots now",
                     (long long)r.spec->cluster.workers_per_node, (long long)m->slots);
        status = job_replan_store(m, &r, true, reason, NULL, e);
    }
    if (!status)
        log_info("job %lld: %s", (long long)id, reason);
    json_decref(changes);
    problems_clear(&problems);
    job_replan_clear(&r);
    return status;
}

int job_replan_for_slots(struct job_manager *m, int64_t id, struct error *e)
{
    return replan_fewer(m, id, NULL, e);
}

void job_replan_without_hosts(struct job_manager *m, int64_t id, const char *attempt_dir)
{
    struct hosts_found found;
    struct error e;

    assert_object(m, JOB_MANAGER_MAGIC);
    if (!hosts_read(attempt_dir, &found))
        return;
    if (found.usable_count > 0 && found.problems && replan_fewer(m, id, &found, &e))
        log_warning("job %lld cannot continue with fewer hosts: %s", (long long)id, e.text);
    hosts_found_clear(&found);
}

/* Plans the job from its document as it was before it had fewer nodes, so that nothing remains of
 * roundings. */
static int replan_prepare_growth(struct job_manager *m, const json_t *changes, struct job_replan *r,
                                 struct error *e)
{
    struct problems problems = {0};
    json_t *wanted = r->job.wanted ? json_loads(r->job.wanted, 0, NULL) : NULL;
    int status = wanted ? 0 : error_set(e, ERR_CONFLICT, "it has all of its nodes");

    if (!status) {
        r->before = replan_numbers(store_job_spec(&r->job), store_job_plan(&r->job));
        json_object_update_recursive((json_t *)store_job_spec(&r->job), wanted); /* own copy */
        status = job_replan_prepare(m, changes, r, &problems, e);
    }
    if (!status &&
        r->spec->cluster.nodes < json_integer_value(json_get_at(wanted, "/cluster/nodes")))
        r->wanted = xstrdup(r->job.wanted);
    json_decref(wanted);
    problems_clear(&problems);
    return status;
}

int job_replan_grow(struct job_manager *m, int64_t id, const json_t *changes, bool stores,
                    struct error *e)
{
    struct job_replan r = {0};
    char reason[128];

    assert_object(m, JOB_MANAGER_MAGIC);
    int status = store_job_get(m->store, id, &r.job, e);
    if (!status)
        status = replan_prepare_growth(m, changes, &r, e);
    if (!status && stores) {
        long long nodes = r.spec->cluster.nodes;
        snprintf(reason, sizeof reason, "grows to %lld workers on %lld host%s",
                 (long long)job_spec_world_size(r.spec), nodes, plural(nodes));
        log_info("job %lld: %s", (long long)id, reason);
        status = job_replan_store(m, &r, true, reason, NULL, e);
    }
    job_replan_clear(&r);
    return status;
}

void job_replan_with_hosts(struct job_manager *m, int64_t id, const char *attempt_dir)
{
    char path[PATH_MAX];
    struct error e;

    assert_object(m, JOB_MANAGER_MAGIC);
    file_path(path, NULL, "%s/" ATTEMPT_FLAG_GROW, attempt_dir);
    json_t *changes = json_document_load(path, &e);
    if (!changes || job_replan_grow(m, id, changes, true, &e))
        log_warning("job %lld does not grow: %s", (long long)id, e.text);
    json_decref(changes);
}
