#include "worker/save/result.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <sys/resource.h>

#include "common/json.h"
#include "common/system/file.h"
#include "worker/check/speed.h"
#include "worker/provenance/provenance.h"
#include "worker/watch/energy.h"

static int result_report_run_stop(struct run *r, const struct result *s, int64_t memory,
                                  struct error *e)
{
    report_begin(r->report, EVENT_RUN_STOP);
    report_text(r->report, "status", s->status);
    if (*s->reason)
        report_text(r->report, "reason", s->reason);
    report_int(r->report, "step", s->steps);
    report_real(r->report, "ttt_seconds", s->ttt_seconds);
    report_real(r->report, "images_per_sec", s->images_per_sec);
    report_real(r->report, "top1", s->evaluated ? s->evaluation.top1 : NAN);
    report_real(r->report, "top5", s->evaluated ? s->evaluation.top5 : NAN);
    if (s->has_target)
        report_flag(r->report, "target_reached", s->target_reached);
    report_int(r->report, "bad_images", s->bad_images);
    report_int(r->report, "memory_peak_bytes", memory);
    if (r->measures_peak) {
        report_real(r->report, "sgemm_gflops", r->sgemm_gflops);
        report_real(r->report, "stream_gb_per_sec", r->stream_gb_per_sec);
        report_real(r->report, "bytes_per_image", model_bytes_per_image(r->model));
    }
    return report_end(r->report, e);
}

static int result_write_file(const struct run *r, const struct result *s, struct error *e)
{
    char path[PATH_MAX];
    const struct evaluation *v = &s->evaluation;
    json_t *file = json_pack(
        "{s:s, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:I, s:o}", "status", s->status,
        "reason", json_text_or_null(s->reason), "steps", (json_int_t)s->steps, "ttt_seconds",
        json_number_or_null(s->ttt_seconds), "images_per_sec",
        json_number_or_null(s->images_per_sec), "top1",
        json_number_or_null(s->evaluated ? v->top1 : NAN), "top5",
        json_number_or_null(s->evaluated ? v->top5 : NAN), "eval_loss",
        json_number_or_null(s->evaluated ? v->loss : NAN), "eval_images", (json_int_t)v->images,
        "target_reached", s->has_target ? json_boolean(s->target_reached) : json_null(),
        "bad_images", (json_int_t)s->bad_images, "model", json_text_or_null(s->model));
    file_path(path, NULL, "%s/result.json", r->run_dir);
    int status = json_file_write(path, file, e);
    json_decref(file);
    return status;
}

static void result_print_summary(const struct run *r, const struct result *s)
{
    bool evaluates = r->spec->mode == JOB_MODE_EVAL;

    if (evaluates)
        printf("Finished: %s, evaluated the weights of step %lld", s->status, (long long)s->steps);
    else
        printf("Finished: %s after %lld steps", s->status, (long long)s->steps);
    if (isfinite(s->ttt_seconds))
        printf(", time to %s %.1f s", evaluates ? "evaluate" : "train", s->ttt_seconds);
    if (isfinite(s->images_per_sec))
        printf(", %.1f images/s", s->images_per_sec);
    if (s->evaluated)
        printf(", Top-1 accuracy = %.5g, Top-5 accuracy = %.5g, loss = %.7g", s->evaluation.top1,
               s->evaluation.top5, s->evaluation.loss);
    printf("%s%s\n", *s->reason ? "; " : "", s->reason);
    fflush(stdout);
}

static int64_t result_peak_memory(struct traincomm *comm)
{
    struct rusage usage = {0};

    getrusage(RUSAGE_SELF, &usage);
    double bytes = (double)usage.ru_maxrss * 1024; /* ru_maxrss is in KiB */
    traincomm_reduce(comm, TRAINCOMM_MAX, &bytes, 1);
    return (int64_t)bytes;
}

int result_write(struct run *r, const struct result *result, struct error *e)
{
    int64_t memory = result_peak_memory(r->comm);

    if (r->measures_peak) { /* at the end of the run, because OpenBLAS keeps 20 MB per thread that
                               called it */
        r->stream_gb_per_sec = speed_stream(r->comm, r->threads);
        r->sgemm_gflops = speed_sgemm_peak(r->comm, r->threads);
    }
    int status = energy_finish(r->energy, r->comm, r->report, result->steps, e);
    if (status || r->rank != 0)
        return status;
    provenance_end(r, result->status, result->steps);
    /* Write the file before the event: a reader of run_stop may expect it. */
    status = result_write_file(r, result, e);
    if (!status)
        status = result_report_run_stop(r, result, memory, e);
    if (!status)
        result_print_summary(r, result);
    return status;
}
