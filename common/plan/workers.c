#include "common/plan/workers.h"

#include <math.h>
#include <string.h>

#include "common/buffer.h"
#include "common/job/job_check.h"
#include "common/net/arch.h"
#include "common/plan/memory.h"
#include "common/plan/predict.h"
#include "common/text.h"

#define WAYS_MAX     64
#define MEMORY_SHARE 0.9 /* of a node's memory; the rest is for the system and the page cache */

/* Assumed speed of a core in fp32, and in bf16 with instructions, if it was not measured. Only its
 * ratio to update and exchange affects the choice. */
#define FLOPS_FP32 100e9
#define FLOPS_BF16 300e9
/* Bytes per parameter: weight and state are read and written, the gradient is read */
#define UPDATE_BYTES 20
#define CORE_BYTES   10e9

enum { KEEPS_DOMAIN = 1, KEEPS_NORM = 2, KEEPS_MEMORY = 4, KEEPS_ALL = 7 };

struct way {
    int64_t workers, threads, images; /* images: per worker */
    int64_t memory_bytes;             /* per node */
    int keeps;
    double rate; /* predicted images per second of the node */
    struct plan_speed measured;
};

struct ways {
    struct way of[WAYS_MAX];
    size_t count;
    bool measured; /* at least one */
};

static bool workers_take_way(const struct job_spec *spec, const struct way *w, struct job_spec *out,
                             struct problems *problems)
{
    *out = *spec;
    out->cluster.workers_per_node = w->workers;
    out->cluster.threads_per_worker = w->threads;
    problems_clear(problems); /* problems of an earlier candidate */
    job_batch_settle(out, spec->states_batch, problems);
    return problems->count == 0;
}

static int64_t workers_images_of(const struct job_spec *spec)
{
    return spec->mode == JOB_MODE_TRAIN ? spec->batch_per_worker : spec->eval.batch;
}

static void workers_consider(const struct job_spec *spec, const struct plan_workers_node *node,
                             struct way way, struct ways *ways, struct problems *problems)
{
    struct job_spec with;
    bool norm = arch_find(spec->model.arch)->family != ARCH_CNN && spec->mode == JOB_MODE_TRAIN;

    if (ways->count == WAYS_MAX || !workers_take_way(spec, &way, &with, problems))
        return;
    struct plan_memory memory = plan_memory_of(&with);
    way.images = workers_images_of(&with);
    way.memory_bytes = way.workers * plan_memory_bytes(&memory);
    if (!node->domain_cores || way.threads <= node->domain_cores)
        way.keeps |= KEEPS_DOMAIN;
    if (!norm || way.images >= PLAN_NORM_IMAGES)
        way.keeps |= KEEPS_NORM;
    if (!node->memory_bytes ||
        (double)way.memory_bytes <= MEMORY_SHARE * (double)node->memory_bytes)
        way.keeps |= KEEPS_MEMORY;
    if (node->speed && node->speed(&with, &way.measured, node->context) &&
        way.measured.image_seconds > 0)
        ways->measured = true;
    else
        way.measured = (struct plan_speed){0};
    ways->of[ways->count++] = way;
}

static void workers_find_ways(const struct job_spec *spec, const struct plan_workers_node *node,
                              struct ways *ways, struct problems *problems)
{
    int64_t stated = spec->cluster.threads_per_worker;
    int64_t most = node->cores / (stated > 0 ? stated : 1);

    for (int64_t workers = most < 1 ? 1 : most < 1024 ? most : 1024; workers >= 1; workers--) {
        int64_t threads = stated > 0 ? stated : node->cores / workers;
        bool known = stated == 0 && ways->count && ways->of[ways->count - 1].threads == threads;
        if (!known)
            workers_consider(spec, node, (struct way){.workers = workers, .threads = threads}, ways,
                             problems);
    }
}

static const struct way *workers_nearest_measured(const struct ways *ways, int64_t threads)
{
    const struct way *best = NULL;
    double least = INFINITY;

    for (size_t i = 0; i < ways->count; i++) {
        double far = fabs(log((double)ways->of[i].threads / (double)threads));
        if (ways->of[i].measured.image_seconds > 0 && far < least) {
            best = &ways->of[i];
            least = far;
        }
    }
    return best;
}

static double workers_strength(const struct job_spec *spec, int64_t threads, int64_t images)
{
    double keep = plan_threads_keep(spec, threads, images);
    return (double)threads * (keep > 0 ? keep : 1);
}

static struct plan_speed workers_speed_from_shape(const struct job_spec *spec, const struct way *w)
{
    struct arch_shape shape = arch_shape_of(spec);
    double flops = spec->precision == JOB_PRECISION_BF16 ? FLOPS_BF16 : FLOPS_FP32;
    double parameters = (double)arch_trained_parameters(&shape);

    return (struct plan_speed){.image_seconds = 2 * arch_training_macs(&shape) / flops /
                                                workers_strength(spec, w->threads, w->images),
                               .update_seconds =
                                   UPDATE_BYTES * parameters / CORE_BYTES / (double)w->threads,
                               .workers = 1, /* include the exchange in the estimate */
                               .batch = w->images,
                               .samples = 1};
}

static struct plan_speed workers_measured_speed(const struct job_spec *spec,
                                                const struct ways *ways, const struct way *w)
{
    const struct way *from = workers_nearest_measured(ways, w->threads);

    if (!from)
        return (struct plan_speed){0};
    struct plan_speed speed = from->measured;
    if (from->threads == w->threads)
        return speed;
    int64_t batch = speed.batch > 0 ? speed.batch : w->images;
    speed.image_seconds *= workers_strength(spec, from->threads, batch) /
                           workers_strength(spec, w->threads, w->images);
    speed.update_seconds *= (double)from->threads / (double)w->threads;
    speed.batch = w->images;
    return speed;
}

static void workers_find_rates(const struct job_spec *spec, struct ways *ways)
{
    struct problems ignored = {0};

    for (size_t i = 0; i < ways->count; i++) {
        struct way *w = &ways->of[i];
        struct plan_band step;
        struct job_spec with;
        workers_take_way(spec, w, &with, &ignored);
        with.cluster.nodes = 1;
        with.batch_per_worker = w->images;
        struct plan_speed speed = ways->measured ? workers_measured_speed(&with, ways, w)
                                                 : workers_speed_from_shape(&with, w);
        if (predict_step(&with, &speed, &plan_network_default, &step))
            w->rate = (double)(w->workers * w->images * with.accumulate_steps) / step.value;
    }
    problems_clear(&ignored);
}

static int workers_best_keeping(const struct ways *ways)
{
    int best = 0;

    for (size_t i = 0; i < ways->count; i++)
        best = ways->of[i].keeps > best ? ways->of[i].keeps : best;
    return best;
}

static const struct way *workers_fastest_of(const struct ways *ways, int keeps)
{
    const struct way *best = NULL;

    for (size_t i = 0; i < ways->count; i++)
        if (ways->of[i].keeps == keeps && (!best || ways->of[i].rate > best->rate))
            best = &ways->of[i];
    return best;
}

static double workers_slack_of(const struct job_spec *spec)
{
    bool open = spec->mode == JOB_MODE_TRAIN && !spec->has_global_batch;
    return open ? PLAN_WORKERS_SLACK_OPEN : PLAN_WORKERS_SLACK;
}

/* The candidates are sorted by descending number of workers. If the document gives the threads,
 * fewer workers would leave cores idle. */
static const struct way *workers_choose_way(const struct job_spec *spec, const struct ways *ways,
                                            int keeps, const struct way *fastest)
{
    const struct way *best = fastest;

    if (spec->cluster.threads_per_worker > 0)
        return fastest;
    for (size_t i = 0; i < ways->count; i++)
        if (ways->of[i].keeps == keeps && ways->of[i].workers < best->workers &&
            ways->of[i].rate >= (1 - workers_slack_of(spec)) * fastest->rate)
            best = &ways->of[i];
    return best;
}

static int workers_count_without(const struct ways *ways, int what)
{
    int count = 0;

    for (size_t i = 0; i < ways->count; i++)
        count += !(ways->of[i].keeps & what);
    return count;
}

static void workers_set_words(char *to, struct buffer *w)
{
    strcpy(to, w->data ? w->data : "");
    buffer_clear(w);
}

static void workers_say_left_out(struct buffer *w, const struct ways *ways, int keeps,
                                 const struct plan_workers_node *node)
{
    int memory = workers_count_without(ways, KEEPS_MEMORY),
        norm = workers_count_without(ways, KEEPS_NORM),
        domain = workers_count_without(ways, KEEPS_DOMAIN);

    if (!(keeps & KEEPS_MEMORY))
        buffer_printf(w, "; no combination fits into the node's %.3g GB of memory",
                      1e-9 * (double)node->memory_bytes);
    else if (memory)
        buffer_printf(w, "; %d choice%s would need more than the node's %.3g GB of memory", memory,
                      plural(memory), 1e-9 * (double)node->memory_bytes);
    if (norm)
        buffer_printf(
            w,
            keeps & KEEPS_NORM
                ? "; batch norm needs at least %d images per worker, which rules out %d choice%s"
                : "; batch norm needs at least %d images per worker, but none of %d "
                  "choice%s allows that",
            PLAN_NORM_IMAGES, norm, plural(norm));
    if (domain && keeps & KEEPS_DOMAIN)
        buffer_printf(w, "; a worker stays within %lld cores of one NUMA domain or socket",
                      (long long)node->domain_cores);
}

static void workers_say_reason(const struct ways *ways, const struct way *chosen,
                               const struct way *fastest, const struct plan_workers_node *node,
                               const struct job_spec *spec, struct plan_workers *out)
{
    struct buffer w = BUFFER(sizeof out->reason - 1);
    bool all = spec->mode == JOB_MODE_TRAIN;

    buffer_printf(&w, "%lld worker%s of %lld thread%s for %lld %s, %lld images each: ",
                  (long long)chosen->workers, plural(chosen->workers), (long long)chosen->threads,
                  plural(chosen->threads), (long long)node->cores,
                  spec->cluster.smt  ? "hardware threads"
                  : node->cores == 1 ? "core"
                                     : "cores",
                  (long long)chosen->images);
    if (ways->count == 1)
        buffer_printf(&w, "the only choice");
    else if (chosen == fastest)
        buffer_printf(&w, "the fastest choice%s",
                      all && chosen->keeps != KEEPS_ALL ? " of those left" : "");
    else
        buffer_printf(
            &w,
            "the fewest workers within %.0f %% of the fastest choice (%lld x %lld, %.1f %% "
            "faster), because each additional worker needs memory and updates its weights%s",
            100 * workers_slack_of(spec), (long long)fastest->workers, (long long)fastest->threads,
            100 * (fastest->rate / chosen->rate - 1),
            all && !spec->has_global_batch ? " and makes the global batch larger" : "");
    workers_say_left_out(&w, ways, chosen->keeps, node);
    buffer_printf(&w, "; speeds are %s",
                  ways->measured ? "measured, and from these by what threads lose"
                                 : "predicted, as none was measured here");
    workers_set_words(out->reason, &w);
}

static void workers_say_ways(const struct ways *ways, const struct way *fastest,
                             struct plan_workers *out)
{
    struct buffer w = BUFFER(sizeof out->ways - 1);

    for (size_t i = ways->count; i-- > 0;)
        buffer_printf(&w, "%s%lld x %lld: %.2f", w.bytes ? ", " : "",
                      (long long)ways->of[i].workers, (long long)ways->of[i].threads,
                      ways->of[i].rate / fastest->rate);
    workers_set_words(out->ways, &w);
}

bool plan_workers_choose(struct job_spec *spec, const struct plan_workers_node *node,
                         struct plan_workers *chosen, struct problems *problems)
{
    struct ways ways = {.count = 0};
    struct problems refused = {0};
    struct job_spec with;

    *chosen = (struct plan_workers){.cores = node->cores, .memory_bytes = node->memory_bytes};
    workers_find_ways(spec, node, &ways, &refused);
    if (!ways.count) {
        problems_add(problems, refused.items[refused.count - 1].pointer, NULL, "%s",
                     refused.items[refused.count - 1].message);
        problems_clear(&refused);
        return false;
    }
    workers_find_rates(spec, &ways);
    int keeps = workers_best_keeping(&ways);
    const struct way *fastest = workers_fastest_of(&ways, keeps);
    const struct way *way = workers_choose_way(spec, &ways, keeps, fastest);
    chosen->workers = way->workers;
    chosen->threads = way->threads;
    workers_say_ways(&ways, fastest, chosen);
    workers_say_reason(&ways, way, fastest, node, spec, chosen);
    workers_take_way(spec, way, &with, &refused);
    chosen->speed = workers_measured_speed(&with, &ways, way);
    *spec = with;
    problems_clear(&refused);
    return true;
}
