#include "common/plan/explain.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/job/job_value.h"
#include "common/job/job_spec.h"
#include "common/job/recipe/optimizers.h"
#include "common/json.h"
#include "common/net/arch.h"
#include "common/number.h"
#include "common/plan/memory.h"
#include "common/plan/plan.h"
#include "common/plan/predict.h"
#include "common/plan/workers.h"
#include "common/text.h"

/*
 * Explains each number of the plan with its formula, inputs and the source of the formula.
 *
 * Sources: SURFsara and Intel, "TensorFlow BKMs for State-Of-The-Art Accuracy & Convergence", April
 * 2018; Goyal et al., "Accurate, Large Minibatch SGD", 2017; Cray, "Scaling Deep Learning", ALCF
 * SDL workshop 2018; Malladi et al., arXiv:2205.10287; the MLPerf training rules.
 */

#define BKM   "SURFsara and Intel, ResNet-50 BKM, 2018"
#define GOYAL "Goyal et al. 2017, Accurate, Large Minibatch SGD"
#define CRAY  "Cray, Scaling Deep Learning, ALCF 2018"
#define MALLADI                                                                                    \
    "Malladi et al. 2022, On the SDEs and Scaling Rules for Adaptive Gradient Algorithms"
#define JOB "the job document"

static const struct {
    const char *key, *meaning, *change;
} words[] = {
  /* clang-format off */
    {"train_images", "Number of training images. Each epoch uses every one of them once.",
     "data.train, or data.train_images, which states the number instead of counting"},
    {"eval_images", "Number of images on which top-1 and top-5 are measured.",
     "data.eval, or data.eval_images"},
    {"world_size", "Number of workers (MPI ranks). Each trains on a part of every batch.",
     "cluster.nodes or cluster.workers_per_node; the global batch grows with them"},
    {"batch_per_node", "Images that one node processes at a time.",
     "cluster.workers_per_node or batch_per_worker; only the latter changes the memory of a worker"},
    {"global_batch", "Images per update of the weights.",
     "global_batch itself, which then determines batch_per_worker; otherwise cluster.nodes, cluster.workers_per_node, batch_per_worker, or accumulate_steps, which needs no more memory. Twice the batch halves the steps and, with lr.scaling linear, doubles the peak learning rate"},
    {"workers_per_node", "Workers per node, chosen by the plan; the list has the alternatives (workers x threads) with their speed relative to the fastest.",
     "cluster.workers_per_node (0: chosen by the plan)"},
    {"threads_per_worker", "Compute threads of each worker.",
     "cluster.threads_per_worker, or cluster.workers_per_node, which divide up the cores of a node"},
    {"env", "Environment variables that the job sets for its workers.",
     "cluster.env. Their names must begin with one of job_env_prefixes of traind.conf; for threads, use cluster.threads_per_worker"},
    {"steps_per_epoch", "Updates in one pass over the training images.",
     "the global batch. Images that do not fill the last batch of an epoch are left out, unless steps_rounding is exact"},
    {"warmup_steps", "Updates in which the learning rate rises to its peak.",
     "lr.warmup_epochs; large global batches need warm-up, usually 5 epochs"},
    {"train_steps", "Number of updates.",
     "epochs, or steps, which overrides it; or the global batch: a larger one means fewer steps per epoch"},
    {"head_lr", "The highest learning rate of the classifier.",
     "lr.head_factor, or what changes peak_lr"},
    {"trained_weights", "Number of weights that are trained.",
     "model.freeze"},
    {"start_lr", "Learning rate of the first update.",
     "lr.start (default: lr.base)"},
    {"last_lr", "The learning rate at each step; the value is that of the last step.",
     "lr.decay and the keys of that decay: lr.power, lr.end, lr.milestones, lr.gamma, lr.decay_epochs, lr.staircase, lr.patience"},
    {"ema", "Fraction of the averaged weights that remains at each update of the average.",
     "ema.half_life or ema.decay, and ema.every"},
    {"earliest_end_epoch", "Epoch in which the run ends if its evaluations do not improve.",
     "eval.patience, and eval.every_epochs; eval.min_delta and eval.monitor say what an improvement is"},
    {"memory_bytes_per_worker", "Estimate of the maximum memory of a worker.",
     "mainly batch_per_worker (for an evaluation: eval.batch), then model.image_size and model.arch. accumulate_steps increases the global batch without more memory"},
    {"predicted", "Predicted time to train in seconds.",
     "more nodes or workers, as long as exchanging gradients takes little of a step; fewer epochs, or eval.stop_at_target; eval.every_epochs, if evaluations take long. trainctl predict compares node counts"},
    {"image_sizes", "Width and height of the images, and the step from which each is used.",
     "model.image_size. Small images early in the run save almost all of the pixels they leave out; evaluation uses the last size"},
    {"phases", "The parts of the run whose steps have the same number of images.",
     "batch_schedule, which is constant by default; model.image_size, by which the batches change; batch_per_worker, from which they are calculated"},
    {"peak_lr", "The highest learning rate, reached at the end of warm-up.",
     "lr.base, lr.factor, or the global batch, as lr.scaling says: with linear, twice the batch doubles the peak, with sqrt four times the batch does, with none it has no effect"},
  /* clang-format on */
};

static void explain_plan_add_explanation(struct plan *plan, const char *key, const char *formula,
                                         json_t *inputs, json_t *value, const char *source,
                                         json_t *note)
{
    json_t *entry = json_pack("{s:s, s:o, s:o, s:s}", "formula", formula, "inputs", inputs, "value",
                              value, "source", source);

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(words[i].key, key) == 0) {
            json_object_set_new(entry, "meaning", json_string(words[i].meaning));
            json_object_set_new(entry, "change", json_string(words[i].change));
        }
    if (note)
        json_object_set_new(entry, "note", note);
    json_object_set_new(plan->explain, key, entry);
}

static void explain_images(struct plan *plan, const struct job_spec *spec)
{
    bool synthetic = spec->data.train && strcmp(spec->data.train, "synthetic") == 0;
    bool given = spec->data.has_train_images && spec->data.train_images == plan->train_images;

    if (plan->mode == JOB_MODE_TRAIN)
        explain_plan_add_explanation(
            plan, "train_images", given ? "data.train_images" : "images in data.train",
            json_pack("{s:s}", "data.train", spec->data.train), json_integer(plan->train_images),
            given       ? JOB
            : synthetic ? "synthetic data stands for ImageNet-1k's 1281167 images unless "
                          "data.train_images says otherwise"
                        : "counted",
            NULL);
    bool stated = spec->data.eval && spec->data.has_eval_images;
    explain_plan_add_explanation(
        plan, "eval_images", stated ? "data.eval_images" : "images in data.eval",
        json_pack("{s:s?}", "data.eval", spec->data.eval), json_integer(plan->eval_images),
        spec->data.eval && !stated ? "counted" : JOB,
        spec->data.eval ? NULL : json_string("no data.eval: no evaluation"));
}

static void explain_workers(struct plan *plan, const struct plan_inputs *inputs)
{
    const struct plan_workers *w = inputs->workers;

    if (!w || !w->workers)
        return;
    json_t *in = json_pack("{s:I, s:s}", "node_cores", (json_int_t)w->cores, "ways", w->ways);
    if (w->memory_bytes)
        json_object_set_new(in, "node_memory_bytes", json_integer((json_int_t)w->memory_bytes));
    explain_plan_add_explanation(
        plan, "workers_per_node",
        "the fewest workers within 5 % of the fastest way to cut a node's cores (10 % where each "
        "worker brings a batch of its own), as far as its "
        "memory, batch norm and NUMA domains allow",
        in, json_integer((json_int_t)w->workers),
        inputs->cores_source ? inputs->cores_source : "this machine", json_string(w->reason));
}

/* With launcher local the ranks share a machine, which the plan may not know. */
static void explain_threads(struct plan *plan, const struct job_spec *spec,
                            const struct plan_inputs *inputs)
{
    int64_t threads = spec->cluster.threads_per_worker;
    json_t *in = json_pack("{s:I}", "workers_per_node", (json_int_t)spec->cluster.workers_per_node);

    if (spec->cluster.launcher != JOB_LAUNCHER_SLURM && !inputs->node_cores) {
        json_decref(in);
        return;
    }
    const char *share = spec->cluster.smt ? "node_hardware_threads / workers_per_node"
                                          : "node_cores / workers_per_node";
    if (inputs->node_cores)
        json_object_set_new(in, spec->cluster.smt ? "node_hardware_threads" : "node_cores",
                            json_integer((json_int_t)inputs->node_cores));
    if (inputs->node_cores)
        explain_plan_add_explanation(plan, "threads_per_worker", share, in,
                                     json_integer((json_int_t)threads), inputs->cores_source, NULL);
    else
        explain_plan_add_explanation(
            plan, "threads_per_worker", threads ? "cluster.threads_per_worker" : share, in,
            threads ? json_integer((json_int_t)threads) : json_null(), JOB,
            threads ? NULL
                    : json_string("when the job is submitted, traind asks Slurm for the cores of a "
                                  "node, or uses slurm.node_cores of traind.conf"));
}

static void explain_env(struct plan *plan, const struct job_spec *spec)
{
    json_t *variables = json_array();

    for (size_t i = 0; i < spec->cluster.env_count; i++)
        json_array_append_new(variables, json_string(spec->cluster.env[i]));
    if (spec->cluster.env_count)
        explain_plan_add_explanation(plan, "env", "cluster.env", json_object(), variables, JOB,
                                     NULL);
    else
        json_decref(variables);
}

static void explain_batch(struct plan *plan, const struct job_spec *spec)
{
    json_int_t nodes = spec->cluster.nodes, workers = spec->cluster.workers_per_node;

    explain_plan_add_explanation(
        plan, "world_size", "nodes x workers_per_node",
        json_pack("{s:I, s:I}", "nodes", nodes, "workers_per_node", workers),
        json_integer(plan->world_size), BKM, NULL);
    if (plan->mode == JOB_MODE_EVAL)
        return;
    explain_plan_add_explanation(plan, "batch_per_node", "workers_per_node x batch_per_worker",
                                 json_pack("{s:I, s:I}", "workers_per_node", workers,
                                           "batch_per_worker", (json_int_t)spec->batch_per_worker),
                                 json_integer(plan->batch_per_node), BKM, NULL);
    explain_plan_add_explanation(
        plan, "global_batch", "nodes x batch_per_node x accumulate_steps",
        json_pack("{s:I, s:I, s:I}", "nodes", nodes, "batch_per_node",
                  (json_int_t)plan->batch_per_node, "accumulate_steps",
                  (json_int_t)spec->accumulate_steps),
        json_integer(plan->global_batch), BKM,
        spec->has_global_batch
            ? json_sprintf("global_batch is given; each worker gets %lld x %lld images of it",
                           (long long)spec->accumulate_steps, (long long)spec->batch_per_worker)
            : NULL);
}

static void explain_step_count(struct plan *plan, const char *key, const char *epochs_key,
                               double epochs, int64_t steps, const char *source)
{
    double exact = (double)plan->train_images / (double)plan->global_batch * epochs;
    char formula[96];

    if (plan->phase_count > 1) {
        explain_plan_add_explanation(
            plan, key, "the steps of all phases, up to this epoch",
            json_pack("{s:o}", epochs_key, json_number(epochs)), json_integer(steps), source,
            json_sprintf("%.1f with batch_schedule constant", plan->steps_in_epoch * epochs));
        return;
    }
    snprintf(formula, sizeof formula, "round(%s x %s)",
             plan->exact ? "train_images / global_batch" : "steps_per_epoch", epochs_key);
    if (plan->exact)
        explain_plan_add_explanation(
            plan, key, formula,
            json_pack("{s:I, s:I, s:o}", "train_images", (json_int_t)plan->train_images,
                      "global_batch", (json_int_t)plan->global_batch, epochs_key,
                      json_number(epochs)),
            json_integer(steps), source,
            json_sprintf("steps_rounding exact: %.2f before rounding", exact));
    else
        explain_plan_add_explanation(
            plan, key, formula,
            json_pack("{s:I, s:o}", "steps_per_epoch", (json_int_t)plan->steps_per_epoch,
                      epochs_key, json_number(epochs)),
            json_integer(steps), source, json_sprintf("%.1f with steps_rounding exact", exact));
}

static void explain_steps(struct plan *plan, const struct job_spec *spec)
{
    double exact = (double)plan->train_images / (double)plan->global_batch;
    json_int_t per_epoch = plan->steps_per_epoch;

    if (plan->node_images_least > 0)
        explain_plan_add_explanation(
            plan, "steps_per_epoch",
            "floor(node_images / (batch_per_node x accumulate_steps)) of the node with the "
            "fewest images",
            json_pack("{s:I, s:I, s:I}", "node_images", (json_int_t)plan->node_images_least,
                      "batch_per_node", (json_int_t)plan->batch_per_node, "accumulate_steps",
                      (json_int_t)spec->accumulate_steps),
            json_integer(per_epoch), "data.locality node",
            json_sprintf("the node with the most images has %lld; with data.locality global the "
                         "result would be floor(%.2f)",
                         (long long)plan->node_images_most, exact));
    else
        explain_plan_add_explanation(
            plan, "steps_per_epoch", "floor(train_images / global_batch)",
            json_pack("{s:I, s:I}", "train_images", (json_int_t)plan->train_images, "global_batch",
                      (json_int_t)plan->global_batch),
            json_integer(per_epoch), BKM,
            json_sprintf(plan->exact
                             ? "%.2f before rounding down; with steps_rounding exact, epochs "
                               "are not rounded"
                             : "%.2f before rounding down",
                         exact));
    explain_step_count(plan, "warmup_steps", "warmup_epochs", spec->lr.warmup_epochs,
                       plan->warmup_steps, BKM "; " GOYAL);
    if (spec->has_steps)
        explain_plan_add_explanation(
            plan, "train_steps", "steps", json_pack("{s:I}", "steps", (json_int_t)spec->steps),
            json_integer(plan->train_steps), JOB,
            json_sprintf("steps overrides epochs; it corresponds to %.4g epochs",
                         plan_epochs_after(plan, spec->steps)));
    else
        explain_step_count(plan, "train_steps", "epochs", spec->epochs, plan->train_steps, BKM);
    if (spec->stop_at < 1)
        explain_plan_add_explanation(plan, "train_steps", "round(stop_at x steps of the schedule)",
                                     json_pack("{s:o, s:I}", "stop_at", json_number(spec->stop_at),
                                               "schedule", lr_run_steps(&plan->lr)),
                                     json_integer(plan->train_steps), JOB, NULL);
}

static void explain_sizes(struct plan *plan, const struct job_spec *spec)
{
    struct job_sizes sizes = spec->model.sizes;
    json_t *value = json_array();

    sizes.ramps = false; /* print the list that the ramp stands for */

    if (plan->size_count < 2) {
        json_decref(value);
        return;
    }
    for (size_t i = 0; i < plan->size_count; i++)
        json_array_append_new(value, json_pack("[I, I]", (json_int_t)plan->sizes[i].step,
                                               (json_int_t)plan->sizes[i].size));
    explain_plan_add_explanation(
        plan, "image_sizes",
        plan->phase_count > 1 ? "from the first step of each phase"
                              : "from step round(steps_per_epoch x epoch)",
        json_pack("{s:o, s:o}", "model.image_size", job_sizes_to_json(&sizes),
                  plan->exact ? "train_images / global_batch" : "steps_per_epoch",
                  json_number(number_rounded(plan->steps_in_epoch))),
        value,
        "Touvron et al. 2019, Fixing the train-test resolution discrepancy; FFCV's ResNet-50",
        json_sprintf("%.3g of the computation of all steps at size %lld, or that of %.3g epochs",
                     plan->size_cost, (long long)spec->model.image_size,
                     plan->size_cost * plan_epochs_after(plan, plan->train_steps)));
}

static void explain_phases(struct plan *plan, const struct job_spec *spec)
{
    json_t *value = json_array();

    if (plan->phase_count < 2) {
        json_decref(value);
        return;
    }
    for (size_t i = 0; i < plan->phase_count; i++)
        json_array_append_new(value, json_pack("[o, I]",
                                               json_number(number_rounded(plan->phases[i].epoch)),
                                               (json_int_t)plan->phases[i].batch_per_worker));
    explain_plan_add_explanation(
        plan, "phases",
        "batch = batch_per_worker x image_bytes(last size) / image_bytes(size), rounded down to a "
        "multiple of 8 and at least batch_per_worker",
        json_pack(
            "{s:I, s:I, s:I}", "batch_per_worker", (json_int_t)spec->batch_per_worker,
            "image_bytes(first size)", (json_int_t)plan_image_bytes(spec, plan->phases[0].size),
            "image_bytes(last size)", (json_int_t)plan_image_bytes(spec, spec->model.image_size)),
        value, "the engine's buffer plan, common/net/activations.c; for the rate " GOYAL,
        json_string("[epoch, batch of a worker] of each phase. The learning rate of a phase is "
                    "that of the schedule at the same epoch, times lr_factor: what lr.scaling "
                    "makes of its global batch, by what it makes of the last"));
}

static void explain_peak(struct plan *plan, const struct job_spec *spec)
{
    static const char *const formulas[] = {
        [JOB_SCALING_LINEAR] = "lr.base x global_batch / lr.base_batch x lr.factor",
        [JOB_SCALING_SQRT] = "lr.base x sqrt(global_batch / lr.base_batch) x lr.factor",
        [JOB_SCALING_NONE] = "lr.base x lr.factor",
    };
    static const char *const sources[] = {
        [JOB_SCALING_LINEAR] = (GOYAL "; " BKM),
        [JOB_SCALING_SQRT] = CRAY,
        [JOB_SCALING_NONE] = JOB,
    };
    json_t *inputs = json_pack("{s:o}", "lr.base", json_number(spec->lr.base));
    json_t *note = NULL;

    if (spec->lr.scaling != JOB_SCALING_NONE) {
        json_object_set_new(inputs, "global_batch", json_integer(plan->global_batch));
        json_object_set_new(inputs, "lr.base_batch", json_integer(spec->lr.base_batch));
        if (spec->lr.factor != 1)
            note = json_sprintf("%.10g before lr.factor", plan->peak_lr / spec->lr.factor);
    }
    json_object_set_new(inputs, "lr.factor", json_number(spec->lr.factor));
    const struct optimizer_kind *optimizer = optimizer_kind_at((size_t)spec->optimizer.name);
    bool root_of_adaptive = optimizer->adaptive && spec->lr.scaling == JOB_SCALING_SQRT;
    explain_plan_add_explanation(
        plan, "peak_lr", formulas[spec->lr.scaling], inputs, json_number(plan->peak_lr),
        root_of_adaptive ? CRAY "; " MALLADI : sources[spec->lr.scaling], note);
}

static void explain_head(struct plan *plan, const struct job_spec *spec)
{
    if (spec->lr.head_factor != 1)
        explain_plan_add_explanation(
            plan, "head_lr", "peak_lr x lr.head_factor",
            json_pack("{s:o, s:o}", "peak_lr", json_number(plan->peak_lr), "lr.head_factor",
                      json_number(spec->lr.head_factor)),
            json_number(number_rounded(plan->peak_lr * spec->lr.head_factor)), JOB, NULL);
}

static void explain_frozen(struct plan *plan, const struct job_spec *spec)
{
    struct arch_shape shape = arch_shape_of(spec);
    double all = (double)arch_parameters(&shape), trained = (double)arch_trained_parameters(&shape);
    struct arch_shape whole = shape;

    whole.frozen = 0;
    if (!shape.frozen)
        return;
    double computation = arch_training_macs(&shape) / arch_training_macs(&whole);
    explain_plan_add_explanation(
        plan, "trained_weights", "weights of the network - weights of the frozen parts",
        json_pack("{s:o, s:o}", "model.freeze",
                  job_value_load(job_option_find("/model/freeze"), spec), "weights",
                  json_integer((json_int_t)all)),
        json_integer((json_int_t)trained), JOB,
        json_sprintf("gradients are %.3g MB instead of %.3g MB, and a step takes %.3g %% of the "
                     "operations that it takes without frozen parts",
                     4e-6 * trained, 4e-6 * all, 100 * computation));
}

static void explain_start(struct plan *plan, const struct job_spec *spec)
{
    if (spec->lr.has_start)
        explain_plan_add_explanation(plan, "start_lr", "lr.start",
                                     json_pack("{s:o}", "lr.start", json_number(spec->lr.start)),
                                     json_number(plan->start_lr), JOB, NULL);
    else
        explain_plan_add_explanation(plan, "start_lr", "min(lr.base, peak_lr)",
                                     json_pack("{s:o, s:o}", "lr.base", json_number(spec->lr.base),
                                               "peak_lr", json_number(plan->peak_lr)),
                                     json_number(plan->start_lr), BKM "; " GOYAL, NULL);
}

static void explain_average(struct plan *plan, const struct job_spec *spec)
{
    bool halves = spec->ema.half_life > 0;
    double decay = job_spec_average_decay(spec);

    if (job_spec_averages(spec))
        explain_plan_add_explanation(
            plan, "ema", halves ? "0.5^(every / half_life)" : "decay^every",
            json_pack("{s:o, s:I}", halves ? "ema.half_life" : "ema.decay",
                      json_number(halves ? spec->ema.half_life : spec->ema.decay), "ema.every",
                      (json_int_t)spec->ema.every),
            json_number(number_rounded(decay)), "Polyak and Juditsky 1992; MosaicML's Composer",
            spec->ema.warmup ? json_string("the first updates remember less (ema.warmup)") : NULL);
}

static void explain_patience(struct plan *plan, const struct job_spec *spec)
{
    if (spec->eval.patience == 0)
        return;
    explain_plan_add_explanation(
        plan, "earliest_end_epoch", "(1 + patience) x every_epochs",
        json_pack("{s:I, s:o}", "eval.patience", (json_int_t)spec->eval.patience,
                  "eval.every_epochs", json_number(spec->eval.every_epochs)),
        json_number(number_rounded((double)(1 + spec->eval.patience) * spec->eval.every_epochs)),
        JOB, json_string("times and steps of the plan are those of a run that does not end early"));
}

/* In the formulas, s is the step, W warmup_steps, T train_steps. */
static void explain_schedule(struct plan *plan, const struct job_spec *spec)
{
    static const char *const formulas[] = {
        [JOB_DECAY_POLY] =
            "s < W: start + (peak - start) s/W; then (peak - end) (1 - (s-W)/(T-W))^power + end",
        [JOB_DECAY_COSINE] = ("s < W: start + (peak - start) s/W; then (peak - end) (1 + cos(pi "
                              "(s-W)/(T-W)))/2 + end"),
        [JOB_DECAY_STEP] =
            "s < W: start + (peak - start) s/W; then peak x gamma^(milestones passed)",
        [JOB_DECAY_EXPONENTIAL] = "s < W: start + (peak - start) s/W; then peak x gamma^((s-W)/D)",
        [JOB_DECAY_PLATEAU] = "s < W: start + (peak - start) s/W; then peak x gamma^k",
        [JOB_DECAY_NONE] = "s < W: start + (peak - start) s/W; then peak",
    };
    static const char *const sources[] = {
        [JOB_DECAY_POLY] = (BKM " (power 1); MLPerf reference (power 2)"),
        [JOB_DECAY_COSINE] = "Loshchilov and Hutter 2017; Habana's ResNeXt-101 reference",
        [JOB_DECAY_STEP] = GOYAL,
        [JOB_DECAY_EXPONENTIAL] = (CRAY ", step 3; TensorFlow's exponential_decay"),
        [JOB_DECAY_PLATEAU] = "PyTorch's ReduceLROnPlateau",
        [JOB_DECAY_NONE] = JOB,
    };
    const struct lr_schedule *lr = &plan->lr;
    bool plateau = lr->decay == JOB_DECAY_PLATEAU;
    json_t *inputs = json_pack("{s:o, s:o, s:I, s:I}", "start", json_number(lr->start), "peak",
                               json_number(lr->peak), "W", (json_int_t)lr->warmup_steps, "T",
                               (json_int_t)lr->train_steps);

    if (lr->decay == JOB_DECAY_POLY)
        json_object_set_new(inputs, "power", json_number(lr->power));
    if (lr->decay == JOB_DECAY_POLY || lr->decay == JOB_DECAY_COSINE || plateau)
        json_object_set_new(inputs, "end", json_number(lr->end));
    if (lr->decay == JOB_DECAY_STEP) {
        json_t *steps = json_array();
        for (size_t i = 0; i < lr->milestone_count; i++)
            json_array_append_new(steps, json_integer(lr->milestone_steps[i]));
        json_object_set_new(inputs, "milestones", steps);
    }
    if (lr->decay == JOB_DECAY_STEP || lr->decay == JOB_DECAY_EXPONENTIAL || plateau)
        json_object_set_new(inputs, "gamma", json_number(lr->gamma));
    if (plateau)
        json_object_set_new(inputs, "patience", json_integer(spec->lr.patience));
    if (lr->decay == JOB_DECAY_EXPONENTIAL)
        json_object_set_new(inputs, "D", json_number(number_rounded(lr->decay_steps)));
    explain_plan_add_explanation(
        plan, "last_lr",
        lr->decay == JOB_DECAY_EXPONENTIAL && lr->staircase
            ? "s < W: start + (peak - start) s/W; then peak x gamma^floor((s-W)/D)"
            : formulas[spec->lr.decay],
        inputs, json_number(number_rounded(lr_at(lr, plan->train_steps - 1))),
        sources[spec->lr.decay],
        json_string(plan->phase_count > 1
                        ? "s is the epoch x steps_per_epoch, so that W and T are steps of the last "
                          "batch; a phase with another batch multiplies the rate by its lr_factor; "
                          "the value is that of the last step"
                    : plateau
                        ? "k counts the times that patience + 1 evaluations in succession were not "
                          "better; the value is that of a run that always improves"
                        : "s is the step, from 0 to T-1; the value is that of the last step"));
}

static void explain_memory(struct plan *plan, const struct job_spec *spec)
{
    struct plan_memory m = plan_memory_of(spec);
    bool trains = plan->mode == JOB_MODE_TRAIN;
    json_t *inputs = json_pack(
        "{s:i, s:I, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "copies", m.copies, "parameter_bytes",
        (json_int_t)m.parameter_bytes, "trained_copies", m.trained_copies, "trained_bytes",
        (json_int_t)m.trained_bytes, trains ? "batch_per_worker" : "eval.batch",
        (json_int_t)m.images, "bytes_per_image", (json_int_t)m.bytes_per_image, "eval_input_bytes",
        (json_int_t)m.eval_input_bytes, "fixed_bytes", (json_int_t)m.fixed_bytes,
        "threads beyond one", (json_int_t)m.more_threads, "thread_bytes",
        (json_int_t)m.thread_bytes);

    explain_plan_add_explanation(
        plan, "memory_bytes_per_worker",
        trains ? "copies x parameter_bytes + trained_copies x trained_bytes + batch_per_worker x "
                 "bytes_per_image + "
                 "eval_input_bytes + fixed_bytes + threads beyond one x thread_bytes"
               : "copies x parameter_bytes + eval.batch x bytes_per_image + eval_input_bytes + "
                 "fixed_bytes + threads beyond one x thread_bytes",
        inputs, json_integer(plan->memory_bytes_per_worker),
        "the engine's buffer plan, common/net/activations.c",
        json_string(
            trains ? "copies: weights, and their average. trained_copies: gradients and optimiser "
                     "state. bytes_per_image: the "
                     "maximum of the engine's arena (the outputs of convolutions and what "
                     "the backward pass recomputes from them), and data.prefetch_batches + "
                     "1 inputs. eval_input_bytes: three evaluation batches. fixed_bytes: "
                     "the program, estimated"
                   : "copies: the weights. bytes_per_image: the maximum of the engine's arena, "
                     "and three inputs. fixed_bytes: the program, estimated"));
}

static json_t *explain_predicted_unknown(const struct job_spec *spec,
                                         const struct plan_speed *speed)
{
    long long workers = spec->cluster.workers_per_node > 0 ? spec->cluster.workers_per_node : 1;

    if (plan_speed_scatters(speed))
        return json_sprintf(
            "run \"trainctl scale --weak --workers %lld FILE\" while nothing else runs: what %lld "
            "runs measured of an image differs by %.0f %% of their median, too much to predict",
            workers, (long long)speed->samples, 200 * speed->spread);
    return json_sprintf(
        "run \"trainctl scale --weak --workers %lld FILE\" to measure it: no speed is "
        "known yet for this network, image size, precision and number of threads",
        workers);
}

static void explain_predicted(struct plan *plan, const struct job_spec *spec,
                              const struct plan_inputs *inputs)
{
    const struct plan_network *network = inputs->network ? inputs->network : &plan_network_default;
    const struct plan_speed *speed = &inputs->speed;

    if (!plan->predicted.known) {
        explain_plan_add_explanation(plan, "predicted", "time of a step, from a measured speed",
                                     json_object(), json_null(), "no measurement",
                                     explain_predicted_unknown(spec, speed));
        return;
    }
    json_t *in = json_pack("{s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:I, s:I}", "image_ms",
                           json_number(number_rounded(1e3 * speed->image_seconds)), "update_ms",
                           json_number(number_rounded(1e3 * speed->update_seconds)), "exchange_ms",
                           json_number(number_rounded(1e3 * speed->exchange_seconds)),
                           "measured_runs", (json_int_t)speed->samples, "step_seconds",
                           json_number(number_rounded(plan->predicted.step_seconds.value)),
                           "epochs", json_number(number_rounded(plan->predicted.epochs.value)),
                           "jitter", json_number(network->jitter), "evaluations",
                           (json_int_t)plan_evaluations(plan, spec), "eval_images",
                           (json_int_t)plan->eval_images);
    if (speed->slowest_times > 1) {
        json_object_set_new(in, "slowest_node", json_string(speed->slowest));
        json_object_set_new(in, "slowest_node_times",
                            json_number(number_rounded(speed->slowest_times)));
    }
    explain_plan_add_explanation(
        plan, "predicted",
        spec->cluster.nodes > 1
            ? "step = (batch x image + update + exchange) x e^(jitter x slowest of n nodes) + "
              "additions + what backward does not hide of the sum between nodes; seconds = steps x "
              "step + evaluations"
            : "step = batch x image + update + exchange; seconds = steps x step + evaluations",
        in, json_number(number_rounded(plan->predicted.ttt_seconds.value)),
        "speeds measured on this kind of processor; MLPerf training rules, by which time to train "
        "includes evaluation; libtraincomm's schedule between nodes, over links of 100 Gbit/s",
        json_string(
            "evaluating an image takes a third of the time of training on it, twice that with "
            "eval.flip and with ema; low and high: the spread of the measurements, and a faster or "
            "slower network"));
}

void plan_explain(struct plan *plan, const struct job_spec *spec, const struct plan_inputs *inputs)
{
    json_object_update(plan->explain, spec->from_data);
    explain_images(plan, spec);
    explain_batch(plan, spec);
    explain_workers(plan, inputs);
    explain_threads(plan, spec, inputs);
    explain_env(plan, spec);
    if (plan->mode == JOB_MODE_TRAIN) {
        explain_steps(plan, spec);
        explain_sizes(plan, spec);
        explain_phases(plan, spec);
        explain_peak(plan, spec);
        explain_head(plan, spec);
        explain_frozen(plan, spec);
        explain_start(plan, spec);
        explain_schedule(plan, spec);
        explain_average(plan, spec);
        explain_patience(plan, spec);
        explain_predicted(plan, spec, inputs);
    }
    explain_memory(plan, spec);
}

#define LARGE_BATCH     8192 /* Goyal et al. 2017: accuracy of plain SGD decreases above 8K */
#define HIGH_RATE_TIMES 20
#define USUAL_RATE      0.1 /* of sgd and lars with a batch of USUAL_BATCH (Goyal et al. 2017) */
#define USUAL_BATCH     256
#define ENLARGED_TIMES  2

static void explain_warn_plan_warn_with(struct plan *plan, json_t *text)
{
    json_array_append_new(plan->warnings, text);
}

static long long explain_warn_dropped_images(const struct plan *plan)
{
    int64_t most = plan->dropped_images_per_epoch;

    for (size_t i = 0; i < plan->phase_count && !plan->exact; i++) {
        const struct plan_phase *p = &plan->phases[i];
        int64_t dropped = plan->train_images - p->steps_per_epoch * p->global_batch;
        most = dropped > most ? dropped : most;
    }
    return (long long)most;
}

static void explain_warn_of_batch(struct plan *plan, const struct job_spec *spec)
{
    long long n = plan->train_images,
              b = plan->phases[0].global_batch; /* those of the phase with the largest batch */
    long long dropped = explain_warn_dropped_images(plan);

    char share[NUMBER_BYTES];
    bool halved = spec->lr.scaling == JOB_SCALING_LINEAR && spec->lr.factor <= 0.5;

    if (b > LARGE_BATCH &&
        (spec->optimizer.name == JOB_OPTIMIZER_SGD || spec->optimizer.name == JOB_OPTIMIZER_SGDW))
        explain_warn_plan_warn_with(
            plan,
            json_sprintf("the global batch is %lld: above %d, accuracy usually falls with plain "
                         "SGD (Goyal et al. 2017); %s, as SURFsara and Intel with 24576",
                         b, LARGE_BATCH,
                         halved ? "this job takes half of the linearly scaled learning rate or less"
                                : "use LARS, or half of the linearly scaled learning rate "
                                  "(lr.factor 0.5)"));
    if (dropped)
        explain_warn_plan_warn_with(
            plan,
            json_sprintf(
                "the last partial batch of an epoch is dropped: %s%lld of %lld images (%s %%)",
                plan->phase_count > 1 ? "up to " : "", dropped, n,
                number_percent((double)dropped, (double)n, share)));
    b = plan->global_batch;
    if (spec->recipe_images && spec->recipe_images != n)
        explain_warn_plan_warn_with(
            plan, json_sprintf("the recipe is for %lld training images, but there are %lld: %lld / "
                               "%lld = %.2f steps per epoch, counted as %.10g, instead of %.2f",
                               (long long)spec->recipe_images, n, n, b, (double)n / (double)b,
                               plan->steps_in_epoch, (double)spec->recipe_images / (double)b));
}

static void explain_warn_find_smallest_output(const struct arch_conv *conv, void *context)
{
    int64_t *pixels = context, own = (int64_t)conv->out_size * conv->out_size;

    if (*conv->bn_name && (*pixels == 0 || own < *pixels))
        *pixels = own;
}

static int64_t explain_warn_smallest_batch_norm(const struct job_spec *spec, int64_t image_size)
{
    struct arch_shape shape = arch_shape_of(spec);
    int64_t pixels = 0;

    shape.image_size = (int)image_size;
    arch_each_conv(&shape, explain_warn_find_smallest_output, &pixels);
    return pixels;
}

/* Warns if batch norm has a single value per channel to normalise. */
static void explain_warn_of_single_images(struct plan *plan, const struct job_spec *spec)
{
    int64_t pixels = 0, size = 0;

    for (size_t i = 0; i < plan->size_count; i++) {
        int64_t own = explain_warn_smallest_batch_norm(spec, plan->sizes[i].size);
        if (plan_batch_of_size(spec, plan->sizes[i].size) == 1 && (pixels == 0 || own < pixels)) {
            pixels = own;
            size = plan->sizes[i].size;
        }
    }
    if (pixels == 1)
        explain_warn_plan_warn_with(
            plan,
            json_sprintf("with one image of %lld pixels at a time, batch norm in the last layers "
                         "has one value per channel, and what it makes of it does not depend on "
                         "the image: the network cannot learn; use batch_per_worker 2 or more%s",
                         (long long)size,
                         spec->model.stem == JOB_STEM_IMAGENET ? ", or model.stem small" : ""));
    else if (pixels)
        explain_warn_plan_warn_with(
            plan,
            json_string("with batch_per_worker 1, batch norm normalises each image by itself in "
                        "training and by running statistics in evaluations, which costs much "
                        "accuracy; use at least 8 (Wu and He 2018); accumulate_steps has no "
                        "effect on batch norm"));
}

static void explain_warn_of_data(struct plan *plan, const struct job_spec *spec,
                                 const struct plan_data *data)
{
    int side = data->width > data->height ? data->width : data->height;
    long long size = spec->model.image_size, classes = spec->model.classes;

    if (data->classes && data->classes < classes)
        explain_warn_plan_warn_with(
            plan, json_sprintf("model.classes is %lld, but the training data have %lld classes: "
                               "the remaining outputs of the network are unused",
                               classes, (long long)data->classes));
    if (side && size >= (long long)ENLARGED_TIMES * side)
        explain_warn_plan_warn_with(
            plan, json_sprintf("model.image_size is %lld, but the first training image has %d x "
                               "%d pixels: enlarging takes about %.0f times the computation and "
                               "adds no information",
                               size, data->width, data->height,
                               (double)(size * size) / ((double)side * side)));
    if (data->evaluates_training)
        explain_warn_plan_warn_with(
            plan, json_string("data.eval is the training data: the accuracy does not show how well "
                              "the network classifies images it has not seen"));
}

static void explain_warn_of_remarks(struct plan *plan, const char *remarks)
{
    for (size_t length; *remarks; remarks += length + (remarks[length] == '\n')) {
        length = strcspn(remarks, "\n");
        explain_warn_plan_warn_with(plan, json_stringn(remarks, length));
    }
}

static void explain_warn_of_locality(struct plan *plan, const struct job_spec *spec)
{
    long long least = plan->node_images_least, most = plan->node_images_most;
    long long together = plan->train_images / plan->global_batch;
    char share[NUMBER_BYTES];

    if (spec->data.locality != JOB_LOCALITY_NODE || least == 0 || spec->cluster.nodes == 1)
        return;
    explain_warn_plan_warn_with(
        plan,
        json_sprintf("data.locality node: each node trains only on its own %lld to %lld images (a "
                     "difference of %s %%), shuffled among themselves; an epoch has the %lld "
                     "steps of the node with the fewest images, %lld fewer than with a global "
                     "shuffle",
                     least, most, number_percent((double)(most - least), (double)least, share),
                     (long long)plan->steps_per_epoch, together - plan->steps_per_epoch));
}

/* Warns if there are fewer epochs than published runs needed for the job's target, or that no
 * published batch size is similar. */
static void explain_warn_of_epochs(struct plan *plan, const struct job_spec *spec)
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
        explain_warn_plan_warn_with(
            plan, json_sprintf("no run with a global batch of %lld is known to have "
                               "reached 75.9 %%: %s",
                               batch, doubt));
    else if (own < need.low - 0.5)
        explain_warn_plan_warn_with(
            plan,
            json_sprintf("the job has %.3g epochs, but reaching 75.9 %% takes "
                         "%.3g to %.3g with a global batch of %lld, by MLPerf's "
                         "reference runs (LARS)%s%s",
                         own, need.low, need.high, batch, doubt ? "; " : "", doubt ? doubt : ""));
}

static void explain_warn_of_sizes(struct plan *plan)
{
    for (size_t i = 1; i < plan->size_count; i++)
        if (plan->sizes[i].step >= plan->train_steps) {
            explain_warn_plan_warn_with(
                plan, json_sprintf("the run ends at step %lld, before images reach %lld pixels at "
                                   "step %lld (model.image_size)",
                                   (long long)plan->train_steps, (long long)plan->sizes[i].size,
                                   (long long)plan->sizes[i].step));
            return;
        }
}

static void explain_warn_of_schedule(struct plan *plan, const struct job_spec *spec)
{
    if (spec->batch_schedule == JOB_BATCH_FILL && plan->size_count < 2)
        explain_warn_plan_warn_with(
            plan, json_string("batch_schedule \"fill\" has no effect with one image "
                              "size: give model.image_size sizes by epoch"));
}

/* Checks the rate and its equivalent for a batch of 256: larger batches tolerate more. */
static void explain_warn_of_high_rate(struct plan *plan, const struct job_spec *spec)
{
    double peak = plan->peak_lr, scaled = peak * USUAL_BATCH / (double)plan->global_batch;
    const struct optimizer_kind *kind = optimizer_kind_at((size_t)spec->optimizer.name);

    if (!kind->adaptive && fmin(peak, scaled) >= HIGH_RATE_TIMES * USUAL_RATE)
        explain_warn_plan_warn_with(
            plan, json_sprintf("the learning rate rises to %.10g with a global batch of %lld: %s "
                               "usually works with about %.10g (0.1 per 256 images, Goyal et al. "
                               "2017), and diverges far above it",
                               peak, (long long)plan->global_batch, kind->name,
                               USUAL_RATE * (double)plan->global_batch / USUAL_BATCH));
}

static void explain_warn_of_rate(struct plan *plan, const struct job_spec *spec)
{
    long long warmup = plan->warmup_steps, steps = plan->train_steps;
    bool falls_to_end = spec->lr.decay == JOB_DECAY_POLY || spec->lr.decay == JOB_DECAY_COSINE;

    if (warmup > 0 && plan->start_lr == plan->peak_lr)
        explain_warn_plan_warn_with(
            plan, json_sprintf("warm-up has no effect: it begins at the peak (%.10g); set lr.start "
                               "below it, or lr.warmup_epochs to 0",
                               plan->peak_lr));
    else if (warmup >= steps)
        explain_warn_plan_warn_with(
            plan,
            json_sprintf("warm-up (%lld steps) is %s the run (%lld steps): the learning rate never "
                         "reaches its peak; lower lr.warmup_epochs or train longer",
                         warmup, warmup > steps ? "longer than" : "as long as", steps));
    if (plan->start_lr > plan->peak_lr && warmup > 0)
        explain_warn_plan_warn_with(
            plan,
            json_sprintf("lr.start (%.10g) is above the peak (%.10g): warm-up lowers the rate",
                         plan->start_lr, plan->peak_lr));
    if (falls_to_end && spec->lr.end > plan->peak_lr)
        explain_warn_plan_warn_with(
            plan,
            json_sprintf("lr.end (%.10g) is above the peak (%.10g): the rate rises after warm-up",
                         spec->lr.end, plan->peak_lr));
    if (spec->lr.decay == JOB_DECAY_STEP && plan->lr.milestone_count &&
        plan->lr.milestone_steps[0] >= steps)
        explain_warn_plan_warn_with(
            plan,
            json_string("the run ends before the first of lr.milestones: the rate never decays"));
}

/* Compares numbers by value, because a document may contain 1 for 1.0. */
static bool explain_warn_is_default(const struct job_option *option, const struct job_spec *spec)
{
    json_t *value = job_value_load(option, spec), *fallback = job_option_default(option);
    bool same = json_is_number(value) && json_is_number(fallback)
                    ? json_number_value(value) == json_number_value(fallback)
                    : json_equal(value, fallback);

    json_decref(value);
    json_decref(fallback);
    return same;
}

static void explain_warn_of_optimizer(struct plan *plan, const struct job_spec *spec)
{
    const struct optimizer_kind *kind = optimizer_kind_at((size_t)spec->optimizer.name);
    const struct job_option *option;

    for (size_t i = 0; (option = job_option_at(i)); i++)
        if (!optimizer_uses(kind, option->pointer) && !explain_warn_is_default(option, spec))
            explain_warn_plan_warn_with(
                plan, json_sprintf("optimizer.%s has no effect with optimizer.name %s",
                                   strrchr(option->pointer, '/') + 1, kind->name));
    const char *usual = optimizer_default(kind, "/lr/base");
    if (usual && spec->lr.base >= HIGH_RATE_TIMES * strtod(usual, NULL))
        explain_warn_plan_warn_with(
            plan,
            json_sprintf("lr.base is %.10g, far above the usual learning rate of %s, %s (Cray, "
                         "Scaling Deep Learning, ALCF 2018)",
                         spec->lr.base, kind->name, usual));
}

static void explain_warn_of_arch(struct plan *plan, const struct job_spec *spec)
{
    const struct arch *arch = arch_find(spec->model.arch);
    const struct job_option *option;

    for (size_t i = 0; (option = job_option_at(i)); i++)
        if (!arch_uses(arch, option->pointer) && !explain_warn_is_default(option, spec))
            explain_warn_plan_warn_with(
                plan, json_sprintf("model.%s has no effect with model.arch %s",
                                   strrchr(option->pointer, '/') + 1, arch->name));
    if (arch->family == ARCH_CNN && spec->optimizer.decay_bn &&
        !optimizer_kind_at((size_t)spec->optimizer.name)->spares_biases)
        explain_warn_plan_warn_with(
            plan, json_sprintf("optimizer.decay_bn has no effect with model.arch %s: it has no "
                               "batch norm",
                               arch->name));
}

static void explain_warn_of_threads(struct plan *plan, const struct job_spec *spec)
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
    explain_warn_plan_warn_with(
        plan, json_sprintf(
                  "a batch of %lld image%s is too small for %lld threads per worker: layers with "
                  "%lldx%lld pixels do not divide evenly among them, which leaves about %.0f %% "
                  "of their speed; %s",
                  images, plural(images), threads, (long long)spec->model.image_size,
                  (long long)spec->model.image_size, 100 * keep, way));
}

static void explain_warn_of_slowest(struct plan *plan, const struct plan_speed *speed)
{
    if (speed->slowest_times > 1)
        explain_warn_plan_warn_with(
            plan,
            json_sprintf("node %s is %.0f %% slower than others of its kind; all nodes wait for "
                         "the slowest in each step, so the prediction uses its speed",
                         speed->slowest, 100 * (1 - 1 / speed->slowest_times)));
}

static void explain_warn_of_hosts(struct plan *plan, const struct job_spec *spec)
{
    long long hosts = (long long)spec->cluster.host_count, nodes = spec->cluster.nodes;

    if (spec->cluster.hosts && hosts > nodes)
        explain_warn_plan_warn_with(
            plan, json_sprintf(
                      "cluster.hosts has %lld hosts and cluster.nodes is %lld: %lld %s in reserve, "
                      "for hosts that do not answer",
                      hosts, nodes, hosts - nodes, hosts - nodes > 1 ? "are" : "is"));
}

/* On one machine buckets stay in the cache, and the computing cores add them
 * (worker/comm/gradients.c). */
static void explain_warn_of_comm(struct plan *plan, const struct job_spec *spec)
{
    static const char *const keys[] = {"/comm/fusion_bytes", "/comm/overlap", "/comm/core"};
    long long workers = (long long)spec->cluster.workers_per_node;

    if (spec->cluster.nodes > 1)
        return;
    if (workers == 1 && spec->comm.dtype != JOB_PRECISION_FP32)
        explain_warn_plan_warn_with(
            plan,
            json_string("comm.dtype has no effect with one worker, which exchanges no gradients"));
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (!explain_warn_is_default(job_option_find(keys[i]), spec))
            explain_warn_plan_warn_with(
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

/* Warns of the first variable for Intel's or LLVM's OpenMP, which libgomp ignores. */
static void explain_warn_of_env(struct plan *plan, const struct job_spec *spec)
{
    char name[JOB_ENV_NAME_BYTES];

    for (size_t i = 0; i < spec->cluster.env_count; i++) {
        job_env_split(spec->cluster.env[i], name);
        if (strncmp(name, "KMP_", 4) != 0)
            continue;
        explain_warn_plan_warn_with(
            plan,
            json_sprintf("cluster.env: %s is for the OpenMP of Intel and LLVM and has no effect "
                         "with that of GNU (libgomp), which the engine uses by default; set "
                         "OMP_WAIT_POLICY or GOMP_SPINCOUNT instead",
                         name));
        return;
    }
}

static void explain_warn_of_no_effect(struct plan *plan, const struct job_spec *spec)
{
    if (spec->eval.has_target_top1 && !spec->data.eval)
        explain_warn_plan_warn_with(
            plan, json_string("eval.target_top1 has no effect without data.eval"));
    if (spec->data.has_eval_images && !spec->data.eval)
        explain_warn_plan_warn_with(
            plan, json_string("data.eval_images has no effect without data.eval"));
    if (spec->data.flip != JOB_FLIP_RANDOM && !(spec->data.augment && spec->data.random_flip))
        explain_warn_plan_warn_with(plan,
                                    json_sprintf("data.flip has no effect without data.%s",
                                                 spec->data.augment ? "random_flip" : "augment"));
    if (spec->cluster.nodes > 1 && spec->comm.core != JOB_CORE_AUTO && !spec->comm.overlap)
        explain_warn_plan_warn_with(plan,
                                    json_string("comm.core has no effect without comm.overlap"));
    if (spec->model.freeze_count && !spec->model.init)
        explain_warn_plan_warn_with(
            plan, json_string("model.freeze without model.init: the frozen parts keep random "
                              "weights"));
    if (!job_spec_averages(spec) && (spec->ema.from_epoch > 0 || spec->ema.every > 1))
        explain_warn_plan_warn_with(
            plan, json_sprintf("ema.%s has no effect without ema.decay or ema.half_life",
                               spec->ema.from_epoch > 0 ? "from_epoch" : "every"));
    if (spec->profile.has_steps && spec->profile.first_step > plan->train_steps)
        explain_warn_plan_warn_with(
            plan, json_sprintf("profile.steps begins with step %lld, but the job has %lld: "
                               "nothing will be traced",
                               (long long)spec->profile.first_step, (long long)plan->train_steps));
}

static void explain_warn_of_time(struct plan *plan)
{
    const struct plan_band *seconds = &plan->predicted.ttt_seconds;
    const double day = 86400;

    if (plan->predicted.known && seconds->value > PLAN_LONG_SECONDS)
        explain_warn_plan_warn_with(
            plan, json_sprintf("the job is predicted to take %.3g days (%.3g to %.3g); fewer "
                               "epochs, smaller images (model.image_size), a smaller network "
                               "(model.arch) or more workers shorten it",
                               seconds->value / day, seconds->low / day, seconds->high / day));
}

void plan_warn(struct plan *plan, const struct job_spec *spec, const struct plan_inputs *inputs)
{
    explain_warn_of_time(plan);
    explain_warn_of_hosts(plan, spec);
    explain_warn_of_env(plan, spec);
    explain_warn_of_arch(plan, spec);
    if (spec->precision == JOB_PRECISION_BF16 && inputs->emulates_bf16)
        explain_warn_plan_warn_with(
            plan, json_string("precision \"bf16\" is emulated: no faster than fp32 on "
                              "this processor, which has neither AMX nor AVX512_BF16"));
    explain_warn_of_remarks(plan, inputs->data.remarks);
    if (plan->mode == JOB_MODE_EVAL)
        return;
    explain_warn_of_slowest(plan, &inputs->speed);
    explain_warn_of_threads(plan, spec);
    explain_warn_of_batch(plan, spec);
    explain_warn_of_single_images(plan, spec);
    explain_warn_of_data(plan, spec, &inputs->data);
    explain_warn_of_locality(plan, spec);
    explain_warn_of_epochs(plan, spec);
    explain_warn_of_sizes(plan);
    explain_warn_of_schedule(plan, spec);
    explain_warn_of_rate(plan, spec);
    explain_warn_of_high_rate(plan, spec);
    explain_warn_of_optimizer(plan, spec);
    explain_warn_of_comm(plan, spec);
    explain_warn_of_no_effect(plan, spec);
}
