#include <limits.h>
#include <microhttpd.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/run/provenance.h"
#include "common/system/open_beneath.h"
#include "common/system/process.h"
#include "common/system/spawn.h"
#include "config.h"
#include "daemon/http/handlers/job_provenance.h"
#include "launch/launch.h"

#define REPRODUCTIONS_MAX 100

static json_t *provenance_daemon_facts(void)
{
    char id[PROCESS_BUILD_ID_BYTES];

    return json_pack("{s:s, s:o, s:s, s:s, s:s}", "version", PACKAGE_VERSION, "build_id",
                     json_text_or_null(process_build_id(id)), "sqlite", sqlite3_libversion(),
                     "microhttpd", MHD_get_version(), "jansson", jansson_version_str());
}

static int provenance_reproduced_by(const struct request *q, json_t **list, struct error *e)
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
        status = provenance_reproduced_by(q, &by, e);
    if (status) {
        json_decref(by);
        job_provenance_clear(&p);
        return status;
    }
    json_t *slurm = p.job.slurm ? json_loads(p.job.slurm, 0, NULL) : NULL;
    json_t *attempts = json_object_get(p.file, "attempts");
    json_t *answer =
        json_pack("{s:I, s:o, s:o, s:s, s:o?, s:O?, s:o, s:o}", "job", (json_int_t)q->id, "daemon",
                  provenance_daemon_facts(), "submitted_by", json_text_or_null(p.job.submitted_by),
                  "launcher", p.job.launcher, "slurm", slurm, "reproduces",
                  json_object_get(store_job_spec(&p.job), "reproduces"), "reproduced_by", by,
                  "attempts", attempts ? json_incref(attempts) : json_array());
    job_provenance_clear(&p);
    return reply_json(r, 200, answer, e);
}

#define LOOK_SECONDS 120 /* a data set without an index has to be scanned */
#define ANSWER_BYTES ((size_t)1 << 20)

static json_t *provenance_look_here(const struct request *q, const struct job_provenance *p,
                                    struct error *e)
{
    char *worker, job_file[PATH_MAX], *roots = (char *)open_beneath_roots();
    struct spawn s = SPAWN_NONE;
    json_t *found = NULL;

    snprintf(job_file, sizeof job_file, "%s/job.json", p->job.run_dir);
    if (launch_find_program(q->config->jobs.worker, &worker, e))
        return NULL;
    char *argv[] = {worker, "--provenance", job_file, roots ? "--data-roots" : NULL, roots, NULL};
    struct spawn_request request = {
        .argv = argv,
        .stream = {SPAWN_COLLECTED, SPAWN_COLLECTED},
        .limit_bytes = ANSWER_BYTES,
        .seconds = LOOK_SECONDS
    };
    int status = spawn_run(&request, &s, e);
    if (!status)
        found = json_loads(s.text[SPAWN_OUT].data ? s.text[SPAWN_OUT].data : "", 0, NULL);
    if (!status && !found)
        error_set(e, ERR_INTERNAL, "cannot determine the provenance of this machine: %.200s",
                  s.text[SPAWN_ERR].data ? s.text[SPAWN_ERR].data : "train-worker printed nothing");
    spawn_clear(&s);
    free(worker);
    return found;
}

/* The programs of this machine say nothing about workers on other machines. */
static bool provenance_ran_here(const json_t *document)
{
    const json_t *cluster = json_object_get(document, "cluster");

    return strcmp(json_get_text(cluster, "launcher", "local"), "local") == 0 &&
           json_array_size(json_object_get(cluster, "hosts")) == 0;
}

/* Converts the output of train-worker --provenance, omitting what only a run knows. */
static json_t *provenance_as_attempt(const json_t *here, bool machines)
{
    json_t *attempt = json_pack("{s:O}", "data", json_object_get(here, "data"));
    static const char *const of_no_run[] = {"ranks", "hosts"};
    json_t *machine = json_copy(json_object_get(here, "machine"));

    for (size_t i = 0; i < sizeof of_no_run / sizeof of_no_run[0]; i++)
        json_object_del(machine, of_no_run[i]);
    json_object_del(machine, "environment");
    json_object_set_new(attempt, "machines", machines ? json_pack("[O]", machine) : json_array());
    json_decref(machine);
    return attempt;
}

/* An interrupted run that continued elsewhere may differ in parts. */
static void provenance_say_attempts(const struct job_provenance *p, json_t *remarks)
{
    const json_t *attempts = json_object_get(p->file, "attempts");
    const json_t *both[] = {json_array_get(attempts, 0), p->attempt};
    json_t *differences = provenance_differences(both, 2), *one;
    size_t i;

    json_array_foreach (differences, i, one)
        if (json_is_true(json_object_get(one, "may_change_bits")) &&
            strcmp(json_get_text(one, "what", ""), "weights.xxh128") != 0)
            json_array_append_new(
                remarks, json_sprintf("its attempts differ: %s", json_get_text(one, "words", "")));
    json_decref(differences);
}

static json_t *provenance_differences_here(const struct request *q, const struct job_provenance *p,
                                           const json_t *document, json_t *remarks)
{
    struct error e;
    json_t *here = p->attempt ? provenance_look_here(q, p, &e) : NULL, *error;
    size_t i;

    if (!p->attempt) {
        json_array_append_new(remarks, json_string("the job has no provenance: its choices cannot "
                                                   "be pinned, and nothing can be compared"));
        return json_array();
    }
    if (!here) {
        json_array_append_new(remarks, json_string(e.text));
        return json_array();
    }
    provenance_say_attempts(p, remarks);
    json_array_foreach (json_object_get(here, "errors"), i, error)
        json_array_append(remarks, error);
    if (!provenance_ran_here(document))
        json_array_append_new(remarks,
                              json_string("its workers run on other machines, whose provenance is "
                                          "compared when the job has ended"));
    json_t *now = provenance_as_attempt(here, provenance_ran_here(document));
    const json_t *both[] = {p->attempt, now};
    json_t *differences = provenance_differences(both, 2);
    json_decref(now);
    json_decref(here);
    return differences;
}

int handle_pinned(const struct request *q, struct reply *r, struct error *e)
{
    struct job_provenance p;
    int status = job_provenance_load(q, q->id, &p, e);

    if (!status)
        status = job_repro_check(&p.job, e);
    if (status) {
        job_provenance_clear(&p);
        return status;
    }
    json_t *pinned = json_array(), *remarks = json_array();
    json_t *document = job_repro_document(&p, pinned);
    json_t *differences = provenance_differences_here(q, &p, document, remarks);
    job_provenance_clear(&p);
    return reply_json(r, 200,
                      json_pack("{s:I, s:o, s:o, s:o, s:o}", "job", (json_int_t)q->id, "document",
                                document, "pinned", pinned, "differences", differences, "remarks",
                                remarks),
                      e);
}
