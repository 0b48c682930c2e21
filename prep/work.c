#include "prep/work.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"

struct parallel {
    const struct parallel_work *work;
    void *context;
    int64_t items;
    _Atomic int64_t next;
    pthread_mutex_t lock; /* guards the members below */
    int64_t failed_item;  /* -1: none */
    struct error error;
};

int parallel_default_threads(void)
{
    cpu_set_t cores;
    int count = sched_getaffinity(0, sizeof cores, &cores) ? 1 : CPU_COUNT(&cores);
    return count < PARALLEL_THREADS_MAX ? count : PARALLEL_THREADS_MAX;
}

static void work_keep_error(struct parallel *p, int64_t item, const struct error *e)
{
    pthread_mutex_lock(&p->lock);
    if (p->failed_item < 0 || item < p->failed_item) {
        p->failed_item = item;
        p->error = *e;
    }
    pthread_mutex_unlock(&p->lock);
    atomic_store(&p->next, p->items);
}

static void *work_run_items(void *argument)
{
    struct parallel *p = argument;
    void *scratch = NULL;
    struct error e;
    int64_t i = 0;

    int rc = p->work->begin(p->context, &scratch, &e);
    while (rc == 0 && (i = atomic_fetch_add(&p->next, 1)) < p->items)
        rc = p->work->item(p->context, scratch, i, &e);
    if (rc)
        work_keep_error(p, i, &e);
    p->work->end(scratch);
    return NULL;
}

int parallel_run(int threads, int64_t items, const struct parallel_work *work, void *context,
                 struct error *e)
{
    struct parallel p = {.work = work, .context = context, .items = items, .failed_item = -1};
    pthread_t others[PARALLEL_THREADS_MAX];
    int started = 0;

    pthread_mutex_init(&p.lock, NULL);
    /* This thread works too. If the system refuses more threads, continue with fewer. */
    while (started + 1 < threads && started + 1 < items &&
           pthread_create(&others[started], NULL, work_run_items, &p) == 0)
        started++;
    work_run_items(&p);
    for (int i = 0; i < started; i++)
        pthread_join(others[i], NULL);
    pthread_mutex_destroy(&p.lock);
    if (p.failed_item < 0)
        return 0;
    *e = p.error;
    return -(int)e->code;
}

#define TERMINAL_SECONDS 0.1
#define PLAIN_SECONDS    10.0

void progress_begin(struct progress *p, const char *what, int64_t total_images, int64_t total_bytes)
{
    *p = (struct progress){.what = what,
                           .total_images = total_images,
                           .total_bytes = total_bytes,
                           .started = clock_monotonic(),
                           .terminal = isatty(STDERR_FILENO)};
    p->last = p->started;
    pthread_mutex_init(&p->lock, NULL);
}

double progress_seconds(const struct progress *p)
{
    return clock_monotonic() - p->started;
}

static void work_format_duration(double seconds, char out[32])
{
    int64_t s = (int64_t)(seconds + 0.5);
    if (s < 100)
        snprintf(out, 32, "%" PRId64 " s", s);
    else if (s < 6000)
        snprintf(out, 32, "%" PRId64 " min %02" PRId64 " s", s / 60, s % 60);
    else
        snprintf(out, 32, "%" PRId64 " h %02" PRId64 " min", s / 3600, s / 60 % 60);
}

static void work_print_line(const struct progress *p, bool last)
{
    double spent = progress_seconds(p);
    double share = p->total_images  ? (double)p->images / (double)p->total_images
                   : p->total_bytes ? (double)p->bytes / (double)p->total_bytes
                                    : 0;
    double per_sec = spent > 0 ? 1 / spent : 0;
    char count[96] = "", time[32];

    if (p->total_images)
        snprintf(count, sizeof count, "%" PRId64 " of %" PRId64 " images, %.0f images/s, ",
                 p->images, p->total_images, (double)p->images * per_sec);
    work_format_duration(last || share <= 0 ? spent : spent / share * (1 - share), time);
    fprintf(stderr, "%s%-8s %3d %%  %s%.1f MB/s, %s %s%s", p->terminal ? "\r" : "", p->what,
            (int)(100 * share), count, (double)p->bytes * 1e-6 * per_sec, time,
            last ? "in all" : "left", p->terminal ? "\033[K" : "\n");
    if (last && p->terminal)
        fputc('\n', stderr);
}

void progress_add(struct progress *p, int64_t images, int64_t bytes)
{
    double every = p->terminal ? TERMINAL_SECONDS : PLAIN_SECONDS;

    pthread_mutex_lock(&p->lock);
    p->images += images;
    p->bytes += bytes;
    double now = clock_monotonic();
    if (now - p->last >= every) {
        p->last = now;
        work_print_line(p, false);
    }
    pthread_mutex_unlock(&p->lock);
}

void progress_end(struct progress *p)
{
    if (p->terminal || p->last > p->started)
        work_print_line(p, true);
    pthread_mutex_destroy(&p->lock);
}

void progress_warn(const char *lines)
{
    for (size_t length; *lines; lines += length + (lines[length] == '\n')) {
        length = strcspn(lines, "\n");
        fprintf(stderr, "train-prep: warning: %.*s\n", (int)length, lines);
    }
}
