#include "daemon/http/handlers/job_provenance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/log.h"
#include "common/run/provenance.h"
#include "daemon/http/handlers/handle_run_file.h"
#include "daemon/job/run_dir.h"

json_t *job_provenance_file(const struct request *q, const struct store_job *job,
                            size_t limit_bytes)
{
    struct error e;

    if (run_dir_check(q->app->store, job, &e))
        return NULL;
    int fd = run_file_open(job->run_dir, PROVENANCE_NAME);
    if (fd < 0)
        return NULL;
    json_t *file = json_read_fd(fd, PROVENANCE_NAME, limit_bytes, &e);
    if (!file)
        log_warning("job %lld: %s", (long long)job->id, e.text);
    if (file && !json_is_array(json_object_get(file, "attempts"))) {
        json_decref(file);
        file = NULL;
    }
    return file;
}

int job_provenance_load(const struct request *q, int64_t id, struct job_provenance *p,
                        struct error *e)
{
    *p = (struct job_provenance){0};
    int status = store_job_get(q->app->store, id, &p->job, e);

    if (status)
        return status;
    p->file = job_provenance_file(q, &p->job, PROVENANCE_LIMIT_BYTES);
    p->attempt = provenance_attempt(p->file);
    return 0;
}

void job_provenance_clear(struct job_provenance *p)
{
    store_job_clear(&p->job);
    json_decref(p->file);
    *p = (struct job_provenance){0};
}

int job_repro_check(const struct store_job *job, struct error *e)
{
    if (job_state_is_final(job->state))
        return 0;
    return error_set(e, ERR_CONFLICT, "job %lld is %s: it can be reproduced when it has ended",
                     (long long)job->id, job_state_name(job->state));
}

/* Sets the value and appends the change to pinned. */
static void provenance_pin(json_t *document, json_t *pinned, const char *pointer,
                           const json_t *value)
{
    json_t *one = json_pack("{s:s, s:O}", "pointer", pointer, "value", value);

    json_set_at(document, pointer, json_incref((json_t *)value));
    json_array_append_new(pinned, one);
}

static void provenance_pin_count(json_t *document, json_t *pinned, const char *group,
                                 const char *key, const json_t *value)
{
    char pointer[64];
    const json_t *in = group ? json_object_get(document, group) : document;

    snprintf(pointer, sizeof pointer, "%s%s/%s", group ? "/" : "", group ? group : "", key);
    if (json_integer_value(value) > 0 && !json_equal(json_object_get(in, key), value))
        provenance_pin(document, pinned, pointer, value);
}

/* Pins the workers per node, which the plan chose. */
static void provenance_pin_workers(json_t *document, json_t *pinned, const json_t *attempt)
{
    json_t *cluster = json_object_get(document, "cluster");
    json_int_t nodes = json_integer_value(json_object_get(cluster, "nodes"));
    json_int_t world = json_integer_value(json_object_get(attempt, "world_size"));

    if (nodes < 1 || world % nodes)
        return;
    json_t *workers = json_integer(world / nodes);
    provenance_pin_count(document, pinned, "cluster", "workers_per_node", workers);
    json_decref(workers);
}

/* Pins the batch, which the plan derived from the workers. */
static void provenance_pin_batch(json_t *document, json_t *pinned, const json_t *attempt)
{
    const json_t *batch = json_object_get(attempt, "batch_per_worker"),
                 *times = json_object_get(attempt, "accumulate_steps");

    if (json_equal(json_object_get(document, "batch_per_worker"), batch) &&
        json_equal(json_object_get(document, "accumulate_steps"), times))
        return;
    json_object_set_new(document, "global_batch", json_null());
    provenance_pin_count(document, pinned, NULL, "batch_per_worker", batch);
    provenance_pin_count(document, pinned, NULL, "accumulate_steps", times);
}

static void provenance_pin_tiles(json_t *document, json_t *pinned, const json_t *attempt)
{
    const json_t *tiles = json_object_get(attempt, "winograd"),
                 *model = json_object_get(document, "model");

    if (json_is_string(tiles) && *json_string_value(tiles) &&
        !json_equal(json_object_get(model, "winograd_tiles"), tiles))
        provenance_pin(document, pinned, "/model/winograd_tiles", tiles);
}

/* Pins OpenBLAS variables that came from the daemon's environment. */
static void provenance_pin_environment(json_t *document, json_t *pinned, const json_t *attempt)
{
    static const char *const names[] = {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"};
    const json_t *machine = json_array_get(json_object_get(attempt, "machines"), 0);
    const json_t *was = json_object_get(machine, "environment");
    char pointer[64];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const json_t *value = json_object_get(was, names[i]);
        const char *here = getenv(names[i]);
        const json_t *env = json_object_get(json_object_get(document, "cluster"), "env");
        if (!json_is_string(value) || json_object_get(env, names[i]) ||
            (here && strcmp(here, json_string_value(value)) == 0))
            continue;
        snprintf(pointer, sizeof pointer, "/cluster/env/%s", names[i]);
        provenance_pin(document, pinned, pointer, value);
    }
}

json_t *job_repro_document(const struct job_provenance *p, json_t *pinned)
{
    json_t *document = json_deep_copy(store_job_spec(&p->job));

    json_object_set_new(document, "reproduces", json_integer((json_int_t)p->job.id));
    json_object_set_new(document, "after", json_array());
    json_object_set_new(document, "preset", json_null()); /* its values have been filled in */
    if (p->attempt) {
        provenance_pin_workers(document, pinned, p->attempt);
        provenance_pin_count(document, pinned, "cluster", "threads_per_worker",
                             json_object_get(p->attempt, "threads_per_worker"));
        provenance_pin_batch(document, pinned, p->attempt);
        provenance_pin_tiles(document, pinned, p->attempt);
        provenance_pin_environment(document, pinned, p->attempt);
    }
    return document;
}
