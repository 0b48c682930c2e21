/*
 * Throughput and time to train from a speed measured on one worker. The band is a rule of thumb,
 * not a model: communication and stragglers cost up to a quarter (SURFsara's 256 nodes ran at 81 %
 * of linear), and a measured speed is rarely more than 5 % too low.
 */
#include <math.h>

#include "common/plan/parts.h"

int64_t plan_evaluations(const struct plan *plan, const struct job_spec *spec)
{
    double epochs;

    if (plan->eval_images < 1)
        return 0;
    if (spec->eval.every_epochs <= 0 || plan->steps_per_epoch < 1)
        return 1;
    epochs = (double)plan->train_steps / (double)plan->steps_per_epoch;
    return (int64_t)fmax(1, ceil(epochs / spec->eval.every_epochs));
}

void plan_predict(struct plan *plan, const struct job_spec *spec, double per_worker)
{
    double rate = per_worker * (double)plan->world_size;
    /* An evaluated image costs a forward pass: a third of training's forward and backward. */
    double images = (double)plan->train_steps * (double)plan->global_batch +
                    (double)plan_evaluations(plan, spec) * (double)plan->eval_images / 3;

    if (!(per_worker > 0) || plan->mode == JOB_MODE_EVAL)
        return;
    plan->predicted.known = true;
    plan->predicted.images_per_second = rate;
    plan->predicted.images_per_second_low = rate * PLAN_PREDICT_LOW;
    plan->predicted.images_per_second_high = rate * PLAN_PREDICT_HIGH;
    plan->predicted.ttt_seconds = images / rate;
    plan->predicted.ttt_seconds_low = images / plan->predicted.images_per_second_high;
    plan->predicted.ttt_seconds_high = images / plan->predicted.images_per_second_low;
}
