/* The model of a run that starts: built on every rank, filled on rank 0, the same everywhere. */
#include <limits.h>
#include <stdio.h>

#include "common/log.h"
#include "common/run/weights.h"
#include "worker/kernels/gemm.h"
#include "worker/model/weights.h"
#include "worker/start/start_parts.h"
#include "worker/watch/stall.h"

static int start_model_load_init(struct run *r, struct error *e)
{
    char path[PATH_MAX];
    struct safetensors *file;
    int status = weights_open(r->spec->model.init, path, &file, e);

    if (status)
        return status;
    status = model_load_file(r->model, file, path, e);
    r->init_step = weights_step(file);
    snprintf(r->init_path, sizeof r->init_path, "%s", path);
    safetensors_close(file);
    if (status)
        return status;
    if (r->init_step)
        log_info("the weights are %s, saved at step %lld", path, (long long)r->init_step);
    else
        log_info("the weights are %s", path);
    return 0;
}

static int start_model_read_weights(struct run *r, struct error *e)
{
    char path[PATH_MAX + 32];

    if (!r->resumes)
        return start_model_load_init(r, e);
    snprintf(path, sizeof path, "%s/model.safetensors", r->resumed_from);
    return model_load(r->model, path, e);
}

static int start_model_fill(struct run *r, struct error *e)
{
    if (!r->resumes)
        model_init(r->model, r->spec->seed);
    if (!r->resumes && !r->spec->model.init)
        return 0;
    stall_doing(r->stall, STALL_FILES);
    int status = start_model_read_weights(r, e);
    stall_doing(r->stall, STALL_COMPUTE);
    return status;
}

/* Rank 0 measures, or remembers, for all; a run that goes on computes as it did before, unless the
 * job turns Winograd off. */
static int start_model_choose_convolutions(struct run *r, const struct model_config *config,
                                           struct error *e)
{
    const char *tiles = r->spec->model.winograd_tiles;
    char problem[256] = "";

    bool winograd = r->spec->model.winograd && r->spec->model.gemm != JOB_GEMM_OPENBLAS &&
                    r->spec->precision == JOB_PRECISION_FP32;

    if (r->resumes && winograd)
        r->tuning = r->from.tuning;
    else if (r->resumes && r->from.tuning.count)
        json_array_append_new(
            r->warnings, json_string("the checkpoint was computed with Winograd's convolutions; "
                                     "here model.winograd is false or model.gemm openblas: the "
                                     "result will not be bit for "
                                     "bit that of an undisturbed run"));
    if (r->resumes || !winograd)
        return 0;
    if (tiles)
        return model_tuning_take(config, tiles, &r->tuning, e);
    if (r->rank == 0)
        model_tune(config, &r->tuning, problem);
    traincomm_broadcast(r->comm, &r->tuning, sizeof r->tuning, 0);
    if (problem[0])
        json_array_append_new(
            r->warnings,
            json_sprintf("which convolutions go by Winograd is measured at each start, because it "
                         "cannot be remembered: %s",
                         problem));
    return 0;
}

static int start_model_build(struct run *r, struct error *e)
{
    const struct job_spec *s = r->spec;
    bool evaluates = s->mode == JOB_MODE_EVAL;
    struct model_config config = {
        .arch = arch_find(s->model.arch),
        .stem = s->model.stem,
        .width = s->model.width,
        .dropout = s->model.dropout,
        .classes = (int)s->model.classes,
        .image_size = (int)(evaluates ? job_spec_eval_size(s) : s->model.image_size),
        .batch = (int)(evaluates ? s->eval.batch : s->batch_per_worker),
        .inference = evaluates,
        .threads = r->threads,
        .bn_momentum = 1.0 - s->model.bn_decay,
        .zero_init_residual = s->model.zero_init_residual,
        .label_smoothing = s->optimizer.label_smoothing,
        .gemm = s->model.gemm,
        .precision = s->precision,
        .bf16_images = job_spec_has_bf16_images(s),
        .tuning = &r->tuning,
    };
    for (size_t i = 0; i + 1 < s->model.sizes.count && !evaluates; i++) {
        config.more_sizes[i] = (int)s->model.sizes.at[i].size;
        config.more_batches[i] = (int)plan_batch_of_size(s, s->model.sizes.at[i].size);
    }
    if (!evaluates && s->data.eval && job_spec_eval_size(s) != s->model.image_size)
        config.eval_size = (int)job_spec_eval_size(s);
    int status = gemm_reserve(r->threads, e);
    status = run_agree(r, status, e);
    if (!status)
        status = start_model_choose_convolutions(r, &config, e);
    if (!status)
        status = model_create(&config, &r->model, e);
    if (!status && r->rank == 0)
        status = start_model_fill(r, e);
    return run_agree(r, status, e);
}

static void start_model_broadcast(struct run *r)
{
    traincomm_broadcast(r->comm, model_params(r->model),
                        model_param_count(r->model) * sizeof(float), 0);
    traincomm_broadcast(r->comm, model_stats(r->model), model_stat_count(r->model) * sizeof(float),
                        0);
    traincomm_broadcast(r->comm, &r->init_step, sizeof r->init_step, 0);
}

int start_model(struct run *r, struct error *e)
{
    int status = start_model_build(r, e);
    if (!status)
        start_model_broadcast(r);
    return status;
}
