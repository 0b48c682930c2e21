#include "common/plan/plan_build.h"

#include <math.h>
#include <stdio.h>

#include "common/plan/explain.h"
#include "common/plan/memory.h"
#include "common/xalloc.h"

/* Unless steps_rounding is exact, phases begin between two epochs (checked by job_check.c), so all
 * steps of an epoch have the same size. If it is exact, a phase begins at the step nearest to its
 * epoch, with the image after those of the previous step. */

static int64_t plan_whole_steps(const struct plan *plan, const struct job_spec *spec,
                                int64_t batch_per_worker)
{
    int64_t on_node = spec->cluster.workers_per_node * batch_per_worker * spec->accumulate_steps;
    int64_t steps = plan->train_images / (spec->cluster.nodes * on_node);
    int64_t own = plan->node_images_least / on_node;

    return plan->node_images_least > 0 && own < steps ? own : steps;
}

static struct plan_phase plan_phase_of(const struct plan *plan, const struct job_spec *spec,
                                       int64_t size, int64_t batch)
{
    struct plan_phase p = {
        .size = size,
        .batch_per_worker = batch,
        .global_batch = job_spec_world_size(spec) * batch * spec->accumulate_steps,
        .steps_per_epoch = plan_whole_steps(plan, spec, batch),
    };

    p.steps_in_epoch = plan->exact ? (double)plan->train_images / (double)p.global_batch
                                   : (double)p.steps_per_epoch;
    return p;
}

static void plan_place_phase(const struct plan *plan, const struct plan_phase *before, double epoch,
                             struct plan_phase *p)
{
    int64_t steps = llround((epoch - before->epoch) * before->steps_in_epoch);

    p->step = before->step + steps;
    p->first_image = before->first_image + steps * before->global_batch;
    p->epoch = plan->exact ? (double)p->first_image / (double)plan->train_images : epoch;
    if (!plan->exact)
        p->first_image = (int64_t)epoch * plan->train_images;
}

/* Replaces earlier phases that would have no steps. */
static void plan_append_phase(struct plan *plan, double epoch, struct plan_phase *p)
{
    size_t i = plan->phase_count;

    for (p->step = 0; i > 0; i--) {
        plan_place_phase(plan, &plan->phases[i - 1], epoch, p);
        if (p->step > plan->phases[i - 1].step)
            break;
    }
    if (i == 0) {
        p->step = p->first_image = 0;
        p->epoch = 0;
    }
    plan->phases[i] = *p;
    plan->phase_count = i + 1;
}

static bool plan_phase_fits(const struct plan *plan, const struct plan_phase *p,
                            struct problems *problems)
{
    if (p->steps_per_epoch > 0)
        return true;
    problems_add(problems, "/batch_schedule", NULL,
                 "\"fill\" makes a global batch of %lld at %lld pixels (%lld images a worker), but "
                 "there are %lld training images: use a smaller batch_per_worker or fewer workers, "
                 "or leave batch_schedule out",
                 (long long)p->global_batch, (long long)p->size, (long long)p->batch_per_worker,
                 (long long)plan->train_images);
    return false;
}

static bool plan_phases(struct plan *plan, const struct job_spec *spec, struct problems *problems)
{
    const struct job_sizes *sizes = &spec->model.sizes;
    bool fills = spec->batch_schedule == JOB_BATCH_FILL && sizes->count > 1;

    for (size_t i = 0; fills && i < sizes->count; i++) {
        int64_t size = sizes->at[i].size;
        struct plan_phase p = plan_phase_of(plan, spec, size, plan_batch_of_size(spec, size));

        if (!plan_phase_fits(plan, &p, problems))
            return false;
        plan_append_phase(plan, sizes->at[i].epoch, &p);
    }
    return true;
}

static bool plan_batch_fits(const struct plan *plan, const struct job_spec *spec,
                            struct problems *problems)
{
    int64_t share = plan->train_images / (plan->world_size * spec->accumulate_steps);

    if (plan->steps_per_epoch > 0)
        return true;
    if (share > 0)
        problems_add(problems, spec->has_global_batch ? "/global_batch" : "/batch_per_worker", NULL,
                     "makes a global batch of %lld, but there are %lld training images: use at "
                     "most %lld images per worker",
                     (long long)plan->global_batch, (long long)plan->train_images,
                     (long long)share);
    else if (plan->train_images >= plan->world_size)
        problems_add(problems, "/accumulate_steps", NULL,
                     "needs %lld images from each of %lld workers per step, more than the %lld "
                     "training images allow; use at most %lld",
                     (long long)spec->accumulate_steps, (long long)plan->world_size,
                     (long long)plan->train_images,
                     (long long)(plan->train_images / plan->world_size));
    else
        problems_add(problems, "/cluster/workers_per_node", NULL,
                     "makes %lld workers, more than the %lld training images can feed",
                     (long long)plan->world_size, (long long)plan->train_images);
    return false;
}

/* Rounds like the scripts of SURFsara and Intel (explain.c). */
static bool plan_batch(struct plan *plan, const struct job_spec *spec, struct problems *problems)
{
    if (job_spec_leaves_workers(spec)) {
        problems_add(problems, "/cluster/workers_per_node", NULL,
                     "0 leaves the workers to the plan, and a node's cores are not known here: "
                     "give a number, or let traind plan the job");
        return false;
    }
    plan->world_size = job_spec_world_size(spec);
    plan->batch_per_node = spec->cluster.workers_per_node * spec->batch_per_worker;
    plan->global_batch = spec->cluster.nodes * plan->batch_per_node * spec->accumulate_steps;
    if (plan->mode == JOB_MODE_EVAL)
        return true;
    if (plan->train_images < 1) {
        problems_add(problems, "/data/train_images", NULL,
                     "is not known: the plan needs the number of training images");
        return false;
    }
    plan->exact = spec->steps_rounding == JOB_ROUNDING_EXACT;
    plan->phases[0] = plan_phase_of(plan, spec, spec->model.image_size, spec->batch_per_worker);
    plan->phase_count = 1;
    plan->steps_per_epoch = plan->phases[0].steps_per_epoch;
    plan->steps_in_epoch = plan->phases[0].steps_in_epoch;
    plan->dropped_images_per_epoch =
        plan->exact ? 0 : plan->train_images - plan->steps_per_epoch * plan->global_batch;
    if (!plan_batch_fits(plan, spec, problems) || !plan_phases(plan, spec, problems))
        return false;
    plan->warmup_steps = llround(plan_steps_until(plan, spec->lr.warmup_epochs));
    plan->train_steps =
        spec->has_steps ? spec->steps : llround(plan_steps_until(plan, spec->epochs));
    if (plan->train_steps > 0)
        return true;
    problems_add(problems, "/epochs", NULL,
                 "is less than one step: an epoch has %.10g steps, of which %.10g epochs are %.3g",
                 plan->steps_in_epoch, spec->epochs, plan->steps_in_epoch * spec->epochs);
    return false;
}

static void plan_sizes(struct plan *plan, const struct job_spec *spec)
{
    const struct job_sizes *sizes = &spec->model.sizes;

    plan->sizes[0] = (struct plan_size){0, spec->model.image_size};
    plan->size_count = 1;
    if (plan->phase_count > 1) {
        for (size_t i = 0; i < plan->phase_count; i++)
            plan->sizes[i] = (struct plan_size){plan->phases[i].step, plan->phases[i].size};
        plan->size_count = plan->phase_count;
        return;
    }
    for (size_t i = 0; plan->mode == JOB_MODE_TRAIN && i < sizes->count; i++) {
        int64_t step = llround(plan->steps_in_epoch * sizes->at[i].epoch);
        if (plan->sizes[plan->size_count - 1].step == step)
            plan->size_count--; /* the previous size would have no steps */
        plan->sizes[plan->size_count++] = (struct plan_size){step, sizes->at[i].size};
    }
}

/* With phases, the schedule is that of a run in which all steps have the last batch. */
static void plan_rate_phases(struct plan *plan, const struct job_spec *spec)
{
    struct lr_schedule *lr = &plan->lr;

    lr->run_steps = plan->train_steps;
    lr->warmup_steps = llround(plan->steps_in_epoch * spec->lr.warmup_epochs);
    lr->train_steps = llround(plan->steps_in_epoch * plan_epochs_after(plan, plan->train_steps));
    lr->phase_count = plan->phase_count;
    for (size_t i = 0; i < plan->phase_count; i++) {
        const struct plan_phase *p = &plan->phases[i];
        lr->phases[i] = (struct lr_phase){
            .step = p->step,
            .at = p->epoch * plan->steps_in_epoch,
            .pace = plan->steps_in_epoch / p->steps_in_epoch,
            .factor = lr_peak(spec, p->global_batch) / plan->peak_lr,
        };
    }
}

static void plan_rate(struct plan *plan, const struct job_spec *spec)
{
    struct lr_schedule *lr = &plan->lr;

    plan->peak_lr = lr_peak(spec, plan->global_batch);
    plan->start_lr = lr_start(spec, plan->peak_lr);
    *lr = (struct lr_schedule){
        .decay = spec->lr.decay,
        .start = plan->start_lr,
        .peak = plan->peak_lr,
        .end = spec->lr.end,
        .power = spec->lr.power,
        .warmup_steps = plan->warmup_steps,
        .train_steps = plan->train_steps,
        .milestone_count = spec->lr.milestone_count,
        .gamma = spec->lr.gamma,
        .decay_steps = plan->steps_in_epoch * spec->lr.decay_epochs,
        .staircase = spec->lr.staircase,
        .scale = 1,
    };
    for (size_t i = 0; i < lr->milestone_count; i++)
        lr->milestone_steps[i] = llround(plan->steps_in_epoch * spec->lr.milestones[i]);
    if (plan->phase_count > 1)
        plan_rate_phases(plan, spec);
    plan->train_steps = llround(fmax(1, spec->stop_at * (double)plan->train_steps));
}

static void plan_costs(struct plan *plan, const struct job_spec *spec)
{
    plan->size_cost = plan->step_cost = 1;
    if (plan->mode == JOB_MODE_EVAL || plan->size_count < 2)
        return;
    double cost = plan_steps_cost(plan, spec, 0, plan->train_steps);
    double images = (double)plan_images_of_steps(plan, 0, plan->train_steps);

    plan->step_cost = cost / (double)plan->train_steps;
    plan->size_cost = cost / (images / (double)plan->global_batch);
}

void plan_check_data(const struct job_spec *spec, const struct plan_data *data,
                     struct problems *problems)
{
    if (data->classes > spec->model.classes)
        problems_add(problems, "/model/classes", NULL, "is %lld, but the %s data has %lld classes",
                     (long long)spec->model.classes,
                     spec->mode == JOB_MODE_TRAIN ? "training" : "evaluation",
                     (long long)data->classes);
    if (*data->other_classes)
        problems_add(problems, "/data/eval", NULL, "%s", data->other_classes);
}

static int64_t plan_threads_of(const struct job_spec *spec, const struct plan_inputs *inputs)
{
    int64_t threads = spec->cluster.threads_per_worker, workers = spec->cluster.workers_per_node;

    if (threads > 0 || inputs->node_cores < 1 || workers < 1)
        return threads;
    return inputs->node_cores > workers ? inputs->node_cores / workers : 1;
}

/* The job's epochs, or fewer if it stops at a target that published runs reached earlier. */
static struct plan_band plan_epochs_of(const struct plan *plan, const struct job_spec *spec)
{
    double own = plan_epochs_after(plan, plan->train_steps);
    struct plan_band epochs;

    if (!spec->eval.stop_at_target || !spec->eval.has_target_top1 ||
        spec->eval.target_top1 < PREDICT_TARGET_LOW ||
        spec->eval.target_top1 > PREDICT_TARGET_HIGH ||
        !predict_table_applies(spec, plan->train_images) ||
        !predict_epochs_to_target(plan->global_batch, &epochs))
        return (struct plan_band){own, own, own};
    return (struct plan_band){fmin(own, epochs.value), fmin(own, epochs.low),
                              fmin(own, epochs.high)};
}

/* The target counts as reached only after an evaluation. */
static double plan_epochs_until_seen(const struct plan *plan, const struct job_spec *spec,
                                     double epochs)
{
    double every = spec->eval.every_epochs, own = plan_epochs_after(plan, plan->train_steps);

    if (every <= 0 || epochs >= own)
        return epochs;
    return fmin(own, every * ceil(epochs / every - 1e-9));
}

/* Evaluating an image costs a third of training it. step: averaged over sizes and batches. */
static double plan_training_seconds(const struct plan *plan, const struct job_spec *spec,
                                    double epochs, double step)
{
    double rate = (double)plan->global_batch / step * plan->step_cost;
    double steps = plan_steps_until(plan, epochs), share = steps / (double)plan->train_steps;

    return steps * step * plan_cost_until(plan, spec, steps) +
           ceil(share * (double)plan_evaluations(plan, spec)) * (double)plan->eval_images *
               PREDICT_EVAL_COST * plan_evaluation_passes(spec) / rate;
}

static void plan_predict_cost(struct plan_predicted *p, const struct job_spec *spec,
                              const struct plan_inputs *inputs)
{
    const struct plan_prices *prices = &inputs->prices;
    double share = inputs->node_share > 0 ? inputs->node_share : 1;
    const double seconds[] = {p->ttt_seconds.value, p->ttt_seconds.low, p->ttt_seconds.high};
    double hours[3], kwh[3], cost[3];

    for (int i = 0; i < 3; i++) {
        hours[i] = seconds[i] * (double)spec->cluster.nodes * share / 3600;
        kwh[i] = plan_prices_kwh(prices, hours[i]);
        cost[i] = plan_prices_cost(prices, kwh[i], hours[i]);
    }
    p->node_hours = (struct plan_band){hours[0], hours[1], hours[2]};
    p->kwh = (struct plan_band){kwh[0], kwh[1], kwh[2]};
    p->cost = (struct plan_band){cost[0], cost[1], cost[2]};
    snprintf(p->currency, sizeof p->currency, "%s", prices->currency ? prices->currency : "");
}

static void plan_predict(struct plan *plan, const struct job_spec *spec,
                         const struct plan_inputs *inputs)
{
    const struct plan_network *network = inputs->network ? inputs->network : &plan_network_default;
    struct plan_predicted *p = &plan->predicted;
    struct plan_speed speed = inputs->speed; /* for the largest size */

    speed.image_seconds *= plan->step_cost;
    if (plan->mode == JOB_MODE_EVAL || plan_speed_scatters(&speed) || plan->steps_per_epoch < 1 ||
        plan->train_steps < 1 || !predict_step(spec, &speed, network, &p->step_seconds))
        return;
    double batch = plan_mean_batch(plan);
    p->known = true;
    p->images_per_sec = (struct plan_band){
        batch / p->step_seconds.value, batch / p->step_seconds.high, batch / p->step_seconds.low};
    p->epochs = inputs->epochs.value > 0 ? inputs->epochs : plan_epochs_of(plan, spec);
    struct plan_band seen = {plan_epochs_until_seen(plan, spec, p->epochs.value),
                             plan_epochs_until_seen(plan, spec, p->epochs.low),
                             plan_epochs_until_seen(plan, spec, p->epochs.high)};
    p->ttt_seconds =
        (struct plan_band){plan_training_seconds(plan, spec, seen.value, p->step_seconds.value),
                           plan_training_seconds(plan, spec, seen.low, p->step_seconds.low),
                           plan_training_seconds(plan, spec, seen.high, p->step_seconds.high)};
    plan_predict_cost(p, spec, inputs);
}

struct plan *plan_make(const struct job_spec *document, const struct plan_inputs *inputs,
                       struct problems *problems)
{
    struct plan *plan = xcalloc(1, sizeof *plan);
    struct job_spec with_threads = *document;
    const struct job_spec *spec = &with_threads;

    with_threads.cluster.threads_per_worker = plan_threads_of(document, inputs);
    plan->mode = spec->mode;
    plan->train_images = spec->mode == JOB_MODE_TRAIN ? inputs->train_images : 0;
    plan->eval_images = inputs->eval_images;
    plan->node_images_least = inputs->node_images_least;
    plan->node_images_most = inputs->node_images_most;
    plan->warnings = json_array();
    plan->explain = json_object();
    size_t before = problems->count;
    plan_check_data(spec, &inputs->data, problems);
    if (!plan_batch(plan, spec, problems) || problems->count > before) {
        plan_destroy(plan);
        return NULL;
    }
    plan_sizes(plan, spec);
    if (plan->mode == JOB_MODE_TRAIN)
        plan_rate(plan, spec);
    plan_costs(plan, spec);
    struct plan_memory memory = plan_memory_of(spec);
    plan->memory_bytes_per_worker = plan_memory_bytes(&memory);
    plan_predict(plan, spec, inputs);
    plan_warn(plan, spec, inputs);
    plan_explain(plan, spec, inputs);
    return plan;
}
