/*
 * Every number of the plan with its formula, what went in, and where the formula is from.
 *
 * Sources: SURFsara and Intel, "TensorFlow BKMs for State-Of-The-Art Accuracy & Convergence", April
 * 2018; Goyal et al., "Accurate, Large Minibatch SGD", 2017; Cray, "Scaling Deep Learning", ALCF
 * SDL workshop 2018; Malladi et al., arXiv:2205.10287; the MLPerf training rules.
 */
#include <stdio.h>
#include <string.h>

#include "common/job/recipe/optimizers.h"
#include "common/json.h"
#include "common/net/arch.h"
#include "common/number.h"
#include "common/plan/parts.h"
#include "common/plan/workers.h"

#define BKM   "SURFsara and Intel, ResNet-50 BKM, 2018"
#define GOYAL "Goyal et al. 2017, Accurate, Large Minibatch SGD"
#define CRAY  "Cray, Scaling Deep Learning, ALCF 2018"
#define MALLADI                                                                                    \
    "Malladi et al. 2022, On the SDEs and Scaling Rules for Adaptive Gradient Algorithms"
#define JOB "the job document"

/* What each number is, and which keys of the job move it, and how. */
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
    {"start_lr", "Learning rate of the first update.",
     "lr.start (default: lr.base)"},
    {"last_lr", "The learning rate at each step; the value is that of the last step.",
     "lr.decay and the keys of that decay: lr.power, lr.end, lr.milestones, lr.gamma, lr.decay_epochs, lr.staircase"},
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

/* note may be NULL; value and inputs are taken over. */
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

/* Where the document left them to the plan. */
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

/* With launcher local the ranks share out a machine, which the plan may not know. */
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

/* So many epochs in steps, by steps_rounding. */
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
}

static void explain_sizes(struct plan *plan, const struct job_spec *spec)
{
    struct job_sizes sizes = spec->model.sizes;
    json_t *value = json_array();

    sizes.ramps = false; /* as the list that it makes */

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

/* The rate by steps, s the step, W warmup_steps, T train_steps. */
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
        [JOB_DECAY_NONE] = "s < W: start + (peak - start) s/W; then peak",
    };
    static const char *const sources[] = {
        [JOB_DECAY_POLY] = (BKM " (power 1); MLPerf reference (power 2)"),
        [JOB_DECAY_COSINE] = "Loshchilov and Hutter 2017; Habana's ResNeXt-101 reference",
        [JOB_DECAY_STEP] = GOYAL,
        [JOB_DECAY_EXPONENTIAL] = (CRAY ", step 3; TensorFlow's exponential_decay"),
        [JOB_DECAY_NONE] = JOB,
    };
    const struct lr_schedule *lr = &plan->lr;
    json_t *inputs = json_pack("{s:o, s:o, s:I, s:I}", "start", json_number(lr->start), "peak",
                               json_number(lr->peak), "W", (json_int_t)lr->warmup_steps, "T",
                               (json_int_t)lr->train_steps);

    if (lr->decay == JOB_DECAY_POLY)
        json_object_set_new(inputs, "power", json_number(lr->power));
    if (lr->decay == JOB_DECAY_POLY || lr->decay == JOB_DECAY_COSINE)
        json_object_set_new(inputs, "end", json_number(lr->end));
    if (lr->decay == JOB_DECAY_STEP) {
        json_t *steps = json_array();
        for (size_t i = 0; i < lr->milestone_count; i++)
            json_array_append_new(steps, json_integer(lr->milestone_steps[i]));
        json_object_set_new(inputs, "milestones", steps);
        json_object_set_new(inputs, "gamma", json_number(lr->gamma));
    }
    if (lr->decay == JOB_DECAY_EXPONENTIAL) {
        json_object_set_new(inputs, "gamma", json_number(lr->gamma));
        json_object_set_new(inputs, "D", json_number(number_rounded(lr->decay_steps)));
    }
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
                        : "s is the step, from 0 to T-1; the value is that of the last step"));
}

static void explain_memory(struct plan *plan, const struct job_spec *spec)
{
    struct plan_memory m = plan_memory_of(spec);
    bool trains = plan->mode == JOB_MODE_TRAIN;
    json_t *inputs =
        json_pack("{s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "copies", m.copies, "parameter_bytes",
                  (json_int_t)m.parameter_bytes, trains ? "batch_per_worker" : "eval.batch",
                  (json_int_t)m.images, "bytes_per_image", (json_int_t)m.bytes_per_image,
                  "eval_input_bytes", (json_int_t)m.eval_input_bytes, "fixed_bytes",
                  (json_int_t)m.fixed_bytes, "threads beyond one", (json_int_t)m.more_threads,
                  "thread_bytes", (json_int_t)m.thread_bytes);

    explain_plan_add_explanation(
        plan, "memory_bytes_per_worker",
        trains ? "copies x parameter_bytes + batch_per_worker x bytes_per_image + "
                 "eval_input_bytes + fixed_bytes + threads beyond one x thread_bytes"
               : "copies x parameter_bytes + eval.batch x bytes_per_image + eval_input_bytes + "
                 "fixed_bytes + threads beyond one x thread_bytes",
        inputs, json_integer(plan->memory_bytes_per_worker),
        "the engine's buffer plan, common/net/activations.c",
        json_string(
            trains ? "copies: weights, gradients and optimiser state. bytes_per_image: the "
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
        explain_start(plan, spec);
        explain_schedule(plan, spec);
        explain_predicted(plan, spec, inputs);
    }
    explain_memory(plan, spec);
}
