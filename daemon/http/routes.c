#include "daemon/http/routes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
static const struct route routes[] = {
    {"POST", "/v1/plan", handle_plan, ROLE_READ, "", 200,
     "Plan a job document: batch, steps, learning rates, memory, time"},
    {"POST", "/v1/jobs", handle_job_submit, ROLE_SUBMIT, "", 201,
     "Submit a job (header Idempotency-Key: the same key returns the same job)"},
    {"GET", "/v1/jobs", handle_job_list, ROLE_READ, "state tag q user name sweep label where finished_after sort group after limit", 200,
     "Jobs, newest first; after: next of the previous page; state, tag: one or more, separated by commas; q: search text; "
     "where: a key of their documents, as optimizer.name=lars; group: by tag or by a key, as optimizer.name"},
    {"GET", "/v1/jobs/{id}", handle_job_show, ROLE_READ, "", 200,
     "A job: document, plan, progress and results"},
    {"DELETE", "/v1/jobs/{id}", handle_job_remove, ROLE_SUBMIT, "", 200,
     "Remove a finished job and its run directory; its space is freed soon after"},
    {"PATCH", "/v1/jobs/{id}", handle_job_label, ROLE_SUBMIT, "", 200,
     "Change name, tags, note or star of a job, as a JSON Merge Patch (RFC 7396): null removes"},
    {"POST", "/v1/jobs/{id}/hold", handle_job_hold, ROLE_SUBMIT, "", 200,
     "Hold a queued job: it does not start until it is released"},
    {"POST", "/v1/jobs/{id}/release", handle_job_release, ROLE_SUBMIT, "", 200,
     "Release a held job"},
    {"POST", "/v1/jobs/{id}/priority", handle_job_priority, ROLE_SUBMIT, "", 200,
     "Change the priority of a queued job"},
    {"POST", "/v1/jobs/{id}/cancel", handle_job_cancel, ROLE_SUBMIT, "", 202,
     "Cancel a job: 200 once it has ended, 202 while its workers are being stopped"},
    {"POST", "/v1/jobs/{id}/resume", handle_job_resume, ROLE_SUBMIT, "", 202,
     "Resume from the newest checkpoint; the body may change keys of cluster, restart and priority"},
    {"GET", "/v1/jobs/{id}/metrics", handle_metrics, ROLE_READ, "names from to points format",
     200,
     "Series of the steps [from, to]; points: maximum number, with minimum, maximum and mean of each bucket; "
     "format: json or csv"},
    {"GET", "/v1/jobs/{id}/evals", handle_evals, ROLE_READ, "", 200, "Evaluations, by step"},
    {"GET", "/v1/jobs/{id}/confusion", handle_confusion, ROLE_READ, "step limit format", 200,
     "Where an evaluation is wrong: top-1 of each class, the worst first, and the most frequent mistakes; as CSV the whole confusion matrix"},
    {"GET", "/v1/jobs/{id}/confusion/image", handle_confusion_image, ROLE_READ, "step label predicted number", 200,
     "One of the first images that an evaluation took for another class, from data.eval as it is stored there"},
    {"GET", "/v1/jobs/{id}/events", handle_events, ROLE_READ, "after limit types", 200,
     "Events, oldest first; after: ids above it; types: for example checkpoint,straggler. With Accept: text/event-stream, a live stream "
     "of events after that id or the header Last-Event-ID"},
    {"GET", "/v1/jobs/{id}/ranks", handle_ranks, ROLE_READ, "points", 200,
     "Busy time of each rank per step, excluding waits for others; points: maximum number of steps, "
     "spread evenly over the run"},
    {"GET", "/v1/throughput", handle_throughput, ROLE_READ, "seconds points", 200,
     "Total images per second of all jobs over the last seconds"},
    {"GET", "/v1/events", handle_all_events, ROLE_READ, "after limit", 200,
     "Events of all jobs, as above; by default the stream begins with new events"},
    {"GET", "/v1/jobs/{id}/log", handle_log, ROLE_READ, "from tail attempt", 200,
     "Output of the workers, starting at byte from; tail: at most this many of its last bytes. "
     "X-Log-Next is the value of from for the next request"},
    {"GET", "/v1/jobs/{id}/checkpoints", handle_checkpoints, ROLE_READ, "", 200,
     "Checkpoints of a job, newest first"},
    {"GET", "/v1/jobs/{id}/checkpoints/{step}", handle_checkpoint, ROLE_READ, "format", 200,
     "Weights of a checkpoint: model.safetensors, or an ONNX model of the network with its weights (averaged ones if there are some)"},
    {"GET", "/v1/jobs/{id}/trace", handle_trace, ROLE_READ, "", 200,
     "Chrome trace of the profiled steps, from the newest attempt that has one"},
    {"GET", "/v1/jobs/{id}/layers", handle_layers, ROLE_READ, "", 200,
     "Time and speed of each layer in the profiled steps, as a table"},
    {"GET", "/v1/jobs/{id}/predictions", handle_predictions, ROLE_READ, "", 200,
     "Predicted class of each image in the last evaluation, as CSV"},
    {"GET", "/v1/jobs/{id}/provenance", handle_provenance, ROLE_READ, "", 200,
     "Provenance of a job: programs, libraries, processors, kernels, data, digests of its results"},
    {"GET", "/v1/jobs/{id}/pinned", handle_pinned, ROLE_READ, "", 200,
     "The document that reproduces a job, with all choices of its run, and the differences of this machine"},
    {"GET", "/v1/jobs/{id}/reproduction", handle_reproduction, ROLE_READ, "", 200,
     "Whether a job's results are bit-identical to those of the job it reproduces, and the differences"},
    {"GET", "/v1/jobs/{id}/archive", handle_archive, ROLE_READ, "weights", 200,
     "A finished job as one file (tar.gz); weights: true adds its newest checkpoint"},
    {"GET", "/v1/jobs/{id}/tensorboard", handle_tensorboard, ROLE_READ, "", 200,
     "The job as a TensorBoard event file"},
    {"GET", "/v1/jobs/{id}/mllog", handle_mllog, ROLE_READ, "", 200,
     "The training log in MLPerf format"},
    {"GET", "/v1/compare", handle_compare, ROLE_READ, "ids", 200,
     "Compare jobs: results, and the keys in which their documents differ"},
    {"GET", "/v1/nodes", handle_nodes, ROLE_READ, "after limit", 200,
     "Nodes: speed, verdict, slots, jobs, newest checks"},
    {"GET", "/v1/nodes/{name}", handle_node, ROLE_READ, "", 200,
     "A node with all its checks and its newest report"},
    {"POST", "/v1/nodes/{name}/report", handle_node_report, ROLE_NODE, "", 200,
     "Report of a node: the output of train-worker --self-check --json, with phase; the answer has "
     "the verdict"},
    {"POST", "/v1/sweeps", handle_sweep_create, ROLE_SUBMIT, "", 201,
     "Start a sweep: jobs with different values of some keys (header Idempotency-Key: as for jobs)"},
    {"POST", "/v1/sweeps/plan", handle_sweep_plan, ROLE_READ, "", 200,
     "Plan a sweep: jobs, rungs, images, time, slot-hours, cost"},
    {"GET", "/v1/sweeps", handle_sweep_list, ROLE_READ, "after limit", 200,
     "Sweeps, newest first; after: ids below it"},
    {"GET", "/v1/sweeps/{id}", handle_sweep_show, ROLE_READ, "", 200,
     "A sweep and its results, best first"},
    {"POST", "/v1/sweeps/{id}/cancel", handle_sweep_cancel, ROLE_SUBMIT, "", 200,
     "Cancel a sweep and its jobs"},
    {"GET", "/v1/failures", handle_failures, ROLE_READ, "", 200,
     "Failure rules, with the number of failures since the start of the daemon"},
    {"GET", "/v1/forecasts", handle_forecasts, ROLE_READ, "", 200,
     "Accuracy of the time estimates of the newest succeeded jobs"},
    {"GET", "/v1/usage", handle_usage, ROLE_READ, "", 200,
     "Users: recent use of the slots, running and queued jobs, and the limits of one user"},
    {"GET", "/v1/speeds", handle_speeds, ROLE_READ, "key", 200,
     "Measured speeds of a kind of job on this processor, newest first"},
    {"POST", "/v1/speeds", handle_speed_add, ROLE_SUBMIT, "", 201,
     "Add a measured speed, as trainctl bench and scale do, for the caller's plans; an operator's counts for all users"},
    {"POST", "/v1/tokens", handle_token_create, ROLE_ADMIN, "", 201,
     "Create a token; only this answer contains it"},
    {"GET", "/v1/tokens", handle_token_list, ROLE_ADMIN, "", 200, "Tokens, without their secrets"},
    {"DELETE", "/v1/tokens/{id}", handle_token_revoke, ROLE_ADMIN, "", 200, "Revoke a token"},
    {"GET", "/v1/audit", handle_audit, ROLE_ADMIN, "after limit by action target", 200,
     "The audit log, newest first; after: ids below it"},
    {"GET", "/v1/notices", handle_notice_list, ROLE_READ, "after limit job sweep state id", 200,
     "Notices, newest first; after: ids below it; state: waiting, delivered or failed"},
    {"POST", "/v1/notices/test", handle_notice_test, ROLE_SUBMIT, "", 202,
     "Send a single test notice to a target; GET /v1/notices?id= shows its state"},
    {"GET", "/v1/backup", handle_backup, ROLE_ADMIN, "", 200,
     "Back up the database while the daemon runs"},
    {"GET", "/v1/backup/tokens", handle_backup_tokens, ROLE_ADMIN, "", 200,
     "Back up the token file, which contains only hashes"},
    {"GET", "/v1/schema/job", handle_schema, ROLE_ANYONE, "", 200,
     "JSON Schema of the job document"},
    {"GET", "/v1/presets", handle_presets, ROLE_ANYONE, "", 200, "Presets and their documents"},
    {"GET", "/v1/presets/times", handle_preset_times, ROLE_READ, "target nodes node_speed", 200,
     "Presets compared by the time to an accuracy on the same nodes"},
    {"GET", "/v1/whoami", handle_whoami, ROLE_ANYONE, "", 200, "Name and role of the caller"},
    {"GET", "/v1", handle_index, ROLE_ANYONE, "", 200,
     "The routes, with an example for each"},
    {"GET", "/openapi.json", handle_openapi, ROLE_ANYONE, "", 200, "This API"},
    {"GET", "/healthz", handle_healthz, ROLE_ANYONE, "", 200, "Liveness: the daemon answers"},
    {"GET", "/readyz", handle_readyz, ROLE_ANYONE, "", 200, "Readiness: the daemon accepts jobs"},
    {"GET", "/metrics", handle_prometheus, ROLE_READ, "", 200, "Metrics for Prometheus"},
    {"GET", "/", handle_static, ROLE_ANYONE, "", 200, "The dashboard"},
};
/* clang-format on */
#define ROUTE_COUNT (sizeof routes / sizeof routes[0])

static const struct route dashboard = {
    "GET", "/{file}", handle_static, ROLE_ANYONE, NULL, 200, "A file of the dashboard"};

const struct route *route_at(size_t i)
{
    return i < ROUTE_COUNT ? &routes[i] : NULL;
}

enum match { MATCH_NONE, MATCH_BAD_ID, MATCH_NO_SUCH_ID, MATCH_YES };

/* An id is a decimal number; one too large for int64 is an id that does not exist. */
static enum match routes_match_id(const char *text, size_t length, int64_t *id)
{
    char digits[20];

    if (length == 0 || strspn(text, "0123456789") < length)
        return MATCH_BAD_ID;
    if (length > 18)
        return MATCH_NO_SUCH_ID;
    memcpy(digits, text, length);
    digits[length] = '\0';
    *id = strtoll(digits, NULL, 10);
    return *id > 0 ? MATCH_YES : MATCH_NO_SUCH_ID;
}

static enum match route_match(const char *pattern, const char *path, int64_t *id)
{
    enum match result = MATCH_YES;

    while (*pattern && *path) {
        size_t length = strcspn(path, "/");
        if (*pattern != '{') {
            if (*pattern++ != *path++)
                return MATCH_NONE;
            continue;
        }
        if (length == 0)
            return MATCH_NONE;
        if (strncmp(pattern, "{id}", 4) == 0)
            result = routes_match_id(path, length, id);
        pattern = strchr(pattern, '}') + 1;
        path += length;
    }
    if (!*pattern && strcmp(path, "/") == 0 && path[-1] != '/') /* ignore a trailing slash */
        path++;
    return *pattern || *path ? MATCH_NONE : result;
}

const struct route *route_find(const char *method, const char *path, int64_t *id, char *allow,
                               size_t allow_bytes, struct error *e)
{
    enum match found = MATCH_NONE;
    bool takes_method = false;

    allow[0] = '\0';
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        enum match m = route_match(routes[i].pattern, path, id);
        if (m == MATCH_NONE)
            continue;
        if (m == MATCH_YES && strcmp(routes[i].method, method) == 0)
            return &routes[i];
        found = m;
        takes_method = takes_method || strcmp(routes[i].method, method) == 0;
        size_t used = strlen(allow);
        snprintf(allow + used, allow_bytes - used, "%s%s%s", used ? ", " : "", routes[i].method,
                 strcmp(routes[i].method, "GET") == 0 ? ", HEAD" : "");
    }
    bool is_file = strncmp(path, "/v1/", 4) != 0 && strcmp(path, "/v1") != 0;
    if (found == MATCH_NONE && is_file && strcmp(method, "GET") == 0)
        return &dashboard;
    if (found == MATCH_NONE)
        error_set(e, ERR_NOT_FOUND, "there is no %s; GET /v1/ lists the routes", path);
    else if (!takes_method)
        error_set(e, ERR_METHOD, "%s does not allow %s, only %s", path, method, allow);
    else if (found == MATCH_BAD_ID)
        error_set(e, ERR_USAGE, "the id in %s must be a whole number from 1", path);
    else
        error_set(e, ERR_NOT_FOUND, "%s: no such id", path);
    return NULL;
}

bool route_reads_files(const struct route *route)
{
    static route_handler *const handlers[] = {handle_backup, handle_checkpoints, handle_checkpoint,
                                              handle_pinned, handle_archive};

    for (size_t i = 0; i < sizeof handlers / sizeof handlers[0]; i++)
        if (route->handler == handlers[i])
            return true;
    return false;
}

const char *request_query(const struct request *q, const char *name)
{
    for (int i = 0; i < q->query_count; i++)
        if (strcmp(q->query[i].name, name) == 0)
            return q->query[i].value;
    return NULL;
}

static bool route_is_listed(const char *words, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = words; *at; at += strcspn(at, " "), at += *at == ' ')
        if (length && strcspn(at, " ") == length && strncmp(at, name, length) == 0)
            return true;
    return false;
}

int route_check_query(const struct request *q, struct error *e)
{
    const char *known = q->route->parameters;

    if (!known) /* files ignore their query */
        return 0;
    for (int i = 0; i < q->query_count; i++) {
        const char *name = q->query[i].name;
        if (!route_is_listed(known, name))
            return error_set(e, ERR_USAGE,
                             *known ? "unknown query parameter \"%s\"; %s takes: %s"
                                    : "unknown query parameter \"%s\"; %s takes none%s",
                             name, q->path, known);
        if (request_query(q, name) != q->query[i].value)
            return error_set(e, ERR_USAGE, "duplicate query parameter \"%s\"", name);
        if (!q->query[i].value)
            return error_set(e, ERR_USAGE, "the query parameter \"%s\" has no value", name);
    }
    return 0;
}

int request_query_int(const struct request *q, const char *name, int64_t minimum, int64_t maximum,
                      int64_t fallback, int64_t *value, struct error *e)
{
    const char *text = request_query(q, name);
    char *end;

    *value = fallback;
    if (!text)
        return 0;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (errno || end == text || *end || strchr(" \t\n\v\f\r+", *text) || number < minimum ||
        number > maximum)
        return error_set(e, ERR_USAGE, "%s must be a whole number from %lld to %lld, not \"%s\"",
                         name, (long long)minimum, (long long)maximum, text);
    *value = number;
    return 0;
}

int request_query_word(const struct request *q, const char *name, const char *name_at(size_t),
                       size_t *index, struct error *e)
{
    const char *text = request_query(q, name);
    char words[256] = "";
    size_t used = 0;

    for (size_t i = 0; text && name_at(i); i++) {
        if (strcmp(text, name_at(i)) == 0) {
            *index = i;
            return 0;
        }
        used +=
            (size_t)snprintf(words + used, sizeof words - used, "%s%s", i ? ", " : "", name_at(i));
    }
    return text ? error_set(e, ERR_USAGE, "%s must be one of %s, not \"%s\"", name, words, text)
                : 0;
}

int request_query_csv(const struct request *q, bool *csv, struct error *e)
{
    const char *format = request_query(q, "format");

    *csv = format ? strcmp(format, "csv") == 0 : q->accept && strstr(q->accept, "text/csv");
    if (format && !*csv && strcmp(format, "json") != 0)
        return error_set(e, ERR_USAGE, "format must be json or csv, not \"%.40s\"", format);
    return 0;
}

int request_key(const struct request *q, char digest[DIGEST_BYTES], struct error *e)
{
    const char *key = q->idempotency_key;
    size_t length = key ? strlen(key) : 1;

    digest_text(q->body ? q->body : "", q->body_bytes, digest);
    if (length == 0 || length > 200)
        return error_set(e, ERR_USAGE, "the Idempotency-Key must have 1 to 200 characters");
    for (const char *c = key; c && *c; c++)
        if (*c < ' ' || *c > '~')
            return error_set(e, ERR_USAGE, "the Idempotency-Key must be printable ASCII");
    return 0;
}
