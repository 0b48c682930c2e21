#include "client/follow.h"

#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "client/cmd.h"
#include "common/clock.h"

void follow_sleep(double seconds)
{
    struct timespec pause = {.tv_sec = (time_t)seconds};

    pause.tv_nsec = (long)((seconds - (double)pause.tv_sec) * 1e9);
    nanosleep(&pause, NULL);
}

static void interrupted(int signal_number)
{
    static const char words[] = "\ntrainctl: interrupted; the job itself goes on\n";

    (void)signal_number;
    if (write(STDERR_FILENO, words, sizeof words - 1) < 0)
        _exit(1);
    _exit(130);
}

void follow_on_interrupt(void)
{
    struct sigaction action = {.sa_handler = interrupted};

    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
}

/* One message when the daemon goes, one when it is back: not one a poll. */
struct outage {
    bool answered; /* at least once */
    double since;  /* clock_monotonic; 0: it is there */
};

static int wait_out(struct outage *outage, const struct follow *follow, struct error *e)
{
    double now = clock_monotonic();

    if (e->code != ERR_UNREACHABLE || !outage->answered)
        return -(int)e->code;
    if (outage->since == 0) {
        outage->since = now;
        if (follow->lost)
            follow->lost(follow->context);
        fprintf(stderr, "trainctl: %s does not answer; the job goes on without it, trying again\n",
                client.server);
    }
    if (now - outage->since > FOLLOW_PATIENCE_SECONDS)
        return error_prefix(e, "gave up after %d s", FOLLOW_PATIENCE_SECONDS);
    return 0;
}

static void back_again(struct outage *outage)
{
    if (outage->since > 0)
        fprintf(stderr, "trainctl: %s is back\n", client.server);
    outage->since = 0;
    outage->answered = true;
}

int follow_job(const struct follow *follow, json_t **json, struct error *e)
{
    struct outage outage = {0};
    struct job job;

    for (;; follow_sleep(follow->interval_seconds)) {
        int code = job_fetch(follow->id, json, &job, e);
        if (code < 0) {
            code = wait_out(&outage, follow, e);
            if (code < 0)
                return code;
            continue;
        }
        back_again(&outage);
        if (follow->observe)
            follow->observe(follow->context, &job, *json);
        if (job_ended(&job))
            return job_outcome(&job);
        json_decref(*json);
        *json = NULL;
    }
}
