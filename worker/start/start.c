#include "worker/start/start.h"

#include <limits.h>
#include <omp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/run/attempt.h"
#include "common/run/weights.h"
#include "common/system/file.h"
#include "common/system/placement.h"
#include "worker/kernels/bf16.h"
#include "worker/kernels/gemm.h"
#include "worker/model/autotune.h"
#include "worker/model/init.h"
#include "worker/model/weights.h"
#include "worker/run.h"
#include "worker/save/state.h"
#include "worker/start/start_plan.h"
#include "worker/team/parallel.h"
#include "worker/watch/binding.h"
#include "worker/watch/stall.h"

/* Opens the event log first, so that later errors are recorded in it. */
static int start_open_run_dir(struct run *r, const struct start_options *options, struct error *e)
{
    char path[PATH_MAX];
    int status = 0;

    if (!realpath(options->run_dir, r->run_dir))
        snprintf(r->run_dir, sizeof r->run_dir, "%s", options->run_dir);
    if (file_path(r->attempt_dir, NULL, "%s/attempt-%d", r->run_dir, options->attempt) ||
        file_path(path, NULL, "%s/events.jsonl", r->attempt_dir))
        status = error_set(e, ERR_USAGE, "the path %s is too long", options->run_dir);
    if (!status && r->rank == 0)
        status = file_make_dirs(r->attempt_dir, e);
    /* Covers a cancel signal that came before mpirun had ranks to forward it to. */
    if (!status && r->rank == 0 && attempt_flag_is_set(r->attempt_dir, ATTEMPT_FLAG_CANCEL))
        run_request_stop();
    if (!status)
        status = report_create(r->rank == 0 ? path : NULL, &r->report, e);
    if (!status && r->rank == 0)
        stall_report_to(r->stall, r->report);
    return run_agree(r, status, e);
}

static int start_find_checkpoint(struct run *r, const char *from, struct error *e)
{
    int status = 0;

    if (!from)
        return 0;
    if (r->spec->mode == JOB_MODE_EVAL)
        status =
            error_set(e, ERR_USAGE,
                      "--resume is valid only with mode train; mode eval has nothing to resume");
    else if (r->rank == 0)
        status =
            run_state_find(r->run_dir, from, r->spec, r->resumed_from, &r->from, r->warnings, e);
    status = run_agree(r, status, e);
    if (status)
        return status;
    traincomm_broadcast(r->comm, r->resumed_from, sizeof r->resumed_from, 0);
    traincomm_broadcast(r->comm, &r->from, sizeof r->from, 0);
    r->resumes = r->resumed_from[0] != '\0';
    return 0;
}

static int start_report_run(struct run *r, struct error *e)
{
    char host[64] = "", tuning[TUNING_TEXT_BYTES], openblas[GEMM_LIBRARY_BYTES];
    double machines = traincomm_host_rank(r->comm) == 0;
    traincomm_reduce(r->comm, TRAINCOMM_SUM, &machines, 1);
    gethostname(host, sizeof host - 1);
    double now = clock_now();
    r->run_started = r->resumes && r->from.run_started < now ? r->from.run_started : now;
    r->started = clock_monotonic() - (now - r->run_started);
    report_begin(r->report, EVENT_RUN_START);
    report_text(r->report, "mode", r->spec->mode == JOB_MODE_EVAL ? "eval" : "train");
    report_text(r->report, "arch", r->spec->model.arch);
    report_int(r->report, "world_size", r->world);
    report_int(r->report, "machines", (int64_t)machines);
    report_int(r->report, "threads_per_worker", r->threads);
    report_text(r->report, "host", host);
    report_text(r->report, "kernels", isa_level());
    if (r->spec->precision == JOB_PRECISION_BF16)
        report_text(r->report, "bf16", bf16_kind_name(bf16_kind()));
    gemm_library(openblas);
    report_text(r->report, "openblas", openblas);
    if (json_array_size(r->kernel_kinds) > 1)
        report_json(r->report, "kernel_kinds", r->kernel_kinds);
    report_int(r->report, "seed", r->spec->seed);
    model_tuning_to_text(&r->tuning, tuning);
    report_text(r->report, "winograd", tuning);
    report_text(r->report, "gemm", conv_gemm_name(r->spec->model.gemm));
    report_int(r->report, "memory_bytes_per_worker", (int64_t)model_memory_bytes(r->model));
    report_json(r->report, "binding", r->binding);
    if (r->resumes) {
        report_text(r->report, "resumed_from", r->resumed_from);
        report_int(r->report, "resumed_step", r->from.step);
    }
    int status = report_end(r->report, e);
    for (size_t i = 0; i < json_array_size(r->warnings) && !status; i++)
        status = run_warn(r, r->from.step, json_string_value(json_array_get(r->warnings, i)), e);
    return status;
}

/* Sets the number of OpenMP threads. wanted: cluster.threads_per_worker; 0: the cores (smt:
 * hardware threads) that this rank is bound to, or its share of the machine. Collective. */
static int start_threads(struct traincomm *comm, int wanted, bool smt)
{
    struct placement_machine mine, machine;

    placement_read_mine(&mine);
    placement_read("/sys", &machine);
    int64_t slots = placement_slots(&mine, smt);
    /* An unbound rank shares the cores with the other ranks of its machine. */
    if (mine.whole.cpus >= machine.whole.cpus)
        slots /= traincomm_host_size(comm);
    int threads = wanted > 0 ? wanted : (int)slots;
    if (threads < 1)
        threads = 1;
    omp_set_num_threads(threads);
    return threads;
}

/* Finds a CPU that no rank computes on; ranks with the same CPUs get different ones. */
static int start_find_spare_cpu(struct run *r, struct error *e)
{
    int me = traincomm_host_rank(r->comm), ranks = 0, rank = 0;
    struct traincomm_shared *shared;
    int status = traincomm_shared_create(r->comm, sizeof(cpu_set_t), &shared);

    if (status)
        return error_set(e, ERR_NO_MEMORY, "cannot collect the CPUs of the ranks: %s",
                         traincomm_strerror(status));
    cpu_set_t *mine = traincomm_shared_part(shared, me);
    if (helper_thread_places(mine) == 0)
        sched_getaffinity(0, sizeof *mine, mine);
    traincomm_barrier(r->comm);
    for (int i = 0; i < traincomm_host_size(r->comm); i++) {
        bool same = CPU_EQUAL(mine, (cpu_set_t *)traincomm_shared_part(shared, i));
        ranks += same;
        rank += same && i < me;
    }
    r->comm_cpu = placement_spare_cpu("/sys", mine, ranks * r->threads, ranks, rank);
    traincomm_shared_destroy(shared);
    return 0;
}

/* Sets r->comm_cpu according to comm.core. An error may differ between ranks. Collective. */
static int start_choose_comm_cpu(struct run *r, struct error *e)
{
    const struct job_spec *s = r->spec;
    cpu_set_t before, one;

    r->comm_cpu = -1;
    if (traincomm_host_size(r->comm) == r->world || s->mode == JOB_MODE_EVAL || !s->comm.overlap ||
        s->comm.core == JOB_CORE_NONE)
        return 0;
    if (s->comm.core == JOB_CORE_AUTO)
        return start_find_spare_cpu(r, e);
    r->comm_cpu = (int)s->comm.core + traincomm_host_rank(r->comm);
    CPU_ZERO(&one);
    CPU_SET((size_t)r->comm_cpu, &one);
    sched_getaffinity(0, sizeof before, &before);
    if (sched_setaffinity(0, sizeof one, &one))
        return error_set(
            e, ERR_INVALID,
            "comm.core %lld: %s has no CPU %d that this job may use; \"auto\" selects a "
            "free one",
            (long long)s->comm.core, traincomm_host(r->comm, r->rank), r->comm_cpu);
    sched_setaffinity(0, sizeof before, &before);
    return 0;
}

static int start_load_init(struct run *r, struct error *e)
{
    char path[PATH_MAX], text[ERROR_TEXT_BYTES];
    struct safetensors *file;
    int status = weights_open(r->spec->model.init, path, &file, e);

    if (status)
        return status;
    const char *classifier = weights_new_classifier(r->spec, file, text);
    status = model_load_file(r->model, file, path, classifier, e);
    r->init_step = weights_step(file);
    snprintf(r->init_path, sizeof r->init_path, "%s", path);
    safetensors_close(file);
    if (status)
        return status;
    if (r->init_step)
        log_info("the weights are %s, saved at step %lld", path, (long long)r->init_step);
    else
        log_info("the weights are %s", path);
    if (classifier)
        log_info("%s", text);
    return 0;
}

static int start_fill_model(struct run *r, struct error *e)
{
    char path[PATH_MAX];
    int status = 0;

    stall_doing(r->stall, STALL_FILES);
    if (r->resumes) {
        file_path(path, NULL, "%s/model.safetensors", r->resumed_from);
        status = model_load(r->model, path, e);
    } else {
        model_init(r->model, r->spec->seed);
        if (r->spec->model.init)
            status = start_load_init(r, e);
    }
    stall_doing(r->stall, STALL_COMPUTE);
    return status;
}

/* Rank 0 measures for all ranks, or reads its cache. A resumed run keeps the algorithms of its
 * checkpoint, unless the job turns Winograd off. */
static int start_choose_convolutions(struct run *r, const struct model_config *config,
                                     struct error *e)
{
    const char *tiles = r->spec->model.winograd_tiles;
    char problem[256] = "";

    bool winograd = r->spec->model.winograd && r->spec->model.gemm != JOB_GEMM_OPENBLAS;

    if (r->resumes && winograd)
        r->tuning = r->from.tuning;
    else if (r->resumes && r->from.tuning.count)
        json_array_append_new(
            r->warnings,
            json_string("the checkpoint was computed with Winograd's convolutions, but "
                        "model.winograd is false or model.gemm is openblas: the result will not be "
                        "bit-identical to that of an uninterrupted run"));
    if (r->resumes || !winograd)
        return 0;
    if (tiles)
        return model_tuning_take(config, tiles, &r->tuning, e);
    if (r->rank == 0)
        model_tune(config, &r->tuning, problem);
    traincomm_broadcast(r->comm, &r->tuning, sizeof r->tuning, 0);
    if (problem[0])
        json_array_append_new(r->warnings,
                              json_sprintf("cannot cache which convolutions use Winograd's "
                                           "algorithm, so each start measures it again: %s",
                                           problem));
    return 0;
}

static int start_model(struct run *r, struct error *e)
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
        .frozen = arch_shape_of(s).frozen,
        .threads = r->threads,
        .bn_momentum = 1.0 - s->model.bn_decay,
        .blur_pool = s->model.blur_pool,
        .bn_init = s->model.bn_init,
        .zero_init_residual = s->model.zero_init_residual,
        .loss = s->loss,
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
        status = start_choose_convolutions(r, &config, e);
    if (!status)
        status = model_create(&config, &r->model, e);
    if (!status && r->rank == 0)
        status = start_fill_model(r, e);
    status = run_agree(r, status, e);
    if (status)
        return status;
    traincomm_broadcast(r->comm, model_params(r->model),
                        model_param_count(r->model) * sizeof(float), 0);
    traincomm_broadcast(r->comm, model_stats(r->model), model_stat_count(r->model) * sizeof(float),
                        0);
    traincomm_broadcast(r->comm, &r->init_step, sizeof r->init_step, 0);
    return 0;
}

int start_run(const struct start_options *options, struct traincomm *comm, struct run *r,
              struct error *e)
{
    memset(r, 0, sizeof *r);
    r->comm = comm;
    r->rank = traincomm_rank(comm);
    r->world = traincomm_size(comm);
    r->phase = "start";
    r->warnings = json_array();
    r->stall = options->stall;
    r->energy = options->energy;
    stall_doing(r->stall, STALL_FILES);
    int status = start_open_run_dir(r, options, e);
    if (!status)
        status = start_job(r, options->job_file, options->resume != NULL, e);
    if (!status)
        status = start_find_checkpoint(r, options->resume, e);
    stall_doing(r->stall, STALL_COMPUTE);
    if (status)
        return status;
    r->threads =
        start_threads(r->comm, (int)r->spec->cluster.threads_per_worker, r->spec->cluster.smt);
    r->measures_peak = options->measure_peak;
    status = run_agree(r, start_choose_comm_cpu(r, e), e);
    if (!status)
        status = start_model(r, e);
    if (status)
        return status;
    if (r->rank == 0 && r->spec->precision == JOB_PRECISION_BF16 && bf16_kind() == BF16_EMULATED)
        json_array_append_new(r->warnings, json_string("precision \"bf16\" is emulated: no faster "
                                                       "than fp32 on this processor"));
    status = binding_report(r, e);
    if (status)
        return status;
    /* Time to train starts just before the data is accessed first (MLPerf training rules). */
    traincomm_barrier(r->comm);
    status = run_agree(r, start_report_run(r, e), e);
    if (status)
        return status;
    r->phase = "data";
    stall_phase(r->stall, STALL_IN_DATA);
    stall_doing(r->stall, STALL_FILES);
    status = start_data(r, e);
    stall_doing(r->stall, STALL_COMPUTE);
    return status;
}
