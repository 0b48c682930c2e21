/* The job of a run that starts. Rank 0 reads the document for all: the others' hosts need not see
 * the file. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/buffer.h"
#include "common/dataset/job_data.h"
#include "common/job/job_batch.h"
#include "common/job/job_document.h"
#include "common/job/recipe/preset.h"
#include "common/json.h"
#include "common/plan/replan.h"
#include "worker/start/start_parts.h"
#include "worker/watch/stall.h"

#define STORED_DIGITS 12 /* of a number in job.json, as json_file_write writes it */

static int start_job_share_document(struct run *r, const char *path, json_t **document,
                                    struct error *e)
{
    char *text = NULL;
    long long bytes = -1;
    json_t *value = NULL;
    int status = 0;

    if (r->rank == 0) {
        value = json_document_load(path, e);
        status = value ? 0 : -(int)e->code;
        if (value) /* here alone: the data of other hosts may differ */
            json_decref(job_data_complete(value));
    }
    status = run_agree(r, status, e);
    if (status)
        return status;
    if (r->rank == 0) {
        text = json_dumps(value, JSON_COMPACT);
        bytes = (long long)strlen(text);
    }
    traincomm_broadcast(r->comm, &bytes, sizeof bytes, 0);
    if (r->rank != 0)
        text = malloc((size_t)bytes + 1);
    traincomm_broadcast(r->comm, text, (size_t)bytes, 0);
    if (r->rank != 0)
        value = json_document_parse(text, (size_t)bytes, e);
    free(text);
    *document = value;
    return value ? 0 : -(int)e->code;
}

int start_refuse(const struct problems *problems, const char *path, enum error_code code,
                 struct error *e)
{
    struct buffer words = BUFFER(ERROR_TEXT_BYTES);
    char *text = problems_to_text(problems), *rest = NULL;

    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        buffer_printf(&words, "%s%s", words.bytes ? "; " : "", line);
    int status = error_set(e, code, "%s: %s", path, words.bytes ? words.data : "not a valid job");
    buffer_clear(&words);
    free(text);
    return status;
}

static int start_job_parse_document(const char *path, const json_t *document,
                                    struct job_spec **spec, struct error *e)
{
    struct problems problems = {0};
    int status = 0;

    *spec = job_spec_parse(document, preset_lookup, NULL, &problems);
    if (!*spec)
        status = start_refuse(&problems, path, ERR_INVALID, e);
    problems_clear(&problems);
    return status;
}

/* Where the document leaves the workers to whoever plans it: those that were started. */
static int start_job_take_workers(struct job_spec *spec, int world, struct error *e)
{
    struct problems problems = {0};
    int64_t nodes = spec->cluster.nodes;
    int status = 0;

    if (world % nodes)
        return error_set(e, ERR_INVALID,
                         "cluster.workers_per_node is 0 and %d workers were started, which are not "
                         "as many on each of %lld nodes",
                         world, (long long)nodes);
    spec->cluster.workers_per_node = world / nodes;
    job_batch_settle(spec, spec->states_batch, &problems);
    if (problems.count)
        status = start_refuse(&problems, "the job", ERR_INVALID, e);
    problems_clear(&problems);
    return status;
}

/* With data.locality node as many nodes as before keep their parts of the data, of which the
 * checkpoint says how far they are used; on others the parts are new. */
static int start_job_replan_workers(struct job_spec *spec, int world, struct error *e)
{
    int64_t nodes = spec->cluster.nodes;
    int status = replan_spec(spec, world, e);

    if (status || spec->data.locality != JOB_LOCALITY_NODE || world % nodes)
        return status;
    spec->cluster.nodes = nodes;
    spec->cluster.workers_per_node = world / nodes;
    return 0;
}

/* A run that is resumed may have other workers than the job asks for; one that begins may not. */
static int start_job_fit_world(struct job_spec *spec, int world, bool resumes, struct error *e)
{
    if (job_spec_leaves_workers(spec))
        return start_job_take_workers(spec, world, e);
    int64_t wanted = job_spec_world_size(spec);
    if (wanted == world)
        return 0;
    if (resumes)
        return start_job_replan_workers(spec, world, e);
    return error_set(e, ERR_INVALID,
                     "the job asks for %lld x %lld = %lld workers, but %d %s started: "
                     "use mpirun -np %lld, or change cluster.nodes and cluster.workers_per_node",
                     (long long)spec->cluster.nodes, (long long)spec->cluster.workers_per_node,
                     (long long)wanted, world, world == 1 ? "was" : "were", (long long)wanted);
}

/* ---- the job that the run directory holds */

/* The whole document, each number as a file keeps it. */
static json_t *job_as_stored(const struct job_spec *spec)
{
    json_t *document = job_spec_to_json(spec);
    char *text = json_dumps(document, JSON_REAL_PRECISION(STORED_DIGITS));
    json_t *stored = text ? json_loads(text, 0, NULL) : NULL;

    free(text);
    json_decref(document);
    return stored;
}

static int start_job_compare(const char *path, const struct job_spec *stored,
                             const struct job_spec *mine, struct error *e)
{
    json_t *jobs[] = {job_as_stored(stored), job_as_stored(mine)}, *differences = json_array();
    char key[PROBLEM_KEY_BYTES];
    int status = 0;

    json_differences(jobs, 2, differences);
    const json_t *first = json_array_get(differences, 0);
    if (first)
        status = error_set(e, ERR_CONFLICT,
                           "%s is another job's (%s differs): name another --run-dir, or go on "
                           "with that job by --resume",
                           path, problem_key(json_get_text(first, "pointer", ""), key));
    json_decref(jobs[0]);
    json_decref(jobs[1]);
    json_decref(differences);
    return status;
}

static int start_job_check_stored(const struct run *r, const char *path, struct error *e)
{
    struct job_spec *stored = NULL;
    json_t *document = json_document_load(path, e);

    if (!document)
        return -(int)e->code;
    int status = start_job_parse_document(path, document, &stored, e);
    json_decref(document);
    /* Where it states other workers than were started, that is the key that differs. */
    if (!status && job_spec_leaves_workers(stored)) {
        status = start_job_take_workers(stored, r->world, e);
        if (status)
            error_prefix(e, "%s", path);
    }
    if (!status)
        status = start_job_compare(path, stored, r->spec, e);
    job_spec_destroy(stored);
    return status;
}

/* A run that begins must not mix its events and plan with those of another job; a refusal is no
 * event of that job either. The daemon passes the directory's own file. Rank 0. */
static int start_job_check_run_dir(struct run *r, const char *job_file, struct error *e)
{
    char path[PATH_MAX + 16];
    struct stat own, stored;

    snprintf(path, sizeof path, "%s/job.json", r->run_dir);
    if (stat(path, &stored))
        return 0;
    if (stat(job_file, &own) == 0 && own.st_dev == stored.st_dev && own.st_ino == stored.st_ino)
        return 0;
    int status = start_job_check_stored(r, path, e);
    if (status) {
        stall_report_to(r->stall, NULL);
        report_destroy(r->report);
        r->report = NULL;
    }
    return status;
}

int start_job(struct run *r, const char *path, bool resumes, struct error *e)
{
    json_t *document = NULL;
    int status = start_job_share_document(r, path, &document, e);

    if (!status)
        status = start_job_parse_document(path, document, &r->spec, e);
    json_decref(document);
    if (!status)
        status = start_job_fit_world(r->spec, r->world, resumes, e);
    if (!status && !resumes && r->rank == 0)
        status = start_job_check_run_dir(r, path, e);
    return run_agree(r, status, e);
}
