#include "worker/start/start.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/run/attempt.h"
#include "common/system/file.h"
#include "worker/kernels/bf16/bf16.h"
#include "worker/kernels/gemm.h"
#include "worker/kernels/kind.h"
#include "worker/save/resume.h"
#include "worker/start/start_parts.h"
#include "worker/threads.h"
#include "worker/watch/binding_report.h"
#include "worker/watch/stall.h"

/* The event log is opened first, so that whatever fails afterwards is in it. */
static int start_open_run_dir(struct run *r, const struct start_options *options, struct error *e)
{
    char path[PATH_MAX];
    int status = 0;

    if (!realpath(options->run_dir, r->run_dir))
        snprintf(r->run_dir, sizeof r->run_dir, "%s", options->run_dir);
    if ((size_t)snprintf(r->attempt_dir, sizeof r->attempt_dir, "%s/attempt-%d", r->run_dir,
                         options->attempt) >= sizeof r->attempt_dir ||
        (size_t)snprintf(path, sizeof path, "%s/events.jsonl", r->attempt_dir) >= sizeof path)
        status = error_set(e, ERR_USAGE, "the path %s is too long", options->run_dir);
    if (!status && r->rank == 0)
        status = file_make_dirs(r->attempt_dir, e);
    /* The signal that goes with it may have come when mpirun had no ranks yet to hand it to. */
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
            error_set(e, ERR_USAGE, "--resume is for mode train; mode eval has nothing to resume");
    else if (r->rank == 0)
        status = resume_find(r->run_dir, from, r->spec, r->resumed_from, &r->from, r->warnings, e);
    status = run_agree(r, status, e);
    if (status)
        return status;
    traincomm_broadcast(r->comm, r->resumed_from, sizeof r->resumed_from, 0);
    traincomm_broadcast(r->comm, &r->from, sizeof r->from, 0);
    r->resumes = r->resumed_from[0] != '\0';
    return 0;
}

static int start_say_run(struct run *r, struct error *e)
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
    report_text(r->report, "kernels", kernels_kind());
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
        threads_of_rank(r->comm, (int)r->spec->cluster.threads_per_worker, r->spec->cluster.smt);
    r->measures_peak = options->measure_peak;
    status = run_agree(r, threads_choose_cpu(r, e), e);
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
    /* Time to train counts from just before the first touch of the data (MLPerf training rules). */
    traincomm_barrier(r->comm);
    status = run_agree(r, start_say_run(r, e), e);
    if (status)
        return status;
    r->phase = "data";
    stall_phase(r->stall, STALL_IN_DATA);
    stall_doing(r->stall, STALL_FILES);
    status = start_data(r, e);
    stall_doing(r->stall, STALL_COMPUTE);
    return status;
}
