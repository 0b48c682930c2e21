#include "worker/run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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
    /* A failure common to all ranks, such as divergence, has no site: report rank 0. */
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
    free(r->class_weights);
    plan_destroy(r->plan);
    job_spec_destroy(r->spec);
    report_destroy(r->report);
    json_decref(r->warnings);
    free(r->classes);
    json_decref(r->binding);
    json_decref(r->kernel_kinds);
    json_decref(r->provenance);
}

void run_average(struct run *r, float *numbers, size_t count)
{
    enum { BLOCK = 1024 };
    double sums[BLOCK];

    if (r->world == 1)
        return;
    for (size_t from = 0; from < count; from += BLOCK) {
        size_t n = count - from < BLOCK ? count - from : BLOCK;
        for (size_t i = 0; i < n; i++)
            sums[i] = numbers[from + i];
        traincomm_reduce(r->comm, TRAINCOMM_SUM, sums, n);
        for (size_t i = 0; i < n; i++)
            numbers[from + i] = (float)(sums[i] / r->world);
    }
}

/* large for one allocation of a library, small for a training machine */
#define PROBE_BYTES ((size_t)16 << 20)

static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
#define CRASHES (sizeof crashes / sizeof crashes[0])

static struct sigaction before[CRASHES];
static char memory_text[256]; /* formatted while there is memory */
static char stack[16384] __attribute__((aligned(16)));

static void run_report_lack_of_memory(void)
{
    void *probe =
        mmap(NULL, PROBE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (probe != MAP_FAILED)
        munmap(probe, PROBE_BYTES);
    else if (errno == ENOMEM && write(STDERR_FILENO, memory_text, strlen(memory_text)) < 0)
        return; /* no other place to report it */
}

static void run_on_crash(int number)
{
    run_report_lack_of_memory();
    for (size_t i = 0; i < CRASHES; i++)
        if (crashes[i] == number)
            sigaction(number, &before[i], NULL);
    raise(number); /* runs the previous handler once this one returns */
}

static void run_on_mpi_error(void *context, const char *error)
{
    (void)context;
    log_error("MPI ended the run: %s", error);
    run_report_lack_of_memory();
}

void run_report_crashes(struct traincomm *comm)
{
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = run_on_crash, .sa_flags = SA_ONSTACK};

    snprintf(
        memory_text, sizeof memory_text,
        "error: rank %d on %s: Cannot allocate memory: there was no room for %zu MiB more when "
        "it ended\n",
        traincomm_rank(comm), traincomm_host(comm, traincomm_rank(comm)), PROBE_BYTES >> 20);
    sigaltstack(&other, NULL); /* works even if the stack could not grow */
    for (size_t i = 0; i < CRASHES; i++)
        sigaction(crashes[i], &action, &before[i]);
    traincomm_on_error(comm, run_on_mpi_error, NULL);
}
