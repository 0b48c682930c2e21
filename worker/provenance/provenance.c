#include "worker/provenance/provenance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/digest.h"
#include "common/job/job_document.h"
#include "common/json.h"
#include "common/log.h"
#include "common/plan/plan.h"
#include "common/run/provenance.h"
#include "common/system/file.h"
#include "common/xalloc.h"
#include "worker/model/weights.h"
#include "worker/provenance/machine.h"

#define FORMAT      1
#define HOSTS_NAMED 64 /* listed per kind of machine */

/* Returns the facts on the first rank of each machine, NULL on other ranks. */
static char *provenance_facts_of_this(const struct run *r)
{
    if (traincomm_host_rank(r->comm) != 0)
        return NULL;
    json_t *facts = machine_facts(r->spec->precision == JOB_PRECISION_BF16);
    json_object_set_new(facts, "host", json_string(traincomm_host(r->comm, r->rank)));
    json_object_set_new(facts, "ranks", json_integer(traincomm_host_size(r->comm)));
    char *text = json_dumps(facts, JSON_COMPACT);
    json_decref(facts);
    return text;
}

static json_t *provenance_kind_with(json_t *kinds, const json_t *facts)
{
    json_t *kind;
    size_t i;

    json_array_foreach (kinds, i, kind)
        if (json_equal(json_object_get(kind, "facts"), facts))
            return kind;
    kind = json_pack("{s:O, s:[], s:i}", "facts", facts, "hosts", "ranks", 0);
    json_array_append_new(kinds, kind);
    return kind;
}

static void provenance_add_machine(json_t *kinds, json_t *facts)
{
    json_t *host = json_incref(json_object_get(facts, "host"));
    json_int_t ranks = json_integer_value(json_object_get(facts, "ranks"));

    json_object_del(facts, "host");
    json_object_del(facts, "ranks");
    json_t *kind = provenance_kind_with(kinds, facts), *hosts = json_object_get(kind, "hosts");
    if (json_array_size(hosts) < HOSTS_NAMED)
        json_array_append(hosts, host);
    json_decref(host);
    ranks += json_integer_value(json_object_get(kind, "ranks"));
    json_object_set_new(kind, "ranks", json_integer(ranks));
}

/* Turns [{"facts", "hosts", "ranks"}] into a new array [{...facts, "hosts", "ranks"}]. */
static json_t *provenance_flat_kinds(json_t *kinds)
{
    json_t *out = json_array(), *kind;
    size_t i;

    json_array_foreach (kinds, i, kind) {
        json_t *one = json_copy(json_object_get(kind, "facts"));
        json_object_set(one, "hosts", json_object_get(kind, "hosts"));
        json_object_set(one, "ranks", json_object_get(kind, "ranks"));
        json_array_append_new(out, one);
    }
    return out;
}

static json_t *provenance_machines_from(const char *text, size_t bytes)
{
    json_t *kinds = json_array();
    const char *end = text ? text + bytes : text;

    for (const char *at = text; at < end; at += strlen(at) + 1) {
        json_t *facts = json_loads(at, 0, NULL);
        if (facts)
            provenance_add_machine(kinds, facts);
        json_decref(facts);
    }
    json_t *machines = provenance_flat_kinds(kinds);
    json_decref(kinds);
    return machines;
}

static int provenance_gather_machines(struct run *r, json_t **machines, struct error *e)
{
    char *mine = provenance_facts_of_this(r);
    void *all = NULL;
    size_t bytes = 0;
    int status = traincomm_gather(r->comm, mine, mine ? strlen(mine) + 1 : 0, &all, &bytes);

    free(mine);
    if (status)
        return error_set(e, ERR_NO_MEMORY, "cannot collect the provenance of the machines: %s",
                         traincomm_strerror(status));
    *machines = r->rank == 0 ? provenance_machines_from(all, bytes) : NULL;
    free(all);
    return 0;
}

/* Returns the digest of a JSON document, independent of white space. Steals the reference. */
static json_t *provenance_digest_of_json(json_t *value)
{
    char hex[DIGEST_BYTES];
    char *text =
        must_alloc(json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17)));

    json_decref(value);
    digest_text(text, strlen(text), hex);
    free(text);
    return json_string(hex);
}

static json_t *provenance_digest_of_file(const char *path)
{
    char hex[DIGEST_BYTES];
    struct error e;

    return digest_file(path, hex, &e) ? json_null() : json_string(hex);
}

static json_t *provenance_init(const struct run *r)
{
    char path[PATH_MAX];

    if (r->resumes) {
        file_path(path, NULL, "%s/model.safetensors", r->resumed_from);
        return json_pack("{s:s, s:I, s:o}", "path", r->resumed_from, "step",
                         (json_int_t)r->from.step, "xxh128", provenance_digest_of_file(path));
    }
    if (!*r->init_path)
        return json_null();
    return json_pack("{s:s, s:I, s:o}", "path", r->init_path, "step", (json_int_t)r->init_step,
                     "xxh128", provenance_digest_of_file(r->init_path));
}

/* Returns what is known at the start of the order of the gradients' sums; NULL with one rank. */
static const char *provenance_way_of(const struct run *r,
                                     const struct traincomm_gradients *gradients)
{
    struct traincomm_stats stats;

    if (!gradients || r->world == 1)
        return NULL;
    traincomm_gradients_stats(gradients, &stats);
    return stats.machines == 1 ? "memory" : "messages";
}

static json_t *provenance_attempt_facts(const struct run *r, const char *way, json_t *machines)
{
    char tuning[TUNING_TEXT_BYTES];
    int attempt = 1;
    const char *name = strrchr(r->attempt_dir, '/');

    if (name)
        sscanf(name, "/attempt-%d", &attempt);
    model_tuning_to_text(&r->tuning, tuning);
    return json_pack(
        "{s:i, s:o, s:o, s:o, s:i, s:i, s:I, s:I, s:o, s:o, s:s, s:s?, s:{s:o, s:o}, s:n}",
        "attempt", attempt, "started_at", json_number(clock_now()), "job",
        provenance_digest_of_json(job_spec_to_json(r->spec)), "plan",
        provenance_digest_of_json(plan_to_json(r->plan)), "world_size", r->world,
        "threads_per_worker", r->threads, "batch_per_worker", (json_int_t)r->spec->batch_per_worker,
        "accumulate_steps", (json_int_t)r->spec->accumulate_steps, "weights", provenance_init(r),
        "machines", machines, "winograd", tuning, "gradients", way, "data", "train",
        machine_data(r->spec->data.train, r->train_data), "eval",
        machine_data(r->spec->data.eval, r->eval_data), "result");
}

static json_t *provenance_earlier_attempts(const char *path, const json_t *mine)
{
    struct error e;
    json_t *file = json_read_fd(file_open(path, &e), path, PROVENANCE_LIMIT_BYTES, &e), *attempt;
    json_t *kept = json_array();
    size_t i;

    json_array_foreach (json_object_get(file, "attempts"), i, attempt)
        if (!json_equal(json_object_get(attempt, "attempt"), json_object_get(mine, "attempt")))
            json_array_append(kept, attempt);
    json_decref(file);
    return kept;
}

static int provenance_write(const struct run *r, struct error *e)
{
    char path[PATH_MAX];

    file_path(path, NULL, "%s/" PROVENANCE_NAME, r->run_dir);
    json_t *attempts = provenance_earlier_attempts(path, r->provenance);
    json_array_append(attempts, r->provenance);
    json_t *file = json_pack("{s:i, s:o}", "format", FORMAT, "attempts", attempts);
    char *text = must_alloc(json_dumps(file, JSON_INDENT(1) | JSON_REAL_PRECISION(17)));
    int status = file_write_atomic(path, text, strlen(text), e);
    free(text);
    json_decref(file);
    return status;
}

int provenance_begin(struct run *r, const struct traincomm_gradients *gradients, struct error *e)
{
    char message[ERROR_TEXT_BYTES + 32];
    struct error why;
    json_t *machines = NULL;
    int status = run_agree(r, provenance_gather_machines(r, &machines, e), e);

    if (status)
        return status;
    if (r->rank == 0) {
        r->provenance = provenance_attempt_facts(r, provenance_way_of(r, gradients), machines);
        if (provenance_write(r, &why)) {
            snprintf(message, sizeof message, "cannot write provenance.json: %s", why.text);
            status = run_warn(r, r->from.step, message, e);
        }
    }
    return run_agree(r, status, e); /* writing the warning may fail too */
}

void provenance_step(struct run *r, int64_t step, double loss, double grad_norm)
{
    const double numbers[] = {(double)step, loss, grad_norm};
    digest_chain_add(&r->losses, numbers, 3);
}

void provenance_evaluation(struct run *r, int64_t step, const struct evaluation *v)
{
    const double numbers[] = {(double)step, v->top1, v->top5, v->loss, (double)v->images};
    digest_chain_add(&r->evaluations, numbers, 5);
}

/* Digests all tensors in torch's layout, which does not depend on the engine's. */
static json_t *provenance_weights_digest(const struct model *m)
{
    char hex[DIGEST_BYTES];
    size_t most = 0;

    for (size_t i = 0; i < model_tensor_count(m); i++)
        most = model_tensor(m, i)->count > most ? model_tensor(m, i)->count : most;
    float *tensor = malloc(most * sizeof *tensor);
    struct digest *d = tensor ? digest_begin() : NULL;
    for (size_t i = 0; d && i < model_tensor_count(m); i++) {
        model_tensor_export(m, i, tensor);
        digest_add(d, tensor, model_tensor(m, i)->count * sizeof *tensor);
    }
    free(tensor);
    digest_end(d, hex);
    return json_text_or_null(hex);
}

void provenance_end(struct run *r, const char *status, int64_t steps)
{
    struct error e;

    if (!r->provenance)
        return;
    json_t *result =
        json_pack("{s:s, s:I, s:o, s:o, s:o}", "status", status, "steps", (json_int_t)steps,
                  "weights", provenance_weights_digest(r->model), "losses",
                  json_text_or_null(digest_chain_text(&r->losses)), "evaluations",
                  json_text_or_null(digest_chain_text(&r->evaluations)));
    json_object_set_new(r->provenance, "result", result);
    if (provenance_write(r, &e))
        log_warning("cannot add the digests of the result to " PROVENANCE_NAME ": %s", e.text);
}
