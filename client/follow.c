#include "client/follow.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/cmd.h"
#include "client/stream.h"
#include "common/clock.h"

static char words[160];

void follow_interrupted(void)
{
    if (write(STDERR_FILENO, words, strlen(words)) < 0)
        _exit(1);
}

static void follow_on_signal(int signal_number)
{
    (void)signal_number;
    if (write(STDERR_FILENO, "\n", 1) < 0)
        _exit(1);
    follow_interrupted();
    _exit(130);
}

void follow_keep_job(const struct job *job)
{
    bool queued = strcmp(job->state, "queued") == 0;

    snprintf(words, sizeof words, "Job %ld %s. %s it with: trainctl cancel %ld\n", job->id,
             queued ? "stays in the queue" : "keeps running", queued ? "Cancel" : "Stop", job->id);
}

void follow_on_interrupt(void)
{
    struct sigaction action = {.sa_handler = follow_on_signal};

    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
}

struct following {
    const struct follow *follow;
    struct job job;
    json_t *json;
    bool unread; /* the state has changed, but reading the job failed */
    bool news;
    double shown; /* time of the last display (clock_monotonic) */
};

static void follow_show(struct following *f)
{
    if (f->follow->observe)
        f->follow->observe(f->follow->context, &f->job);
    f->news = false;
    f->shown = clock_monotonic();
}

static double follow_until_shown(const struct following *f)
{
    double left = f->shown + f->follow->interval_seconds - clock_monotonic();

    return !f->news ? -1 : left > 0 ? left : 0;
}

static int follow_read_job(struct following *f, struct error *e)
{
    json_t *before = f->json;

    f->json = NULL;
    int status = job_fetch(f->follow->id, &f->json, &f->job, e);
    if (status) {
        f->json = before;
        return status;
    }
    json_decref(before);
    follow_keep_job(&f->job);
    follow_show(f);
    return 0;
}

/* If the daemon disappears between the event and the request, the stream reconnects and the job is
 * read then. */
static int follow_handle(struct following *f, int news, const struct stream_event *event,
                         struct error *e)
{
    bool state = news == STREAM_EVENT && strcmp(event->type, "state") == 0;
    bool answers = news == STREAM_EVENT || news == STREAM_ALIVE || news == STREAM_BACK;

    stream_report(news, "the job continues; ");
    if (state || news == STREAM_BACK || (f->unread && answers)) {
        int status = follow_read_job(f, e);
        f->unread = status == -(int)ERR_UNREACHABLE;
        return f->unread ? 0 : status;
    }
    if (news == STREAM_EVENT)
        job_take_event(&f->job, event->type, event->body);
    f->news = f->news || news == STREAM_EVENT || news == STREAM_ALIVE;
    if (f->news && follow_until_shown(f) == 0)
        follow_show(f);
    return 0;
}

static int follow_stream(struct following *f, struct error *e)
{
    struct stream_event event;
    long long newest;
    char path[64];
    int status = stream_newest(&newest, e);

    if (status)
        return status;
    snprintf(path, sizeof path, "/v1/jobs/%ld/events", f->follow->id);
    struct stream *stream = stream_create(path, newest);
    status = follow_read_job(f, e); /* the job may have ended before the stream began */
    while (status == 0 && !job_ended(&f->job)) {
        int news = stream_next(stream, -1, follow_until_shown(f), &event, e);
        status = news < 0 ? news : follow_handle(f, news, &event, e);
    }
    stream_destroy(stream);
    return status;
}

int follow_job(const struct follow *follow, json_t **json, struct error *e)
{
    struct following f = {.follow = follow};

    follow_on_interrupt();
    int status = follow_read_job(&f, e);

    if (status == 0 && !job_ended(&f.job))
        status = follow_stream(&f, e);
    *json = f.json;
    if (status == 0)
        return job_outcome(&f.job);
    json_decref(f.json);
    *json = NULL;
    return status;
}
