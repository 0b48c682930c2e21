#include "worker/evaluate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/run/stall_report.h"
#include "common/run/trace.h"
#include "worker/data/loader.h"
#include "worker/ema.h"
#include "worker/kernels/softmax_loss.h"
#include "worker/model/forward_backward.h"
#include "worker/provenance/provenance.h"
#include "worker/save/predictions.h"
#include "worker/save/rank_statistics.h"
#include "worker/save/result.h"
#include "worker/watch/stall.h"

struct tally {
    double loss;
    /* Counts; doubles, so that one exact all-reduce sums everything */
    double top1, top5, images, bad, not_finite;
};

static bool evaluate_logits_are_finite(const float *logits, int classes)
{
    for (int c = 0; c < classes; c++)
        if (!isfinite(logits[c]))
            return false;
    return true;
}

/* Number of larger logits; ties go to the lower class, as in argmax. The logits must be finite:
 * comparisons with NaN would make every label the best. */
static int evaluate_rank_of_label(const float *logits, int classes, int label)
{
    int better = 0;
    for (int c = 0; c < classes; c++)
        better += logits[c] > logits[label] || (logits[c] == logits[label] && c < label);
    return better;
}

static void evaluate_tally_image(struct tally *t, enum job_loss loss, const float *logits,
                                 int classes, int label)
{
    t->images++;
    if (label < 0) { /* did not decode */
        t->bad++;
        return;
    }
    if (!evaluate_logits_are_finite(logits, classes)) {
        t->not_finite++;
        return;
    }
    int better = evaluate_rank_of_label(logits, classes, label);
    t->top1 += better == 0;
    t->top5 += better < 5;
    t->loss += softmax_loss_of(loss, logits, classes, label);
}

static int evaluate_open_loader(struct run *r, struct loader **loader, struct error *e)
{
    const struct job_spec *s = r->spec;
    struct loader_config config = {
        .dataset = r->eval_data,
        .role = DATASET_EVAL,
        .preprocess = s->data.preprocess,
        .images = r->plan->eval_images,
        .image_size = (int)job_spec_eval_size(s),
        .resize = s->eval.has_resize ? (int)s->eval.resize : 0,
        .classes = (int)s->model.classes,
        .channels = arch_image_channels(arch_find(s->model.arch)),
        .batch = (int)s->eval.batch,
        .rank = r->rank,
        .world = r->world,
        .seed = s->seed,
        .threads = (int)s->data.prefetch_threads,
        .max_threads = r->threads,
        .depth = 2,
        .bf16 = job_spec_has_bf16_images(s),
    };
    return loader_create(&config, loader, e);
}

static void evaluate_mirror_images(const struct run *r, const char *from, char *to, int n,
                                   size_t bytes)
{
    size_t size = (size_t)job_spec_eval_size(r->spec);
    size_t pixel = bytes * (size_t)arch_image_channels(arch_find(r->spec->model.arch));

    for (size_t row = 0; row < (size_t)n * size; row++)
        for (size_t x = 0; x < size; x++)
            memcpy(to + (row * size + x) * pixel, from + (row * size + size - 1 - x) * pixel,
                   pixel);
}

struct eval_buffers {
    float *logits;   /* (eval.batch, classes) */
    float *mirrored; /* logits of mirrored images; NULL: eval.flip is off */
    char *mirror;    /* images of one call of the model */
};

static int evaluate_images_at_once(const struct job_spec *s)
{
    return (int)(s->mode == JOB_MODE_EVAL ? s->eval.batch : s->batch_per_worker);
}

static size_t evaluate_eval_image_floats(const struct job_spec *s)
{
    size_t size = (size_t)job_spec_eval_size(s);
    return size * size * (size_t)arch_image_channels(arch_find(s->model.arch));
}

static void evaluate_predict_batch(struct run *r, const struct loader_batch *b,
                                   struct eval_buffers *to)
{
    const struct job_spec *s = r->spec;
    size_t classes = (size_t)s->model.classes, floats = evaluate_eval_image_floats(s);
    size_t bytes = b->images_bf16 ? sizeof(bf16) : sizeof(float);
    const char *all = b->images_bf16 ? (const char *)b->images_bf16 : (const char *)b->images;
    int max = evaluate_images_at_once(s);

    for (int from = 0; from < b->n; from += max) {
        int n = b->n - from < max ? b->n - from : max;
        size_t at = (size_t)from * classes;
        const char *images = all + (size_t)from * floats * bytes;
        model_predict(r->model, images, n, to->logits + at);
        if (!to->mirror)
            continue;
        evaluate_mirror_images(r, images, to->mirror, n, bytes);
        model_predict(r->model, to->mirror, n, to->mirrored + at);
        for (size_t i = at; i < at + (size_t)n * classes; i++)
            to->logits[i] = (to->logits[i] + to->mirrored[i]) / 2;
    }
}

static void evaluate_free_eval_buffers(struct eval_buffers *b)
{
    free(b->logits);
    free(b->mirrored);
    free(b->mirror);
}

static int evaluate_allocate_eval_buffers(const struct job_spec *s, struct eval_buffers *b,
                                          struct error *e)
{
    size_t logits = (size_t)s->eval.batch * (size_t)s->model.classes * sizeof *b->logits;
    size_t max = (size_t)(evaluate_images_at_once(s) < s->eval.batch ? evaluate_images_at_once(s)
                                                                     : s->eval.batch);
    size_t bytes = max * evaluate_eval_image_floats(s) * sizeof(float);

    *b = (struct eval_buffers){.logits = malloc(logits)};
    if (s->eval.flip) {
        b->mirrored = malloc(logits);
        b->mirror = aligned_alloc(64, (bytes + 63) / 64 * 64);
    }
    if (b->logits && (!s->eval.flip || (b->mirrored && b->mirror)))
        return 0;
    evaluate_free_eval_buffers(b);
    return error_set(e, ERR_NO_MEMORY, "no memory for the logits of an evaluation batch");
}

/* Ten lines per evaluation; all ranks are equally far, so rank 0 reports for all. */
static int evaluate_report_progress(struct run *r, int64_t mine, int64_t batches, int64_t step,
                                    struct error *e)
{
    int64_t done = mine * r->world < batches ? mine * r->world : batches;
    int64_t before = (mine - 1) * r->world, images = done * r->spec->eval.batch;

    if (r->rank != 0 || (done * 10 / batches == before * 10 / batches && done < batches))
        return 0;
    printf("Evaluation [%lld/%lld]\n", (long long)done, (long long)batches);
    fflush(stdout);
    report_begin(r->report, EVENT_EVAL_PROGRESS);
    report_int(r->report, "step", step);
    report_int(r->report, "batch", done);
    report_int(r->report, "batches", batches);
    report_int(r->report, "images", images < r->plan->eval_images ? images : r->plan->eval_images);
    return report_end(r->report, e);
}

static int evaluate_batches(struct run *r, struct loader *loader, int64_t step,
                            struct predictions *predictions, struct tally *t, struct error *e)
{
    const struct job_spec *s = r->spec;
    int classes = (int)s->model.classes, status;
    int64_t batches = (r->plan->eval_images + s->eval.batch - 1) / s->eval.batch;
    struct loader_batch b;
    struct eval_buffers buffers;

    if (evaluate_allocate_eval_buffers(s, &buffers, e))
        return -(int)e->code;
    const float *logits = buffers.logits;
    for (int64_t mine = 1;; mine++) {
        stall_doing(r->stall, STALL_DATA);
        status = loader_next(loader, &b, e);
        stall_doing(r->stall, STALL_COMPUTE);
        if (status || b.n == 0)
            break;
        evaluate_predict_batch(r, &b, &buffers);
        stall_progress_add((uint64_t)b.n);
        for (int i = 0; i < b.n; i++)
            evaluate_tally_image(t, s->loss, logits + (size_t)i * classes, classes, b.labels[i]);
        status = predictions_add(predictions, &b, logits, classes, e);
        if (!status)
            status = evaluate_report_progress(r, mine, batches, step, e);
        if (status || run_stop_requested())
            break;
    }
    evaluate_free_eval_buffers(&buffers);
    return status;
}

static int evaluate_report_eval(struct run *r, int64_t step, double epoch,
                                const struct evaluation *v, struct error *e)
{
    report_begin(r->report, EVENT_EVAL);
    report_int(r->report, "step", step);
    report_real(r->report, "epoch", epoch);
    report_real(r->report, "top1", v->top1);
    report_real(r->report, "top5", v->top5);
    report_real(r->report, "loss", v->loss);
    report_real(r->report, "calibration_error", v->calibration_error);
    report_int(r->report, "images", v->images);
    report_real(r->report, "seconds", v->seconds);
    if (v->has_raw) {
        report_real(r->report, "raw_top1", v->raw_top1);
        report_real(r->report, "raw_top5", v->raw_top5);
        report_real(r->report, "raw_loss", v->raw_loss);
    }
    if (r->spec->mode == JOB_MODE_TRAIN && r->spec->checkpoint.keep_best > 0)
        report_flag(r->report, "best", v->is_kept && r->monitor.best.steps[0] == step);
    if (r->spec->mode == JOB_MODE_TRAIN && r->spec->eval.patience > 0)
        report_int(r->report, "without_improvement", (int64_t)r->monitor.waited);
    if (r->rank == 0 && v->has_raw)
        printf("Averaged weights; those that are trained: Top-1 accuracy = %.5g, loss = %.7g\n",
               v->raw_top1, v->raw_loss);
    if (r->rank == 0) {
        printf("Evaluation at step %lld: Top-1 accuracy = %.5g, Top-5 accuracy = %.5g, "
               "loss = %.7g, %lld images in %.1f s\n",
               (long long)step, v->top1, v->top5, v->loss, (long long)v->images, v->seconds);
        fflush(stdout);
    }
    return report_end(r->report, e);
}

/* Such an accuracy is meaningless and must not count as reaching the target. */
static int evaluate_check_finite(const struct run *r, const struct tally *sum, int64_t step,
                                 struct error *e)
{
    if (sum->not_finite == 0)
        return 0;
    if (r->spec->mode == JOB_MODE_EVAL)
        return error_set(e, ERR_INVALID,
                         "the model's outputs are NaN or infinite for %lld of %lld images: the "
                         "weights of model.init come from a run that diverged, or are damaged",
                         (long long)sum->not_finite, (long long)sum->images);
    return error_set(e, ERR_INVALID,
                     "diverged at step %lld, the model's outputs are NaN or infinite for %lld of "
                     "%lld images of the evaluation: try a smaller lr.base or a longer "
                     "lr.warmup_epochs",
                     (long long)step, (long long)sum->not_finite, (long long)sum->images);
}

static int evaluate_weights(struct run *r, int64_t step, int with, struct evaluation *out,
                            bool *stopped, struct error *e)
{
    struct loader *loader = NULL;
    struct predictions *file = NULL;
    struct tally mine = {0}, sum = {0};
    double start = clock_monotonic(), span = trace_begin(), calibration_error = NAN;

    int status = evaluate_open_loader(r, &loader, e);
    if (with)
        file = predictions_create(r);
    if (!status)
        status = evaluate_batches(r, loader, step, file, &mine, e);
    loader_destroy(loader);
    trace_end(span, "phase", "evaluation", 0);
    *stopped = run_stop_requested();
    status = run_agree_on_stop(r, status, stopped, e);
    double ended = clock_monotonic();
    if (!status && !*stopped) {
        sum = mine;
        traincomm_reduce(r->comm, TRAINCOMM_SUM, (double *)&sum, sizeof sum / sizeof(double));
        ended = clock_monotonic();                        /* excludes writing files */
        status = evaluate_check_finite(r, &sum, step, e); /* same numbers on every rank */
        if (!status && with)
            status = predictions_finish(file, r, step, with, &calibration_error, e);
    }
    predictions_destroy(file);
    if (status || *stopped)
        return status;
    double good = sum.images - sum.bad;
    *out = (struct evaluation){.top1 = sum.top1 / sum.images,
                               .top5 = sum.top5 / sum.images,
                               .loss = good > 0 ? sum.loss / good : NAN,
                               .calibration_error = calibration_error,
                               .images = (int64_t)sum.images,
                               .seconds = ended - start,
                               .ended = ended};
    if (out->images != r->plan->eval_images)
        status = error_set(e, ERR_INTERNAL, "evaluation counted %lld images instead of %lld",
                           (long long)out->images, (long long)r->plan->eval_images);
    else
        status = loader_judge_bad((int64_t)sum.bad, (int64_t)sum.images, true, e);
    return run_agree(r, status, e);
}

static void evaluate_begin(struct run *r)
{
    r->phase = "evaluate";
    stall_phase(r->stall, STALL_IN_EVALUATION);
    stall_doing(r->stall, STALL_COMPUTE);
    model_use_size(r->model, (int)job_spec_eval_size(r->spec));
}

static void evaluate_judge(struct run *r, int64_t step, struct evaluation *v)
{
    bool warm = step + r->step_shift >= r->plan->warmup_steps;
    double before = r->monitor.lr_scale, rate = warm ? r->plan->lr.peak * before : NAN;

    v->is_kept = monitor_add(&r->monitor, r->spec, step,
                             r->spec->eval.monitor == JOB_MONITOR_LOSS ? v->loss : v->top1, rate);
    r->plan->lr.scale = r->monitor.lr_scale;
    if (r->rank == 0 && r->monitor.lr_scale != before)
        printf("The evaluations have stopped improving: learning rate x %.5g (lr.decay)\n",
               r->monitor.lr_scale / before);
}

int evaluate(struct run *r, int64_t step, double epoch, bool predictions, struct evaluation *out,
             bool *stopped, struct error *e)
{
    evaluate_begin(r);
    rank_statistics_average(r, step);
    bool averages = ema_has_begun(r->ema);
    int with = PREDICTIONS_CELLS | (predictions ? PREDICTIONS_FILE : 0);
    int status = evaluate_weights(r, step, averages ? 0 : with, out, stopped, e);
    if (!status && !*stopped && averages) {
        struct evaluation raw = *out;
        ema_swap(r);
        status = evaluate_weights(r, step, with, out, stopped, e);
        ema_swap(r);
        out->seconds += raw.seconds;
        out->has_raw = true;
        out->raw_top1 = raw.top1;
        out->raw_top5 = raw.top5;
        out->raw_loss = raw.loss;
    }
    if (status || *stopped)
        return status;
    provenance_evaluation(r, step, out);
    if (r->spec->mode == JOB_MODE_TRAIN)
        evaluate_judge(r, step, out);
    return run_agree(r, evaluate_report_eval(r, step, epoch, out, e), e);
}

int evaluate_again(struct run *r, int64_t step, bool *stopped, struct error *e)
{
    bool averages = ema_has_begun(r->ema);
    struct evaluation same;

    evaluate_begin(r);
    if (averages) {
        ema_gather(r);
        ema_swap(r);
    }
    int status = evaluate_weights(r, step, PREDICTIONS_FILE, &same, stopped, e);
    if (averages)
        ema_swap(r);
    return status;
}

int evaluate_only(struct run *r, struct error *e)
{
    struct result result = {.status = "success", .steps = r->init_step, .evaluated = true};
    bool stopped;
    int status = provenance_begin(r, NULL, e);
    if (!status)
        status = evaluate(r, r->init_step, 0, r->spec->eval.predictions, &result.evaluation,
                          &stopped, e);

    if (status)
        return status;
    stall_phase(r->stall, STALL_IN_END);
    stall_doing(r->stall, STALL_FILES);
    if (stopped) {
        r->cancelled = true;
        result = (struct result){.status = "cancelled", .steps = r->init_step, .ttt_seconds = NAN};
        return run_agree(r, result_write(r, &result, e), e);
    }
    result.ttt_seconds = result.evaluation.ended - r->started;
    result.images_per_sec = (double)result.evaluation.images / result.evaluation.seconds;
    result.has_target = r->spec->eval.has_target_top1;
    result.target_reached =
        result.has_target && result.evaluation.top1 >= r->spec->eval.target_top1;
    return run_agree(r, result_write(r, &result, e), e);
}
