#include "daemon/job/job_slurm_verdict.h"

#include <stdio.h>
#include <string.h>

#include "daemon/launch/slurm_reply.h"

static bool slurm_is_state(const struct slurm_end *end, const char *state)
{
    return strcmp(end->slurm->state, state) == 0;
}

/* Its time was over: goes on where there is something to go on from. */
static void slurm_judge_time(const struct slurm_end *end, struct verdict *v)
{
    v->state = JOB_FAILED;
    v->goes_on = v->checkpoint > 0;
    v->own_fault = !v->goes_on;
    if (v->goes_on)
        snprintf(v->reason, sizeof v->reason,
                 "the time of Slurm's job %lld was over after step %lld",
                 (long long)end->slurm->job_id, (long long)v->step);
    else
        snprintf(
            v->reason, sizeof v->reason,
            "Slurm job %lld reached its time limit before it had written a checkpoint: increase "
            "cluster.time_limit, or write checkpoints more often (checkpoint.every_steps)",
            (long long)end->slurm->job_id);
}

static void slurm_judge_state(const struct slurm_end *end, const char *words, struct verdict *v)
{
    char before[FAILURE_TEXT_BYTES];
    bool blames_rank = v->state == JOB_FAILED && v->who.rank >= 0;

    snprintf(before, sizeof before, "%s", v->reason);
    snprintf(v->reason, sizeof v->reason, "Slurm ended its job %lld on %s: %s [%s]",
             (long long)end->slurm->job_id, *end->slurm->nodes ? end->slurm->nodes : "its nodes",
             words, end->slurm->state);
    if (v->step > 0)
        snprintf(v->reason + strlen(v->reason), sizeof v->reason - strlen(v->reason),
                 "; the last step was %lld", (long long)v->step);
    if (blames_rank)
        snprintf(v->reason + strlen(v->reason), sizeof v->reason - strlen(v->reason), "; %s",
                 before);
    v->outside = slurm_is_state(end, "NODE_FAIL") || slurm_is_state(end, "BOOT_FAIL") ||
                 slurm_is_state(end, "PREEMPTED");
    v->state = slurm_is_state(end, "CANCELLED") || slurm_is_state(end, "REVOKED") ? JOB_CANCELLED
                                                                                  : JOB_FAILED;
}

/* Slurm says that a node failed, and it can be only this one. */
static void slurm_blame_node(const struct slurm_end *end, struct verdict *v)
{
    bool one = *end->slurm->nodes && !strpbrk(end->slurm->nodes, "[],");
    bool blamed = slurm_is_state(end, "NODE_FAIL") || slurm_is_state(end, "BOOT_FAIL") ||
                  strcmp(end->slurm->reason, "JobLaunchFailure") == 0;

    if (one && blamed)
        snprintf(v->bad_node, sizeof v->bad_node, "%.127s", end->slurm->nodes);
}

/* The exit code is slurmstepd's, as where its folder had vanished, and not mpirun's. */
static void slurm_judge_unbegun(const struct slurm_end *end, struct verdict *v)
{
    snprintf(v->reason, sizeof v->reason,
             "Slurm's job %lld ended on %s before its script had begun [%s]; see "
             "attempt-%lld/slurm.log",
             (long long)end->slurm->job_id, *end->slurm->nodes ? end->slurm->nodes : "its nodes",
             end->slurm->state, (long long)end->attempt);
    v->outside = true;
}

/* The workers said nothing at all. */
static void slurm_judge_silence(const struct slurm_end *end, struct verdict *v)
{
    v->state = JOB_FAILED;
    snprintf(v->reason, sizeof v->reason,
             "Slurm's job %lld ended [%s%s%s] before a worker reported anything; see "
             "attempt-%lld/slurm.log",
             (long long)end->slurm->job_id, end->slurm->state,
             strcmp(end->slurm->reason, "None") ? ", " : "",
             strcmp(end->slurm->reason, "None") ? end->slurm->reason : "", (long long)end->attempt);
    v->outside =
        end->slurm->phase == SLURM_GONE || strcmp(end->slurm->reason, "JobLaunchFailure") == 0;
}

void slurm_verdict(const struct slurm_end *end, struct verdict *v)
{
    const char *words = slurm_state_words(end->slurm->state);
    bool stopped = v->state == JOB_CANCELLED;

    if (v->state == JOB_SUCCEEDED ||
        (end->why == FAILURE_CANCELLED && end->slurm->phase != SLURM_REFUSED))
        return;
    if (end->slurm->phase == SLURM_REFUSED) {
        v->state = end->why == FAILURE_CANCELLED ? JOB_CANCELLED : JOB_FAILED;
        v->own_fault = true;
        snprintf(v->reason, sizeof v->reason, "Slurm rejected the job: %.480s", end->slurm->words);
    } else if (slurm_is_state(end, "PREEMPTED") || slurm_is_state(end, "NODE_FAIL") ||
               (slurm_is_state(end, "CANCELLED") && end->why == FAILURE_NOT_STOPPED)) {
        slurm_judge_state(end, words, v);
    } else if (end->why == FAILURE_TIME_LIMIT || slurm_is_state(end, "TIMEOUT") ||
               slurm_is_state(end, "DEADLINE") || (stopped && end->signalled)) {
        slurm_judge_time(end, v);
    } else if (words) {
        slurm_judge_state(end, words, v);
    } else if (v->state == JOB_QUEUED) {
        slurm_judge_silence(end, v);
    } else if (v->state == JOB_FAILED && v->step == 0 && v->who.rank < 0 && !end->begun &&
               slurm_is_state(end, "FAILED")) {
        slurm_judge_unbegun(end, v);
    }
    slurm_blame_node(end, v);
}

void slurm_verdict_put_back(const struct slurm_end *end, struct verdict *v)
{
    if (v->state == JOB_SUCCEEDED || end->why == FAILURE_STALLED)
        return;
    v->state = JOB_FAILED;
    v->outside = true;
    v->own_fault = false;
    v->goes_on = !end->begun; /* nothing had begun: no restart is used up */
    int used = snprintf(v->reason, sizeof v->reason, "Slurm put its job %lld back into the queue",
                        (long long)end->slurm->job_id);
    bool refused = end->refused && !v->step;
    const char *cause = refused      ? ", as its prolog drained "
                        : end->begun ? " (requeued, preempted, or a node failed)"
                                     : " before its script had begun (requeued, or a node or its "
                                       "prolog failed)";
    used += snprintf(v->reason + used, sizeof v->reason - (size_t)used, "%s%.400s", cause,
                     refused ? end->refused : "");
    if (v->step)
        snprintf(v->reason + used, sizeof v->reason - (size_t)used, " after step %lld",
                 (long long)v->step);
}
