/* The plan's chapter on throughput and time to train. */
#include <stdio.h>
#include <math.h>

#include "common/net/arch.h"
#include "common/plan/parts.h"

int64_t plan_evaluations(const struct plan *plan, const struct job_spec *spec)
{
    double epochs;

    if (plan->eval_images < 1)
        return 0;
    if (spec->eval.every_epochs <= 0 || plan->steps_per_epoch < 1)
        return 1;
    epochs = plan_epochs_after(plan, plan->train_steps);
    return (int64_t)fmax(1, ceil(epochs / spec->eval.every_epochs));
}

/* The epochs that will be trained: those of the job, unless it stops at a target that is reached
 * before, as others reached it. */
static struct plan_band time_epochs_of(const struct plan *plan, const struct job_spec *spec)
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

double plan_evaluation_passes(const struct job_spec *spec)
{
    return plan_size_cost(spec, job_spec_eval_size(spec)) * (spec->eval.flip ? 2 : 1) *
           (spec->ema.decay > 0 ? 2 : 1);
}

/* A target is seen to be reached by the next evaluation. */
static double time_epochs_until_seen(const struct plan *plan, const struct job_spec *spec,
                                     double epochs)
{
    double every = spec->eval.every_epochs, own = plan_epochs_after(plan, plan->train_steps);

    if (every <= 0 || epochs >= own)
        return epochs;
    return fmin(own, every * ceil(epochs / every - 1e-9));
}

/* An evaluated image costs a forward pass: a third of training's forward and backward. step: the
 * mean over all sizes and batches. */
static double time_training_seconds(const struct plan *plan, const struct job_spec *spec,
                                    double epochs, double step)
{
    double rate = (double)plan->global_batch / step * plan->step_cost;
    double steps = plan_steps_until(plan, epochs), share = steps / (double)plan->train_steps;

    return steps * step + ceil(share * (double)plan_evaluations(plan, spec)) *
                              (double)plan->eval_images * PREDICT_EVAL_COST *
                              plan_evaluation_passes(spec) / rate;
}

/* What it takes besides time. */
static void time_plan_predict_cost(struct plan_predicted *p, const struct job_spec *spec,
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

void plan_predict(struct plan *plan, const struct job_spec *spec, const struct plan_inputs *inputs)
{
    const struct plan_network *network = inputs->network ? inputs->network : &plan_network_default;
    struct plan_predicted *p = &plan->predicted;
    struct plan_speed speed = inputs->speed; /* of the largest size */

    speed.image_seconds *= plan->step_cost;
    if (plan->mode == JOB_MODE_EVAL || plan_speed_scatters(&speed) || plan->steps_per_epoch < 1 ||
        plan->train_steps < 1 || !predict_step(spec, &speed, network, &p->step_seconds))
        return;
    double batch = plan_mean_batch(plan);
    p->known = true;
    p->images_per_sec = (struct plan_band){
        batch / p->step_seconds.value, batch / p->step_seconds.high, batch / p->step_seconds.low};
    p->epochs = inputs->epochs.value > 0 ? inputs->epochs : time_epochs_of(plan, spec);
    struct plan_band seen = {time_epochs_until_seen(plan, spec, p->epochs.value),
                             time_epochs_until_seen(plan, spec, p->epochs.low),
                             time_epochs_until_seen(plan, spec, p->epochs.high)};
    p->ttt_seconds =
        (struct plan_band){time_training_seconds(plan, spec, seen.value, p->step_seconds.value),
                           time_training_seconds(plan, spec, seen.low, p->step_seconds.low),
                           time_training_seconds(plan, spec, seen.high, p->step_seconds.high)};
    time_plan_predict_cost(p, spec, inputs);
}
