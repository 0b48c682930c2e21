#include "common/job/job_state.h"

#include <string.h>

#define TO(state) (1u << (state))

static const struct {
    const char *name;
    bool active, final;
    unsigned next; /* bit mask of the states that may follow */
} states[JOB_STATE_COUNT] = {
    [JOB_QUEUED] = {"queued",     false, false, TO(JOB_STARTING) | TO(JOB_FAILED) | TO(JOB_CANCELLED)},
 /* Back to queued: the daemon was killed before the launcher ran, or an automatic restart. */
    [JOB_STARTING] = {"starting",   true,  false,
                    TO(JOB_QUEUED) | TO(JOB_RUNNING) | TO(JOB_EVALUATING) | TO(JOB_FAILED) |
                          TO(JOB_CANCELLED)                                                          },
    [JOB_RUNNING] = {"running",    true,  false,
                    TO(JOB_QUEUED) | TO(JOB_EVALUATING) | TO(JOB_SUCCEEDED) | TO(JOB_FAILED) |
                         TO(JOB_CANCELLED)                                                           },
    [JOB_EVALUATING] = {"evaluating", true,  false,
                    TO(JOB_QUEUED) | TO(JOB_RUNNING) | TO(JOB_SUCCEEDED) | TO(JOB_FAILED) |
                            TO(JOB_CANCELLED)                                                        },
    [JOB_SUCCEEDED] = {"succeeded",  false, true,  0                                                    },
 /* Back to queued: resumed on request. */
    [JOB_FAILED] = {"failed",     false, true,  TO(JOB_QUEUED)                                       },
    [JOB_CANCELLED] = {"cancelled",  false, true,  TO(JOB_QUEUED)                                       },
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
    return (unsigned)state < JOB_STATE_COUNT && states[state].final;
}

bool job_state_is_active(enum job_state state)
{
    return (unsigned)state < JOB_STATE_COUNT && states[state].active;
}
