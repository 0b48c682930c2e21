#include "tests/simulate/world.h"

#include <string.h>

#define ROUNDS_OF_TROUBLE 60
#define ROUNDS_OF_CALM    900

void world_copy(char *to, size_t bytes, const char *from)
{
    size_t length = strlen(from) < bytes ? strlen(from) : bytes - 1;

    memmove(to, from, length);
    to[length] = '\0';
}

static void world_start_daemon(struct world *w)
{
    w->depth = 0;
    w->slots = SLOTS_MAX - chance_of(&w->chance, 3);
    world_trace(w, "the daemon is killed");
    shell_forget_all(w);
    shell_start(w);
}

static void world_round(struct world *w)
{
    w->now += w->chance.calm ? 2 : 1 + (double)chance_of(&w->chance, 4);
    nature_act(w);
    if (!w->chance.calm && chance_of(&w->chance, 8) == 1) { /* another user has used more */
        w->share[0] = (double)chance_of(&w->chance, 5) / 4;
        w->share[1] = 1 - w->share[0];
    }
    for (int id = 1; id <= w->job_count; id++) /* the node is as large as before */
        if (w->jobs[id].slots < w->jobs[id].wanted && chance_of(&w->chance, 4) == 1)
            w->slots = SLOTS_MAX;
    shell_start(w); /* one that could not take up a job has ended, and is started again */
    if (!w->chance.calm)
        users_act(w);
    shell_round(w);
    check_now(w);
}

static bool world_is_done(const struct world *w)
{
    for (int id = 1; id <= w->job_count; id++)
        if (!job_state_is_final(w->jobs[id].state))
            return false;
    for (int i = 1; i <= w->process_count; i++)
        if (nature_is_left(&w->processes[i]))
            return false;
    for (int i = 0; i < JOBS_MAX; i++)
        if (w->active[i].used)
            return false;
    return true;
}

bool world_run(struct world *w)
{
    volatile int rounds = 0;

    w->now = 1000;
    w->slurm_up = true;
    w->slots = SLOTS_MAX;
    w->caps =
        (struct queue_caps){.running = chance_of(&w->chance, 3),
                            .slots = chance_of(&w->chance, 2) ? 2 + chance_of(&w->chance, 2) : 0};
    w->fair = (struct queue_fair_share){.weight = 2.0 * (double)chance_of(&w->chance, 2)};
    w->may_kill = true;
    int jumped = setjmp(w->killed);
    if (jumped == 2) {
        shell_forget_all(w);
        return false;
    }
    if (jumped)
        world_start_daemon(w);
    for (; rounds < ROUNDS_OF_TROUBLE && !w->violated; rounds++)
        world_round(w);
    w->chance.calm = true;
    w->calm_at = w->now;
    for (int id = 1; id <= w->job_count; id++)
        w->jobs[id].held = false;
    w->may_kill = false;
    for (int i = 0; i < ROUNDS_OF_CALM && !w->violated && !world_is_done(w); i++)
        world_round(w);
    if (!w->violated)
        check_end(w);
    return !w->violated;
}
