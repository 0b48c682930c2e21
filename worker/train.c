#include "worker/train.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/plan/replan.h"
#include "common/run/trace.h"
#include "common/system/file.h"
#include "common/text.h"
#include "worker/data/loader.h"
#include "worker/ema.h"
#include "worker/evaluate.h"
#include "worker/model/forward_backward.h"
#include "worker/optim/optimizer.h"
#include "worker/provenance/provenance.h"
#include "worker/save/checkpoint.h"
#include "worker/save/rank_statistics.h"
#include "worker/save/result.h"
#include "worker/watch/profile.h"
#include "worker/watch/stall.h"
#include "worker/watch/straggler.h"

struct trainer {
    struct run *run;
    struct loader *loader;
    struct optimizer *optimizer;
    struct traincomm_gradients *gradients;
    struct profile *profile;
    struct rank_timing *timing;
    bool said_sum;                  /* how gradients are summed was logged */
    double step_seconds_sum;        /* of this attempt */
    double last_progress;           /* time of the last line on stdout */
    int64_t first_step;             /* steps completed when this attempt began */
    int64_t evaluated_at, saved_at; /* last such step, -1: none yet */
    double lr;                      /* of the last step */
    struct monitor_best best;       /* before the last evaluation */
    bool is_kept;                   /* its checkpoint is to be kept, and not yet written */
    struct result result;
};

struct step_times {
    double start, data, forward, backward, comm, optim, total; /* seconds; start: monotonic clock */
};

/* An error is the same on every rank. */
static int train_open_gradients(struct run *r, struct trainer *t, struct error *e)
{
    struct traincomm_options options = {
        .bucket_bytes = (size_t)r->spec->comm.fusion_bytes,
        .no_overlap = !r->spec->comm.overlap,
        .threads = r->threads,
        .thread = r->comm_cpu >= 0,
        .thread_cpu = r->comm_cpu,
        .dtype = r->spec->comm.dtype == JOB_PRECISION_BF16 ? TRAINCOMM_BF16 : TRAINCOMM_FP32};
    size_t first = model_first_trained(r->model);
    int status =
        traincomm_gradients_create(r->comm, model_grads(r->model) + first,
                                   model_param_count(r->model) - first, &options, &t->gradients);

    return status ? error_set(e, ERR_NO_MEMORY, "the all-reduce of the gradients: %s",
                              traincomm_strerror(status))
                  : 0;
}

/* Number of the data set's first image, which selects its random numbers. */
static int64_t train_first_number(const struct run *r)
{
    return (int64_t)r->part.number << 40;
}

static void train_list_phases(const struct plan *plan, struct loader_config *loader)
{
    for (size_t i = 0; i < plan->phase_count && plan->phase_count > 1; i++) {
        const struct plan_phase *p = &plan->phases[i];
        loader->phases[loader->phase_count++] = (struct loader_phase){
            .step = p->step,
            .batch = (int)p->batch_per_worker,
            .first_epoch = (int64_t)p->epoch,
            .first_image = p->first_image,
            .steps_per_epoch = p->steps_per_epoch,
        };
    }
}

static int train_open_trainer(struct run *r, struct trainer *t, struct error *e)
{
    const struct job_spec *s = r->spec;
    char path[PATH_MAX];
    /* In positions of the node's part. image_shift is not above 0, so this rounds up, and no image
     * is used twice in an epoch if the number of nodes changed. */
    int64_t shift = r->image_shift / r->part.of;
    struct loader_config loader = {
        .dataset = r->train_data,
        .role = DATASET_TRAIN,
        .preprocess = s->data.preprocess,
        .augment = s->data.augment,
        .random_crop = s->data.random_crop,
        .random_flip = s->data.random_flip,
        .flip = s->data.flip,
        .shuffle = s->data.shuffle,
        .images = r->train_data ? dataset_images(r->train_data) : r->plan->train_images,
        .image_size = (int)s->model.image_size,
        .classes = (int)s->model.classes,
        .channels = arch_image_channels(arch_find(s->model.arch)),
        .batch = (int)s->batch_per_worker,
        .first_number = train_first_number(r),
        .rank = r->rank % (r->world / r->part.of),
        .world = r->world / r->part.of,
        .seed = s->seed,
        .first_step = t->first_step + r->step_shift,
        .steps = r->plan->train_steps,
        .steps_per_epoch = r->plan->steps_per_epoch,
        .epoch_images = r->plan->exact ? r->plan->train_images : 0,
        .batches_per_step = (int)s->accumulate_steps,
        .first_epoch_shift = shift,
        .distort = {.auto_augment = s->data.auto_augment,
                    .ops = (int)s->data.auto_augment_ops,
                    .magnitude = (int)s->data.auto_augment_magnitude,
                    .color_jitter = s->data.color_jitter,
                    .hue_jitter = s->data.hue_jitter,
                    .erasing = s->data.random_erasing},
        .mixup = s->data.mixup,
        .cutmix = s->data.cutmix,
        .bf16 = job_spec_has_bf16_images(s),
        .threads = (int)s->data.prefetch_threads,
        .max_threads = r->threads,
        .depth = (int)s->data.prefetch_batches,
    };
    for (size_t i = 0; i < r->plan->size_count; i++)
        loader.sizes[loader.size_count++] =
            (struct loader_size){r->plan->sizes[i].step, (int)r->plan->sizes[i].size};
    train_list_phases(r->plan, &loader);
    int status = loader_create(&loader, &t->loader, e);
    if (!status)
        status = optimizer_create(r->model, s, r->plan->peak_lr, &t->optimizer, e);
    if (!status)
        status = ema_create(r, e);
    t->profile = profile_create(r);
    stall_doing(r->stall, STALL_FILES);
    if (!status && r->resumes && r->rank == 0) {
        file_path(path, NULL, "%s/optimizer.safetensors", r->resumed_from);
        status = optimizer_load(t->optimizer, path, e);
    }
    status = run_agree(r, status, e);
    stall_doing(r->stall, STALL_COMPUTE);
    if (!status)
        status = train_open_gradients(r, t, e);
    if (!status && r->resumes)
        status = ema_resume(r, e);
    if (!status && r->resumes)
        status = rank_statistics_resume(r, e);
    if (status || !r->resumes)
        return status;
    size_t first = model_first_trained(r->model);
    for (size_t i = 0; i < optimizer_states(t->optimizer); i++)
        traincomm_broadcast(r->comm, optimizer_state(t->optimizer, i) + first,
                            (model_param_count(r->model) - first) * sizeof(float), 0);
    optimizer_set_place(t->optimizer, r->from.step, r->from.lr);
    return status;
}

static double train_lap(double *since, const char *phase)
{
    trace_since(*since, "phase", phase, 0);
    double now = clock_monotonic(), passed = now - *since;
    *since = now;
    return passed;
}

static void train_gradients_ready(size_t offset, size_t count, void *trainer)
{
    const struct trainer *t = trainer;

    (void)count;
    traincomm_gradients_ready(t->gradients, offset - model_first_trained(t->run->model));
}

struct batch_result {
    double loss; /* mean */
    double correct, images;
};

/* Batch j of accumulate_steps: the gradients of the first overwrite, the others add, and the last
 * completes them, so that the all-reduce overlaps with its backward. */
static struct batch_result train_compute_batch(struct trainer *t, const struct loader_batch *b,
                                               int64_t j, struct step_times *times)
{
    struct run *r = t->run;
    int64_t batches = r->spec->accumulate_steps;
    bool last = j == batches - 1;
    double clock = clock_monotonic();
    int correct;

    model_use_size(r->model, b->image_size);
    model_mix(r->model, b->lambda);
    model_draw(r->model, &(struct model_draw){.seed = r->spec->seed,
                                              .epoch = b->epoch,
                                              .next_epoch_at = b->next_epoch_at,
                                              .first_number = train_first_number(r),
                                              .indices = b->indices});
    const void *images = b->images_bf16 ? (const void *)b->images_bf16 : b->images;
    double loss = model_forward(r->model, images, b->labels, b->n, &correct);
    times->forward += train_lap(&clock, "forward");
    model_backward(r->model, r->spec->loss_scale / (double)(r->world * batches), j > 0,
                   last ? train_gradients_ready : NULL, t);
    times->backward += train_lap(&clock, "backward");
    return (struct batch_result){loss, correct, b->n};
}

/* Logs how gradients are summed: at the start, and once it is decided what drives the buckets; then
 * also an event if there are several machines. */
static int train_report_sum(struct trainer *t, int64_t step, struct error *e)
{
    static const char *const drives[] = {"after", "calls", "thread"}; /* enum traincomm_drive */
    struct report *report = t->run->report;
    struct traincomm_stats stats;
    char text[512];

    if (t->said_sum || t->run->world == 1)
        return 0;
    t->said_sum = traincomm_gradients_describe(t->gradients, text, sizeof text);
    if (t->run->rank == 0 && (t->said_sum || step == t->first_step + 1)) {
        printf("The %s\n", text);
        fflush(stdout);
    }
    traincomm_gradients_stats(t->gradients, &stats);
    if (!t->said_sum || stats.machines == 1)
        return 0;
    report_begin(report, EVENT_GRADIENTS);
    report_int(report, "step", step);
    report_text(report, "drive", drives[stats.drive]);
    report_int(report, "machines", stats.machines);
    report_int(report, "leaders", stats.leaders);
    report_int(report, "exchanges", stats.exchanges);
    report_text(report, "message", text);
    return report_end(report, e);
}

static bool train_shares_update(const struct trainer *t)
{
    return traincomm_gradients_can_update(t->gradients) &&
           !job_optimizer_norms_first(&t->run->spec->optimizer);
}

/* Sums and updates, shared by the ranks. Returns the seconds spent outside of the update. */
static double train_share_update(struct trainer *t)
{
    struct model *m = t->run->model;
    struct traincomm_update how = {model_params(m) + model_first_trained(m), optimizer_update,
                                   optimizer_cut, t->optimizer};
    double seconds = traincomm_gradients_update(t->gradients, &how), clock = clock_monotonic();
    size_t count;
    double *squares = optimizer_squares(t->optimizer, &count);

    traincomm_reduce(t->run->comm, TRAINCOMM_SUM, squares, count);
    return seconds + clock_monotonic() - clock;
}

static double train_update(struct trainer *t, int64_t step, double lr, struct step_times *times)
{
    double start = clock_monotonic(), clock = start;
    bool shares = train_shares_update(t);

    stall_doing(t->run->stall, STALL_ALLREDUCE);
    if (shares)
        optimizer_begin(t->optimizer, lr);
    times->comm = shares ? train_share_update(t) : traincomm_gradients_wait(t->gradients);
    stall_doing(t->run->stall, STALL_COMPUTE);
    train_lap(&clock, "all-reduce");
    double norm = sqrt(shares ? optimizer_end(t->optimizer) : optimizer_step(t->optimizer, lr));
    ema_update(t->run, step);
    train_lap(&clock, "optimizer");
    times->optim = clock - start - times->comm;
    return norm;
}

static struct rank_step train_gather_step(struct trainer *t, const struct batch_result *step,
                                          const struct step_times *times)
{
    struct rank_step mine = {
        .loss = step->loss,
        .correct = step->correct,
        .bad_images = (double)loader_bad_images(t->loader),
        .energy = energy_now(t->run->energy),
        .times = {{1e3 * times->data, 1e3 * times->forward, 1e3 * times->backward,
                   1e3 * times->optim}},
    };

    return rank_timing_gather(t->timing, &mine);
}

static int train_report_step(const struct trainer *t, int64_t step, const struct rank_step *all,
                             const struct step_times *times, double grad_norm, struct error *e)
{
    struct run *r = t->run;
    double images = (double)run_images(r, step - 1, step);

    report_begin(r->report, EVENT_STEP);
    report_int(r->report, "step", step);
    report_real(r->report, "epoch", run_epoch(r, step));
    report_real(r->report, "loss", all->loss);
    report_real(r->report, "lr", t->lr);
    report_real(r->report, "images_per_sec", images / times->total);
    report_real(r->report, "step_ms", times->total * 1e3);
    report_real(r->report, "data_ms", times->data * 1e3);
    report_real(r->report, "forward_ms", times->forward * 1e3);
    report_real(r->report, "backward_ms", times->backward * 1e3);
    report_real(r->report, "comm_ms", times->comm * 1e3);
    report_real(r->report, "optim_ms", times->optim * 1e3);
    report_real(r->report, "grad_norm", grad_norm);
    report_real(r->report, "top1", all->correct / images);
    rank_timing_report(t->timing);
    int status = report_end(r->report, e);
    if (!status)
        status = energy_report(r->energy, r->report, step, &all->energy, false, e);
    return status ? status : straggler_report(t->timing, step, 1e3 * times->total, e);
}

static int64_t train_last_step(const struct run *r)
{
    return r->plan->train_steps - r->step_shift;
}

static double train_cost(const struct run *r, int64_t from, int64_t to)
{
    return plan_steps_cost(r->plan, r->spec, from + r->step_shift, to + r->step_shift);
}

static void train_print_progress(struct trainer *t, int64_t step, double loss, double lr)
{
    struct run *r = t->run;
    const struct job_spec *s = r->spec;
    double now = clock_monotonic();
    bool due = step >= train_last_step(r) ||
               (s->log.every_seconds > 0 && now - t->last_progress >= s->log.every_seconds) ||
               (s->log.every_steps > 0 && step % s->log.every_steps == 0);

    if (r->rank != 0 || !due)
        return;
    t->last_progress = now;
    double images = (double)run_images(r, t->first_step, t->result.steps);
    double rate = t->step_seconds_sum > 0 ? images / t->step_seconds_sum : 0;
    double left = train_cost(r, step, train_last_step(r)) * t->step_seconds_sum /
                  train_cost(r, t->first_step, step);
    /* fabs: a NaN may have a sign, and would be printed as "-nan" */
    printf("Step [%lld/%lld] epoch %.2f loss %.4f lr %.5g %.1f images/s, %.0f s left\n",
           (long long)step, (long long)train_last_step(r), run_epoch(r, step), fabs(loss), lr, rate,
           left);
    fflush(stdout);
}

/* Runs forward and backward of all batches of a step; *step gets this rank's mean loss and number
 * of correct images. The ranks agree on a stop before the first batch, so that no half step enters
 * the running statistics, and on errors before the first and the last one: after that they meet in
 * the all-reduce. */
static int train_compute_gradients(struct trainer *t, struct batch_result *step,
                                   struct step_times *times, bool *stop, struct error *e)
{
    struct run *r = t->run;
    int64_t batches = r->spec->accumulate_steps;
    struct loader_batch batch;
    int status = 0;

    *step = (struct batch_result){0};
    for (int64_t j = 0; j < batches; j++) {
        r->phase = "data";
        stall_doing(t->run->stall, STALL_DATA);
        if (!status)
            status = loader_next(t->loader, &batch, e);
        stall_doing(t->run->stall, STALL_WAIT);
        if (j == 0)
            *stop = run_stop_requested();
        if (j == 0)
            status = run_agree_on_stop(r, status, stop, e);
        else if (j == batches - 1)
            status = run_agree(r, status, e);
        if ((status && (j == 0 || j == batches - 1)) || *stop)
            return status;
        if (status)
            continue;
        times->data += batch.wait_seconds;
        r->phase = "train";
        stall_doing(t->run->stall, STALL_COMPUTE);
        struct batch_result one = train_compute_batch(t, &batch, j, times);
        step->loss += one.loss / (double)batches;
        step->correct += one.correct;
        step->images += one.images;
    }
    return 0;
}

/* After non-finite gradients the weights are lost, even if the loss is still finite. */
static int train_check_finite(int64_t step, double loss, double grad_norm, struct error *e)
{
    bool of_loss = !isfinite(loss);

    if (!of_loss && isfinite(grad_norm))
        return 0;
    return error_set(e, ERR_INVALID,
                     "diverged at step %lld, %s was %s: try a smaller lr.base or a longer "
                     "lr.warmup_epochs",
                     (long long)step, of_loss ? "the loss" : "the norm of the gradients",
                     isnan(of_loss ? loss : grad_norm) ? "not a number (NaN)" : "infinite");
}

/* Runs one step; index counts from 0. Sets *stop if the ranks agreed to stop before it. */
static int train_step(struct trainer *t, int64_t index, bool *stop, struct error *e)
{
    struct run *r = t->run;
    struct step_times times = {.start = clock_monotonic()};
    struct batch_result mine;
    double lr = lr_at(&r->plan->lr, index + r->step_shift);

    int status = train_compute_gradients(t, &mine, &times, stop, e);
    if (status || *stop)
        return status;
    double grad_norm = train_update(t, index + r->step_shift, lr, &times),
           clock = clock_monotonic();
    stall_doing(t->run->stall, STALL_WAIT);
    struct rank_step all = train_gather_step(t, &mine, &times);
    stall_step_ended(r->stall, index + 1);
    stall_doing(r->stall, STALL_FILES); /* the event */
    train_lap(&clock, "wait for all ranks");
    times.total = clock_monotonic() - times.start;
    trace_since(times.start, "step", "step", mine.images);
    t->step_seconds_sum += times.total;
    t->result.bad_images = r->from.bad_images + (int64_t)all.bad_images;
    t->result.steps = index + 1;
    t->lr = lr;
    provenance_step(r, index + 1, all.loss, grad_norm);
    status = train_report_sum(t, index + 1, e);
    if (!status)
        status = train_report_step(t, index + 1, &all, &times, grad_norm, e);
    if (!status)
        status = train_check_finite(index + 1, all.loss, grad_norm, e);
    if (!status)
        status =
            loader_judge_bad((int64_t)all.bad_images, run_images(r, t->first_step, t->result.steps),
                             t->result.steps == train_last_step(r), e);
    train_print_progress(t, index + 1, all.loss, lr);
    return run_agree(r, status, e);
}

static void train_set_stopped(struct trainer *t)
{
    t->result.status = "cancelled";
    t->run->cancelled = true;
}

static int train_evaluate_now(struct trainer *t, bool last, struct error *e)
{
    struct run *r = t->run;
    struct result *result = &t->result;
    struct evaluation evaluation;
    bool stopped;
    double epoch = run_epoch(r, result->steps);
    t->best = r->monitor.best;
    int status = evaluate(r, result->steps, epoch, last && r->spec->eval.predictions, &evaluation,
                          &stopped, e);
    if (stopped)
        train_set_stopped(t);
    if (status || stopped)
        return status;
    result->evaluated = true;
    result->evaluation = evaluation;
    t->evaluated_at = result->steps;
    t->is_kept = evaluation.is_kept;
    if (!result->target_reached) /* the first time counts */
        result->ttt_seconds = evaluation.ended - r->started;
    if (r->spec->eval.has_target_top1 && result->evaluation.top1 >= r->spec->eval.target_top1)
        result->target_reached = true;
    return 0;
}

static struct run_state train_state_of(const struct trainer *t)
{
    const struct run *r = t->run;
    const struct plan *plan = r->plan;
    const struct result *result = &t->result;
    int64_t epoch, epoch_images;

    replan_position(plan, result->steps + r->step_shift, t->first_step + r->step_shift,
                    r->image_shift, &epoch, &epoch_images);
    return (struct run_state){
        .step = result->steps,
        .schedule_step = result->steps + r->step_shift,
        .epoch = epoch,
        .epoch_images = epoch_images,
        .epochs_done = run_epoch(r, result->steps),
        .images_seen = r->from.images_seen + run_images(r, t->first_step, result->steps),
        .train_seconds = r->from.train_seconds + t->step_seconds_sum,
        .global_batch = plan->global_batch,
        .world_size = r->world,
        .threads = r->threads,
        .steps_per_epoch = plan->steps_per_epoch,
        .train_images = plan->train_images,
        .peak_lr = plan->peak_lr,
        .lr = t->lr,
        .bad_images = result->bad_images,
        .run_started = r->run_started,
        .evaluated = result->evaluated,
        .evaluated_at = t->evaluated_at,
        .target_reached = result->target_reached,
        .ttt_seconds = result->ttt_seconds,
        .evaluation = result->evaluation,
        .losses = r->losses,
        .evaluations = r->evaluations,
        .monitor = r->monitor,
        .tuning = r->tuning,
    };
}

/* After shared updates a rank has the momenta of the weights that it updates. Collective. */
static void train_gather_states(struct trainer *t)
{
    struct traincomm_update how = {.cut = optimizer_cut, .context = t->optimizer};

    for (size_t i = 0; i < optimizer_states(t->optimizer); i++) {
        how.values = optimizer_state(t->optimizer, i) + model_first_trained(t->run->model);
        traincomm_gradients_update(t->gradients, &how);
    }
}

static int train_checkpoint_now(struct trainer *t, bool last, struct error *e)
{
    struct run *r = t->run;
    struct run_state state = train_state_of(t);

    if (train_shares_update(t))
        train_gather_states(t);
    int status = checkpoint_write(r, t->optimizer, &state, t->run->cancelled, t->result.model, e);

    t->is_kept = false;
    if (!status)
        t->saved_at = t->result.steps;
    if (!status || last)
        return status;
    if (t->evaluated_at == t->result.steps)
        r->monitor.best = t->best; /* this one is not there to be kept */
    char message[ERROR_TEXT_BYTES];
    memcpy(message, e->text, sizeof message);
    return run_agree(r, run_warn(r, t->result.steps, message, e), e);
}

static int train_evaluate_if_due(struct trainer *t, struct error *e)
{
    const struct run *r = t->run;
    int64_t step = t->result.steps;

    if (!r->spec->data.eval || t->evaluated_at == step || step >= train_last_step(r) ||
        !plan_is_due(r->plan, r->spec->eval.every_epochs, step + r->step_shift))
        return 0;
    return train_evaluate_now(t, false, e);
}

static int train_between_steps(struct trainer *t, struct error *e)
{
    const struct run *r = t->run;
    const struct job_spec *s = r->spec;
    int64_t step = t->result.steps;
    bool by_steps = s->checkpoint.every_steps > 0 && step % s->checkpoint.every_steps == 0;
    bool saves =
        !s->checkpoint.disable && step < train_last_step(r) &&
        (by_steps || plan_is_due(r->plan, s->checkpoint.every_epochs, step + r->step_shift));
    int status = train_evaluate_if_due(t, e);

    if (!status && (saves || t->is_kept))
        status = train_checkpoint_now(t, false, e);
    stall_step_ended(r->stall, step);
    return status;
}

static int train_steps(struct trainer *t, struct error *e)
{
    bool stop = false;
    stall_step_ended(t->run->stall, t->result.steps);
    /* An evaluation that a signal interrupted before the checkpoint was written */
    int status = t->run->resumes ? train_evaluate_if_due(t, e) : 0;

    if (!status && t->is_kept)
        status = train_checkpoint_now(t, false, e);
    while (!status && t->result.steps < train_last_step(t->run) && !t->run->cancelled &&
           !(t->run->spec->eval.stop_at_target && t->result.target_reached) &&
           !monitor_is_over(&t->run->monitor, t->run->spec)) {
        status = profile_before_step(t->profile, t->result.steps + 1, e);
        if (!status)
            status = train_step(t, t->result.steps, &stop, e);
        if (stop)
            train_set_stopped(t);
        else if (!status)
            status = train_between_steps(t, e);
    }
    return status;
}

/* An earlier evaluation may be of the final step: it met the target, or the run resumed after
 * it. */
static int train_evaluate_at_end(struct trainer *t, struct error *e)
{
    const struct job_spec *s = t->run->spec;
    bool stopped;

    if (t->run->cancelled || !s->data.eval)
        return 0;
    if (t->evaluated_at != t->result.steps)
        return train_evaluate_now(t, true, e);
    if (!s->eval.predictions)
        return 0;
    int status = evaluate_again(t->run, t->result.steps, &stopped, e);
    if (stopped)
        train_set_stopped(t);
    return status;
}

static void train_explain_end(struct trainer *t)
{
    const struct run *r = t->run;
    const struct monitor *m = &r->monitor;

    if (!r->cancelled && t->result.steps < train_last_step(r) && monitor_is_over(m, r->spec))
        snprintf(t->result.reason, sizeof t->result.reason,
                 "stopped early: %s has not improved on %.5g (step %.0f) in %.0f evaluation%s "
                 "(eval.patience)",
                 monitor_name(r->spec), m->reference, m->reference_step, m->waited,
                 plural((int64_t)m->waited));
}

static int train_finish(struct trainer *t, struct error *e)
{
    struct run *r = t->run;
    struct result *result = &t->result;

    if (!result->evaluated)
        result->ttt_seconds = clock_monotonic() - r->started;
    int status = train_evaluate_at_end(t, e);
    if (t->run->cancelled)
        result->ttt_seconds = NAN;
    if (!status)
        status = profile_finish(t->profile, e);
    /* A checkpoint of step 0, with nothing trained, cannot be resumed. */
    if (!status && !r->spec->checkpoint.disable && result->steps > 0 &&
        (t->saved_at != result->steps || t->is_kept))
        status = train_checkpoint_now(t, true, e);
    if (status)
        return status;
    stall_phase(r->stall, STALL_IN_END);
    stall_doing(r->stall, STALL_FILES);
    result->has_target = r->spec->eval.has_target_top1;
    train_explain_end(t);
    const struct run_state now = train_state_of(t);
    result->images_per_sec =
        now.train_seconds == 0 ? 0 : (double)now.images_seen / now.train_seconds;
    status = run_agree(r, result_write(r, result, e), e);
    if (!status && !t->run->cancelled && t->saved_at == result->steps)
        checkpoint_keep_last(r, result->steps);
    return status;
}

static void train_resume(struct trainer *t)
{
    struct run *r = t->run;
    const struct run_state *from = &r->from;
    struct result *result = &t->result;
    char relative[64], own[PATH_MAX];

    t->first_step = result->steps = from->step;
    t->lr = from->lr;
    r->losses = from->losses;
    r->evaluations = from->evaluations;
    r->monitor = from->monitor;
    r->plan->lr.scale = r->monitor.lr_scale;
    t->evaluated_at = from->evaluated ? from->evaluated_at : -1;
    result->evaluated = from->evaluated;
    result->evaluation = from->evaluation;
    result->target_reached = from->target_reached;
    result->ttt_seconds = from->ttt_seconds;
    result->bad_images = from->bad_images;
    snprintf(relative, sizeof relative, "checkpoints/step-%08lld", (long long)from->step);
    file_path(own, NULL, "%s/%s", r->run_dir, relative);
    if (strcmp(own, r->resumed_from))
        return;
    t->saved_at = from->step;
    snprintf(result->model, sizeof result->model, "%.40s/model.safetensors", relative);
}

int train(struct run *r, struct error *e)
{
    struct trainer t = {.run = r,
                        .evaluated_at = -1,
                        .saved_at = -1,
                        .last_progress = clock_monotonic(),
                        .result = {.status = "success"}};

    monitor_from_json(&r->monitor, NULL, r->spec);
    if (r->resumes)
        train_resume(&t);
    int status = train_open_trainer(r, &t, e);
    if (!status)
        status = provenance_begin(r, t.gradients, e);
    t.timing = rank_timing_create(r->comm, r->report);
    if (!status)
        status = train_steps(&t, e);
    if (!status)
        status = train_finish(&t, e);
    loader_destroy(t.loader);
    optimizer_destroy(t.optimizer);
    traincomm_gradients_destroy(t.gradients);
    profile_destroy(t.profile);
    rank_timing_destroy(t.timing);
    ema_destroy(r->ema);
    r->ema = NULL;
    return status;
}
