#include "client/measure/speeds.h"

#include <math.h>
#include <stdio.h>

#include "client/api.h"
#include "common/run/speed.h"
#include "launch/launch.h"

#define SAMPLES 20

int64_t speeds_threads(const struct job_spec *spec)
{
    int64_t share = launch_node_slots(spec->cluster.smt) / spec->cluster.workers_per_node;

    if (spec->cluster.threads_per_worker > 0)
        return spec->cluster.threads_per_worker;
    return share > 0 ? share : 1;
}

struct plan_sample speeds_sample(const struct job_spec *spec, const struct bench *b)
{
    double exchange = fmax(b->phase_ms[BENCH_COMM], 0), update = fmax(b->phase_ms[BENCH_OPTIM], 0);

    return (struct plan_sample){
        .image_seconds = (b->step_ms - exchange - update) / 1e3 /
                         ((double)spec->batch_per_worker * (double)spec->accumulate_steps),
        .update_seconds = update / 1e3,
        .exchange_seconds = exchange / 1e3,
        .workers = spec->cluster.workers_per_node,
        .batch = spec->batch_per_worker,
    };
}

void speeds_keep(const struct job_spec *spec, const struct bench *bench)
{
    struct plan_sample sample = speeds_sample(spec, bench);
    int64_t threads = speeds_threads(spec);
    char key[SPEED_KEY_BYTES];
    struct error e;

    if (threads * spec->cluster.workers_per_node > launch_node_slots(spec->cluster.smt) ||
        !(sample.image_seconds > 0))
        return;
    if (speed_cache_add(speed_key(spec, threads, key), &sample, &e))
        fprintf(stderr, "trainctl: warning: predictions will not know of this: %s\n", e.text);
}

static size_t ask_daemon(const char *key, struct plan_sample *samples)
{
    char path[SPEED_KEY_BYTES + 32];
    json_t *answer = NULL, *item;
    struct error ignored;
    size_t i, count = 0;

    snprintf(path, sizeof path, "/v1/speeds?key=%s", key);
    if (api_get(path, &answer, &ignored))
        return 0;
    json_array_foreach (json_object_get(answer, "speeds"), i, item)
        if (count < SAMPLES && speed_sample_read(item, &samples[count]))
            count++;
    json_decref(answer);
    return count;
}

struct plan_speed speeds_find(const struct job_spec *spec)
{
    struct plan_sample samples[2 * SAMPLES];
    char key[SPEED_KEY_BYTES];

    speed_key(spec, speeds_threads(spec), key);
    size_t count = ask_daemon(key, samples);
    count += speed_cache_find(key, samples + count, SAMPLES);
    return plan_speed_of(samples, count, spec->cluster.workers_per_node, spec->batch_per_worker);
}
