#include "client/measure/speeds.h"

#include <math.h>
#include <stdio.h>

#include "client/api.h"
#include "client/local.h"
#include "common/run/speed.h"
#include "common/system/host.h"
#include "common/system/placement.h"
#include "launch/launch.h"

#define SAMPLES 20

static bool speed_of(const struct job_spec *spec, struct plan_speed *speed, void *context)
{
    (void)context;
    *speed = speeds_find(spec);
    return speed->samples > 0;
}

static int speeds_stated_cores(const struct cmd_args *args, int64_t *cores, struct error *e)
{
    const char *text = cmd_value(args, "node-cores");
    const char *end;
    long long number;

    *cores = 0;
    if (!text)
        return 0;
    if (!cmd_whole(text, &end, &number) || *end || number < 1 || number > 100000)
        return error_set(e, ERR_USAGE, "--node-cores: \"%s\" is not a number of cores, 1 or more",
                         text);
    *cores = number;
    return 0;
}

int speeds_choose_workers(struct job_spec *spec, const struct cmd_args *args,
                          struct plan_workers *chosen, struct plan_inputs *inputs,
                          struct problems *problems, struct error *e)
{
    bool here = spec->cluster.launcher == JOB_LAUNCHER_LOCAL && !job_spec_names_hosts(spec);
    struct plan_workers_node node = {0};
    struct placement_machine machine;
    int64_t cores;

    *chosen = (struct plan_workers){0};
    if (speeds_stated_cores(args, &cores, e))
        return -(int)e->code;
    if (cores)
        node.cores = cores;
    if (!cores && here) {
        placement_read_mine(&machine);
        node.cores = launch_node_slots(spec->cluster.smt);
        node.memory_bytes = host_memory_bytes();
        node.domain_cores = spec->cluster.smt ? machine.numa.cpus : machine.numa.cores;
    }
    if (!node.cores && job_spec_leaves_workers(spec))
        return error_set(
            e, ERR_USAGE,
            "cluster.workers_per_node is 0, and the number of cores per node is unknown "
            "here: specify it with --node-cores N");
    if (!node.cores || (spec->cluster.threads_per_worker > 0 && !job_spec_leaves_workers(spec)))
        return 0;
    inputs->node_cores = node.cores;
    inputs->cores_source = cores ? "--node-cores" : "this machine";
    if (!job_spec_leaves_workers(spec))
        return 0;
    node.speed = speed_of;
    if (plan_workers_choose(spec, &node, chosen, problems))
        inputs->workers = chosen;
    return 0;
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

/* Best effort: lets the daemon predict from the same speed; a daemon is not required. */
static void speeds_tell_daemon(const char *key, const struct plan_sample *sample)
{
    json_t *body = speed_sample_to_json(sample), *answer = NULL;
    char cpu[SPEED_CPU_BYTES];
    struct error ignored;

    json_object_set_new(body, "key", json_string(key));
    json_object_set_new(body, "cpu", json_string(speed_cpu(cpu)));
    if (api_send_json("POST", "/v1/speeds", body, &answer, &ignored) == 0)
        json_decref(answer);
    json_decref(body);
}

void speeds_keep(const struct job_spec *spec, const struct bench *bench)
{
    struct plan_sample sample = speeds_sample(spec, bench);
    int64_t threads = local_threads(spec);
    char key[SPEED_KEY_BYTES];
    struct error e;

    if (threads * spec->cluster.workers_per_node > launch_node_slots(spec->cluster.smt) ||
        !speed_sample_is_sound(&sample))
        return;
    if (speed_cache_add(speed_key(spec, threads, key), &sample, &e))
        fprintf(stderr, "trainctl: warning: predictions will not use this speed: %s\n", e.text);
    speeds_tell_daemon(key, &sample);
}

static size_t speeds_ask_daemon(const char *key, struct plan_sample *samples)
{
    json_t *answer = NULL, *item;
    struct error ignored;
    size_t i, count = 0;

    if (api_call("GET", &answer, &ignored, "/v1/speeds?key=%s", key))
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

    speed_key(spec, local_threads(spec), key);
    size_t count = speeds_ask_daemon(key, samples);
    size_t told = count, cached = speed_cache_find(key, samples + count, SAMPLES);
    for (size_t i = told; i < told + cached; i++) {
        const struct plan_sample *s = &samples[i];
        bool known = false; /* the daemon has most samples of the cache */
        for (size_t k = 0; k < told && !known; k++)
            known = fabs(samples[k].image_seconds / s->image_seconds - 1) < 1e-9 &&
                    samples[k].workers == s->workers && samples[k].batch == s->batch;
        if (!known)
            samples[count++] = *s;
    }
    return plan_speed_of(samples, count, spec->cluster.workers_per_node, spec->batch_per_worker);
}
