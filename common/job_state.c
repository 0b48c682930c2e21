#include "common/job_state.h"

#include <string.h>

#define TO(state) (1u << (state))

static const struct {
    const char *name;
    bool active;
    unsigned next; /* the states it leads to */
} states[JOB_STATE_COUNT] = {
    [JOB_QUEUED] = {"queued",     false, TO(JOB_STARTING) | TO(JOB_FAILED) | TO(JOB_CANCELLED) },
 /* back to queued: the daemon was killed before the launcher ran */
    [JOB_STARTING] = {"starting",   true,
                    TO(JOB_QUEUED) | TO(JOB_RUNNING) | TO(JOB_EVALUATING) | TO(JOB_FAILED) |
                          TO(JOB_CANCELLED)                                                    },
    [JOB_RUNNING] = {"running",    true,
                    TO(JOB_EVALUATING) | TO(JOB_SUCCEEDED) | TO(JOB_FAILED) | TO(JOB_CANCELLED)},
    [JOB_EVALUATING] = {"evaluating", true,
                    TO(JOB_RUNNING) | TO(JOB_SUCCEEDED) | TO(JOB_FAILED) | TO(JOB_CANCELLED)   },
    [JOB_SUCCEEDED] = {"succeeded",  false, 0                                                     },
    [JOB_FAILED] = {"failed",     false, 0                                                     },
    [JOB_CANCELLED] = {"cancelled",  false, 0                                                     },
};

const char *job_state_name(enum job_state state)
{
    return (unsigned)state < JOB_STATE_COUNT ? states[state].name : "unknown";
}

enum job_state job_state_of(const char *name)
{
    for (int i = 0; name && i < JOB_STATE_COUNT; i++)
        if (strcmp(states[i].name, name) == 0)
            return (enum job_state)i;
    return JOB_STATE_COUNT;
}

bool job_state_leads_to(enum job_state from, enum job_state to)
{
    return (unsigned)from < JOB_STATE_COUNT && (unsigned)to < JOB_STATE_COUNT &&
           (states[from].next & TO(to));
}

bool job_state_is_final(enum job_state state)
{
    return (unsigned)state < JOB_STATE_COUNT && states[state].next == 0;
}

bool job_state_is_active(enum job_state state)
{
    return (unsigned)state < JOB_STATE_COUNT && states[state].active;
}
