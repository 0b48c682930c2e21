/* What a colleague would mention when reading the plan. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/job/job_env.h"
#include "common/job/job_options.h"
#include "common/job/recipe/optimizers.h"
#include "common/net/arch.h"
#include "common/plan/parts.h"
#include "common/plan/predict/threads.h"
#include "common/number.h"
#include "common/text.h"

#define LARGE_BATCH     8192 /* Goyal et al. 2017: the accuracy of plain SGD falls above 8K */
#define HIGH_RATE_TIMES 20
#define USUAL_RATE      0.1 /* of sgd and lars, for a batch of USUAL_BATCH (Goyal et al. 2017) */
#define USUAL_BATCH     256
#define ENLARGED_TIMES  2

static void warn_plan_warn_with(struct plan *plan, json_t *text)
{
    json_array_append_new(plan->warnings, text);
}

/* In the phase that drops most. */
static long long warn_dropped_images(const struct plan *plan)
{
    int64_t most = plan->dropped_images_per_epoch;

    for (size_t i = 0; i < plan->phase_count && !plan->exact; i++) {
        const struct plan_phase *p = &plan->phases[i];
        int64_t dropped = plan->train_images - p->steps_per_epoch * p->global_batch;
        most = dropped > most ? dropped : most;
    }
    return (long long)most;
}

static void warn_of_batch(struct plan *plan, const struct job_spec *spec)
{
    long long n = plan->train_images, b = plan->phases[0].global_batch; /* the largest */
    long long dropped = warn_dropped_images(plan);

    char share[NUMBER_BYTES];
    bool halved = spec->lr.scaling == JOB_SCALING_LINEAR && spec->lr.factor <= 0.5;

    if (b > LARGE_BATCH && spec->optimizer.name == JOB_OPTIMIZER_SGD)
        warn_plan_warn_with(
            plan,
            json_sprintf("the global batch is %lld: above %d, accuracy usually falls with plain "
                         "SGD (Goyal et al. 2017); %s, as SURFsara and Intel with 24576",
                         b, LARGE_BATCH,
                         halved ? "this job takes half of the linearly scaled learning rate or less"
                                : "use LARS, or half of the linearly scaled learning rate "
                                  "(lr.factor 0.5)"));
    if (dropped)
        warn_plan_warn_with(
            plan,
            json_sprintf(
                "the last partial batch of an epoch is dropped: %s%lld of %lld images (%s %%)",
                plan->phase_count > 1 ? "up to " : "", dropped, n,
                number_percent((double)dropped, (double)n, share)));
    b = plan->global_batch;
    if (spec->recipe_images && spec->recipe_images != n)
        warn_plan_warn_with(
            plan, json_sprintf("the recipe is for %lld training images, but there are %lld: %lld / "
                               "%lld = %.2f steps per epoch, counted as %.10g, instead of %.2f",
                               (long long)spec->recipe_images, n, n, b, (double)n / (double)b,
                               plan->steps_in_epoch, (double)spec->recipe_images / (double)b));
}

static void warn_find_smallest_output(const struct arch_conv *conv, void *context)
{
    int64_t *pixels = context, own = (int64_t)conv->out_size * conv->out_size;

    if (*conv->bn_name && (*pixels == 0 || own < *pixels))
        *pixels = own;
}

/* Pixels of an image in the smallest batch norm; 0: there is none. */
static int64_t warn_smallest_batch_norm(const struct job_spec *spec, int64_t image_size)
{
    struct arch_shape shape = arch_shape_of(spec);
    int64_t pixels = 0;

    shape.image_size = (int)image_size;
    arch_each_conv(&shape, warn_find_smallest_output, &pixels);
    return pixels;
}

/* Where a worker has one image at a time, by the size that leaves the fewest pixels. */
static void warn_of_single_images(struct plan *plan, const struct job_spec *spec)
{
    int64_t pixels = 0, size = 0;

    for (size_t i = 0; i < plan->size_count; i++) {
        int64_t own = warn_smallest_batch_norm(spec, plan->sizes[i].size);
        if (plan_batch_of_size(spec, plan->sizes[i].size) == 1 && (pixels == 0 || own < pixels)) {
            pixels = own;
            size = plan->sizes[i].size;
        }
    }
    if (pixels == 1)
        warn_plan_warn_with(
            plan,
            json_sprintf("with one image of %lld pixels at a time, batch norm in the last layers "
                         "has one value per channel, and what it makes of it does not depend on "
                         "the image: the network cannot learn; use batch_per_worker 2 or more%s",
                         (long long)size,
                         spec->model.stem == JOB_STEM_IMAGENET ? ", or model.stem small" : ""));
    else if (pixels)
        warn_plan_warn_with(
            plan,
            json_string("with batch_per_worker 1, batch norm normalises each image by itself in "
                        "training and by running statistics in evaluations, which costs much "
                        "accuracy; use at least 8 (Wu and He 2018); accumulate_steps has no "
                        "effect on batch norm"));
}

/* What the data themselves say against the document. */
static void warn_of_data(struct plan *plan, const struct job_spec *spec,
                         const struct plan_data *data)
{
    int side = data->width > data->height ? data->width : data->height;
    long long size = spec->model.image_size, classes = spec->model.classes;

    if (data->classes && data->classes < classes)
        warn_plan_warn_with(
            plan, json_sprintf("model.classes is %lld, but the training data have %lld classes: "
                               "the remaining outputs of the network are unused",
                               classes, (long long)data->classes));
    if (side && size >= (long long)ENLARGED_TIMES * side)
        warn_plan_warn_with(
            plan, json_sprintf("model.image_size is %lld, but the first training image has %d x "
                               "%d pixels: enlarging takes about %.0f times the computation and "
                               "adds no information",
                               size, data->width, data->height,
                               (double)(size * size) / ((double)side * side)));
    if (data->evaluates_training)
        warn_plan_warn_with(
            plan, json_string("data.eval is the training data: the accuracy does not show how well "
                              "the network classifies images it has not seen"));
}

static void warn_of_remarks(struct plan *plan, const char *remarks)
{
    for (size_t length; *remarks; remarks += length + (remarks[length] == '\n')) {
        length = strcspn(remarks, "\n");
        warn_plan_warn_with(plan, json_stringn(remarks, length));
    }
}

static void warn_of_locality(struct plan *plan, const struct job_spec *spec)
{
    long long least = plan->node_images_least, most = plan->node_images_most;
    long long together = plan->train_images / plan->global_batch;
    char share[NUMBER_BYTES];

    if (spec->data.locality != JOB_LOCALITY_NODE || least == 0 || spec->cluster.nodes == 1)
        return;
    warn_plan_warn_with(
        plan,
        json_sprintf("data.locality node: each node trains only on its own %lld to %lld images (a "
                     "difference of %s %%), shuffled among themselves; an epoch has the %lld "
                     "steps of the node with the fewest images, %lld fewer than with a global "
                     "shuffle",
                     least, most, number_percent((double)(most - least), (double)least, share),
                     (long long)plan->steps_per_epoch, together - plan->steps_per_epoch));
}

/* Fewer epochs than others needed to reach the job's target; published for some batches, and what
 * is said of another one says so. */
static void warn_of_epochs(struct plan *plan, const struct job_spec *spec)
{
    double own = plan_epochs_after(plan, plan->train_steps);
    long long batch = plan->global_batch;
    struct plan_band need;

    if (!spec->eval.has_target_top1 || spec->eval.target_top1 < PREDICT_TARGET_LOW ||
        spec->eval.target_top1 > PREDICT_TARGET_HIGH ||
        !predict_table_applies(spec, plan->train_images))
        return;
    const char *doubt = predict_epochs_doubt(batch);
    if (!predict_epochs_to_target(batch, &need))
        warn_plan_warn_with(plan,
                            json_sprintf("no run with a global batch of %lld is known to have "
                                         "reached 75.9 %%: %s",
                                         batch, doubt));
    else if (own < need.low - 0.5)
        warn_plan_warn_with(plan,
                            json_sprintf("the job has %.3g epochs, but reaching 75.9 %% takes "
                                         "%.3g to %.3g with a global batch of %lld, by MLPerf's "
                                         "reference runs (LARS)%s%s",
                                         own, need.low, need.high, batch, doubt ? "; " : "",
                                         doubt ? doubt : ""));
}

static void warn_of_sizes(struct plan *plan)
{
    for (size_t i = 1; i < plan->size_count; i++)
        if (plan->sizes[i].step >= plan->train_steps) {
            warn_plan_warn_with(
                plan, json_sprintf("the run ends at step %lld, before images reach %lld pixels at "
                                   "step %lld (model.image_size)",
                                   (long long)plan->train_steps, (long long)plan->sizes[i].size,
                                   (long long)plan->sizes[i].step));
            return;
        }
}

static void warn_of_schedule(struct plan *plan, const struct job_spec *spec)
{
    if (spec->batch_schedule == JOB_BATCH_FILL && plan->size_count < 2)
        warn_plan_warn_with(plan,
                            json_string("batch_schedule \"fill\" has no effect with one image "
                                        "size: give model.image_size sizes by epoch"));
}

/* By the rate itself and by that of a batch of 256, as a large batch takes a greater one. */
static void warn_of_high_rate(struct plan *plan, const struct job_spec *spec)
{
    double peak = plan->peak_lr, scaled = peak * USUAL_BATCH / (double)plan->global_batch;
    const struct optimizer_kind *kind = optimizer_kind_at((size_t)spec->optimizer.name);

    if (!kind->adaptive && fmin(peak, scaled) >= HIGH_RATE_TIMES * USUAL_RATE)
        warn_plan_warn_with(
            plan, json_sprintf("the learning rate rises to %.10g with a global batch of %lld: %s "
                               "usually works with about %.10g (0.1 per 256 images, Goyal et al. "
                               "2017), and diverges far above it",
                               peak, (long long)plan->global_batch, kind->name,
                               USUAL_RATE * (double)plan->global_batch / USUAL_BATCH));
}

static void warn_of_rate(struct plan *plan, const struct job_spec *spec)
{
    long long warmup = plan->warmup_steps, steps = plan->train_steps;
    bool falls_to_end = spec->lr.decay == JOB_DECAY_POLY || spec->lr.decay == JOB_DECAY_COSINE;

    if (warmup > 0 && plan->start_lr == plan->peak_lr)
        warn_plan_warn_with(
            plan, json_sprintf("warm-up has no effect: it begins at the peak (%.10g); set lr.start "
                               "below it, or lr.warmup_epochs to 0",
                               plan->peak_lr));
    else if (warmup >= steps)
        warn_plan_warn_with(
            plan,
            json_sprintf("warm-up (%lld steps) is %s the run (%lld steps): the learning rate never "
                         "reaches its peak; lower lr.warmup_epochs or train longer",
                         warmup, warmup > steps ? "longer than" : "as long as", steps));
    if (plan->start_lr > plan->peak_lr && warmup > 0)
        warn_plan_warn_with(
            plan,
            json_sprintf("lr.start (%.10g) is above the peak (%.10g): warm-up lowers the rate",
                         plan->start_lr, plan->peak_lr));
    if (falls_to_end && spec->lr.end > plan->peak_lr)
        warn_plan_warn_with(
            plan,
            json_sprintf("lr.end (%.10g) is above the peak (%.10g): the rate rises after warm-up",
                         spec->lr.end, plan->peak_lr));
    if (spec->lr.decay == JOB_DECAY_STEP && plan->lr.milestone_count &&
        plan->lr.milestone_steps[0] >= steps)
        warn_plan_warn_with(
            plan,
            json_string("the run ends before the first of lr.milestones: the rate never decays"));
}

/* As numbers compare: a document may state 1 for 1.0. */
static bool warn_is_default(const struct job_option *option, const struct job_spec *spec)
{
    json_t *value = job_value_load(option, spec), *fallback = job_option_default(option);
    bool same = json_is_number(value) && json_is_number(fallback)
                    ? json_number_value(value) == json_number_value(fallback)
                    : json_equal(value, fallback);

    json_decref(value);
    json_decref(fallback);
    return same;
}

/* Keys that were set and that this optimiser does not look at. */
static void warn_of_optimizer(struct plan *plan, const struct job_spec *spec)
{
    const struct optimizer_kind *kind = optimizer_kind_at((size_t)spec->optimizer.name);
    const struct job_option *option;

    for (size_t i = 0; (option = job_option_at(i)); i++)
        if (!optimizer_uses(kind, option->pointer) && !warn_is_default(option, spec))
            warn_plan_warn_with(plan,
                                json_sprintf("optimizer.%s has no effect with optimizer.name %s",
                                             strrchr(option->pointer, '/') + 1, kind->name));
    const char *usual = optimizer_default(kind, "/lr/base");
    if (usual && spec->lr.base >= HIGH_RATE_TIMES * strtod(usual, NULL))
        warn_plan_warn_with(
            plan,
            json_sprintf("lr.base is %.10g, far above the usual learning rate of %s, %s (Cray, "
                         "Scaling Deep Learning, ALCF 2018)",
                         spec->lr.base, kind->name, usual));
}

/* Keys that were set and that this network does not look at. */
static void warn_of_arch(struct plan *plan, const struct job_spec *spec)
{
    const struct arch *arch = arch_find(spec->model.arch);
    const struct job_option *option;

    for (size_t i = 0; (option = job_option_at(i)); i++)
        if (!arch_uses(arch, option->pointer) && !warn_is_default(option, spec))
            warn_plan_warn_with(plan, json_sprintf("model.%s has no effect with model.arch %s",
                                                   strrchr(option->pointer, '/') + 1, arch->name));
    if (arch->family == ARCH_CNN && spec->optimizer.decay_bn &&
        !optimizer_kind_at((size_t)spec->optimizer.name)->spares_biases)
        warn_plan_warn_with(
            plan, json_sprintf("optimizer.decay_bn has no effect with model.arch %s: it has no "
                               "batch norm",
                               arch->name));
}

/* As far as a worker's threads are known. */
static void warn_of_threads(struct plan *plan, const struct job_spec *spec)
{
    long long threads = spec->cluster.threads_per_worker, images = spec->batch_per_worker;
    double keep = plan_threads_keep(spec, threads, images);
    long long enough = plan_threads_images(spec, threads);
    char way[96] = "use more workers with fewer threads each";

    if (keep == 0 || keep >= PLAN_THREADS_KEEP)
        return;
    if (enough)
        snprintf(way, sizeof way, "batch_per_worker %lld would reach %.0f %%", enough,
                 100 * plan_threads_keep(spec, threads, enough));
    warn_plan_warn_with(
        plan, json_sprintf(
                  "a batch of %lld image%s is too small for %lld threads per worker: layers with "
                  "%lldx%lld pixels do not divide evenly among them, which leaves about %.0f %% "
                  "of their speed; %s",
                  images, plural(images), threads, (long long)spec->model.image_size,
                  (long long)spec->model.image_size, 100 * keep, way));
}

static void warn_of_slowest(struct plan *plan, const struct plan_speed *speed)
{
    if (speed->slowest_times > 1)
        warn_plan_warn_with(
            plan,
            json_sprintf("node %s is %.0f %% slower than others of its kind; all nodes wait for "
                         "the slowest in each step, so the prediction uses its speed",
                         speed->slowest, 100 * (1 - 1 / speed->slowest_times)));
}

static void warn_of_hosts(struct plan *plan, const struct job_spec *spec)
{
    long long hosts = (long long)spec->cluster.host_count, nodes = spec->cluster.nodes;

    if (spec->cluster.hosts && hosts > nodes)
        warn_plan_warn_with(
            plan, json_sprintf(
                      "cluster.hosts has %lld hosts and cluster.nodes is %lld: %lld %s in reserve, "
                      "for hosts that do not answer",
                      hosts, nodes, hosts - nodes, hosts - nodes > 1 ? "are" : "is"));
}

/* worker/comm/gradients.c: within one machine buckets stay in the cache, and the cores that compute
 * are those that add. */
static void warn_of_comm(struct plan *plan, const struct job_spec *spec)
{
    static const char *const keys[] = {"/comm/fusion_bytes", "/comm/overlap", "/comm/core"};
    long long workers = (long long)spec->cluster.workers_per_node;

    if (spec->cluster.nodes > 1)
        return;
    if (workers == 1 && spec->comm.dtype != JOB_PRECISION_FP32)
        warn_plan_warn_with(
            plan,
            json_string("comm.dtype has no effect with one worker, which exchanges no gradients"));
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (!warn_is_default(job_option_find(keys[i]), spec))
            warn_plan_warn_with(
                plan,
                workers > 1
                    ? json_sprintf(
                          "comm.%s has no effect on one machine, where the gradients of the "
                          "%lld workers are summed after the backward pass in buckets "
                          "that fit into the cache; it is for the exchange between machines "
                          "(cluster.nodes)",
                          keys[i] + strlen("/comm/"), workers)
                    : json_sprintf(
                          "comm.%s has no effect with one worker, which exchanges no gradients",
                          keys[i] + strlen("/comm/")));
}

/* The first of Intel's and LLVM's variables; libgomp has none of them. */
static void warn_of_env(struct plan *plan, const struct job_spec *spec)
{
    char name[JOB_ENV_NAME_BYTES];

    for (size_t i = 0; i < spec->cluster.env_count; i++) {
        job_env_split(spec->cluster.env[i], name);
        if (strncmp(name, "KMP_", 4) != 0)
            continue;
        warn_plan_warn_with(
            plan,
            json_sprintf("cluster.env: %s is for the OpenMP of Intel and LLVM and has no effect "
                         "with that of GNU (libgomp), which the engine uses by default; set "
                         "OMP_WAIT_POLICY or GOMP_SPINCOUNT instead",
                         name));
        return;
    }
}

/* Keys that need another one, or a longer run. */
static void warn_of_no_effect(struct plan *plan, const struct job_spec *spec)
{
    if (spec->eval.has_target_top1 && !spec->data.eval)
        warn_plan_warn_with(plan, json_string("eval.target_top1 has no effect without data.eval"));
    if (spec->data.has_eval_images && !spec->data.eval)
        warn_plan_warn_with(plan, json_string("data.eval_images has no effect without data.eval"));
    if (spec->cluster.nodes > 1 && spec->comm.core != JOB_CORE_AUTO && !spec->comm.overlap)
        warn_plan_warn_with(plan, json_string("comm.core has no effect without comm.overlap"));
    if (spec->ema.decay <= 0 && spec->ema.from_epoch > 0)
        warn_plan_warn_with(plan, json_string("ema.from_epoch has no effect without ema.decay"));
    if (spec->profile.has_steps && spec->profile.first_step > plan->train_steps)
        warn_plan_warn_with(
            plan, json_sprintf("profile.steps begins with step %lld, but the job has %lld: "
                               "nothing will be traced",
                               (long long)spec->profile.first_step, (long long)plan->train_steps));
}

/* Before a machine is taken for days. */
static void warn_of_time(struct plan *plan)
{
    const struct plan_band *seconds = &plan->predicted.ttt_seconds;
    const double day = 86400;

    if (plan->predicted.known && seconds->value > PLAN_LONG_SECONDS)
        warn_plan_warn_with(
            plan, json_sprintf("the job is predicted to take %.3g days (%.3g to %.3g); fewer "
                               "epochs, smaller images (model.image_size), a smaller network "
                               "(model.arch) or more workers shorten it",
                               seconds->value / day, seconds->low / day, seconds->high / day));
}

void plan_warn(struct plan *plan, const struct job_spec *spec, const struct plan_inputs *inputs)
{
    warn_of_time(plan);
    warn_of_hosts(plan, spec);
    warn_of_env(plan, spec);
    warn_of_arch(plan, spec);
    if (spec->precision == JOB_PRECISION_BF16 && inputs->emulates_bf16)
        warn_plan_warn_with(plan,
                            json_string("precision \"bf16\" is emulated: no faster than fp32 on "
                                        "this processor, which has neither AMX nor AVX512_BF16"));
    warn_of_remarks(plan, inputs->data.remarks);
    if (plan->mode == JOB_MODE_EVAL)
        return;
    warn_of_slowest(plan, &inputs->speed);
    warn_of_threads(plan, spec);
    warn_of_batch(plan, spec);
    warn_of_single_images(plan, spec);
    warn_of_data(plan, spec, &inputs->data);
    warn_of_locality(plan, spec);
    warn_of_epochs(plan, spec);
    warn_of_sizes(plan);
    warn_of_schedule(plan, spec);
    warn_of_rate(plan, spec);
    warn_of_high_rate(plan, spec);
    warn_of_optimizer(plan, spec);
    warn_of_comm(plan, spec);
    warn_of_no_effect(plan, spec);
}
