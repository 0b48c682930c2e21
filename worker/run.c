#include "worker/run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/job/job_document.h"
#include "common/log.h"
#include "worker/watch/stall.h"

static volatile sig_atomic_t stop_requested;

void run_request_stop(void)
{
    stop_requested = 1;
}

static void run_on_stop_signal(int signal_number)
{
    (void)signal_number;
    run_request_stop();
}

void run_catch_signals(void)
{
    struct sigaction action = {.sa_handler = run_on_stop_signal, .sa_flags = SA_RESTART};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
}

bool run_stop_requested(void)
{
    return stop_requested != 0;
}

int run_agree_on_stop(struct run *r, int status, bool *stop, struct error *e)
{
    struct traincomm_failure failure = {.code = -status};

    if (status)
        snprintf(failure.text, sizeof failure.text, "%s", e->text);
    int code = traincomm_agree(r->comm, stop, &failure);
    if (!code)
        return 0;
    r->failed_at.rank = failure.rank;
    memcpy(r->failed_at.host, failure.host, sizeof failure.host);
    return error_set(e, (enum error_code)code, "%s", failure.text);
}

int run_agree(struct run *r, int status, struct error *e)
{
    return run_agree_on_stop(r, status, NULL, e);
}

int run_warn(struct run *r, int64_t step, const char *message, struct error *e)
{
    if (r->rank == 0)
        log_warning("%s", message);
    report_begin(r->report, EVENT_WARNING);
    report_int(r->report, "step", step);
    report_text(r->report, "message", message);
    return report_end(r->report, e);
}

double run_epoch(const struct run *r, int64_t step)
{
    double images = r->plan->exact ? (double)r->image_shift : 0;
    const struct plan_phase *p = plan_phase_at(r->plan, step + r->step_shift);

    return p->epoch +
           ((double)(step + r->step_shift - p->step) + images / (double)p->global_batch) /
               p->steps_in_epoch;
}

int64_t run_images(const struct run *r, int64_t from, int64_t to)
{
    return plan_images_of_steps(r->plan, from + r->step_shift, to + r->step_shift);
}

void run_report_failure(struct run *r, const struct error *e)
{
    struct error ignored;

    if (r->rank != 0)
        return;
    /* What all ranks came upon together, as a divergence, has no place: rank 0 tells it. */
    const char *host = *r->failed_at.host ? r->failed_at.host : traincomm_host(r->comm, 0);
    log_error("%s (rank %d on %s, phase %s)", e->text, r->failed_at.rank, host, r->phase);
    if (!r->report)
        return;
    report_begin(r->report, EVENT_FAILED);
    report_int(r->report, "rank", r->failed_at.rank);
    report_text(r->report, "host", host);
    report_text(r->report, "phase", r->phase);
    report_text(r->report, "signal", NULL);
    report_text(r->report, "reason", e->text);
    report_end(r->report, &ignored);
}

void run_destroy(struct run *r)
{
    stall_report_to(r->stall, NULL);
    dataset_close(r->train_data);
    dataset_close(r->eval_data);
    model_destroy(r->model);
    plan_destroy(r->plan);
    job_spec_destroy(r->spec);
    report_destroy(r->report);
    json_decref(r->warnings);
    free(r->classes);
    json_decref(r->binding);
    json_decref(r->kernel_kinds);
    json_decref(r->provenance);
}
