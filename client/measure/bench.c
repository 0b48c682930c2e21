#include "client/measure/bench.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "client/files.h"
#include "client/local.h"
#include "common/buffer.h"
#include "common/job/job_document.h"
#include "common/json.h"
#include "common/net/arch.h"
#include "common/number.h"
#include "common/run/attempt.h"
#include "common/system/file.h"

#define EVENTS_LIMIT_BYTES ((size_t)256 << 20)

/* Columns; the first ones are those of enum bench_phase. */
enum column { STEP_MS = BENCH_PHASES, COLUMNS };
static const char *const names[COLUMNS] = {"data_ms", "forward_ms", "backward_ms",
                                           "comm_ms", "optim_ms",   "step_ms"};

struct series {
    double *values[COLUMNS];
    size_t count, capacity;
    double last_t, last_batch; /* of eval_progress; 0: none yet */
};

const char *bench_phase_name(enum bench_phase phase)
{
    static const char *const words[] = {"data", "forward", "backward", "comm", "optim"};
    return words[phase];
}

static bool bench_series_grow(struct series *s)
{
    struct array arrays[COLUMNS];

    for (int i = 0; i < COLUMNS; i++)
        arrays[i] = ARRAY(s->values[i]);
    return arrays_grow(arrays, COLUMNS, s->count, &s->capacity);
}

static void bench_series_add_step(struct series *s, const json_t *event)
{
    if (json_get_number(event, "step", 0) < 2 || !bench_series_grow(s))
        return;
    for (int i = 0; i < COLUMNS; i++)
        s->values[i][s->count] = json_get_number(event, names[i], 0);
    s->count++;
}

static void bench_series_add_progress(struct series *s, const json_t *event, double world)
{
    double t = json_get_number(event, "t", 0), batch = json_get_number(event, "batch", 0);

    if (s->last_t > 0 && batch > s->last_batch && bench_series_grow(s)) {
        for (int i = 0; i < COLUMNS; i++)
            s->values[i][s->count] = 0;
        s->values[STEP_MS][s->count] = 1e3 * (t - s->last_t) / ((batch - s->last_batch) / world);
        s->values[BENCH_FORWARD][s->count] = s->values[STEP_MS][s->count];
        s->count++;
    }
    s->last_t = t;
    s->last_batch = batch;
}

static void bench_series_add_event(struct series *s, struct bench *b, const json_t *event,
                                   double world)
{
    const char *type = json_string_value(json_object_get(event, "type"));
    const char *gemm = json_string_value(json_object_get(event, "gemm"));

    switch (type ? event_type_of(type) : EVENT_TYPE_COUNT) {
    case EVENT_RUN_START:
        snprintf(b->gemm, sizeof b->gemm, "%s", gemm ? gemm : "");
        break;
    case EVENT_STEP:
        bench_series_add_step(s, event);
        break;
    case EVENT_EVAL_PROGRESS:
        bench_series_add_progress(s, event, world);
        break;
    case EVENT_RUN_STOP:
        b->memory_bytes = json_get_number(event, "memory_peak_bytes", 0);
        b->peak_gflops = json_get_number(event, "sgemm_gflops", 0);
        b->stream_gb_per_sec = json_get_number(event, "stream_gb_per_sec", 0);
        b->gb_per_image = 1e-9 * json_get_number(event, "bytes_per_image", 0);
        break;
    default:
        break;
    }
}

static void bench_series_conclude(struct series *s, const struct job_spec *spec, struct bench *b)
{
    double world = (double)job_spec_world_size(spec);
    double batch = (double)(b->evaluates ? spec->eval.batch : spec->batch_per_worker);
    struct arch_shape shape = arch_shape_of(spec);
    double macs = arch_forward_macs(&shape);

    for (int i = 0; i < BENCH_PHASES; i++)
        b->phase_ms[i] = number_median(s->values[i], s->count);
    b->step_ms = number_median(s->values[STEP_MS], s->count);
    b->steps = (long)s->count;
    b->images_per_sec = 1e3 * world * batch / b->step_ms;
    b->gflop_per_image = 2e-9 * macs * (b->evaluates ? 1 : 3);
    b->gflops = b->images_per_sec * b->gflop_per_image;
    b->gb_per_sec = b->images_per_sec * b->gb_per_image;
}

int bench_read(const char *events_path, const struct job_spec *spec, struct bench *out,
               struct error *e)
{
    struct series series = {0};
    char *text, *rest = NULL;
    size_t bytes;
    int status = file_read(events_path, EVENTS_LIMIT_BYTES, &text, &bytes, e);

    if (status)
        return status;
    *out = (struct bench){.evaluates = spec->mode == JOB_MODE_EVAL};
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        json_t *event = json_loads(line, 0, NULL);
        bench_series_add_event(&series, out, event, (double)job_spec_world_size(spec));
        json_decref(event);
    }
    free(text);
    if (series.count == 0)
        status = error_set(e, ERR_CORRUPT, "%s contains no step after the first", events_path);
    else
        bench_series_conclude(&series, spec, out);
    for (int i = 0; i < COLUMNS; i++)
        free(series.values[i]);
    return status;
}

int bench_run(const struct job_spec *spec, struct bench *bench, struct error *e)
{
    char dir[PATH_MAX], path[PATH_MAX];
    int status = files_make_temporary(dir, e);
    json_t *job = job_spec_to_json(spec);
    struct local l = {.spec = spec,
                      .run_dir = dir,
                      .attempt = 1,
                      .benchmarks = true,
                      .job = json_pack("{s:n}", "reason")};
    struct stream_event event;

    if (!status)
        status = file_path(path, e, "%s/job.json", dir);
    if (!status)
        status = json_file_write(path, job, e);
    if (!status)
        status = local_start(&l, e);
    while (!status && !l.ended)
        local_next(&l, -1, -1, &event);
    file_path(path, NULL, "%s/events.jsonl", l.attempt_dir);
    if (!status && l.stops)
        status = error_set(e, ERR_INTERRUPTED, "interrupted");
    else if (!status && l.code)
        status = error_set(e, ERR_INTERNAL, "the workers failed: %s",
                           json_get_text(l.job, "reason", ""));
    else if (!status)
        status = bench_read(path, spec, bench, e);
    if (l.code && !l.stops && !l.explained)
        local_append_log(&l, e);
    local_clear(&l);
    json_decref(job);
    file_remove_tree(dir, NULL);
    return status;
}
