#include "daemon/launch/slurm_reply.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/xalloc.h"

/* Reads 12, or {"set": true, "infinite": false, "number": 12}. */
static bool slurm_reply_number(const json_t *job, const char *key, double *number)
{
    const json_t *value = json_object_get(job, key);

    if (json_is_object(value)) {
        if (json_is_false(json_object_get(value, "set")) ||
            json_is_true(json_object_get(value, "infinite")))
            return false;
        value = json_object_get(value, "number");
    }
    if (!json_is_number(value))
        return false;
    *number = json_number_value(value);
    return true;
}

/* Also returns fallback for numbers too large for any count or time. */
static int64_t slurm_reply_integer(const json_t *job, const char *key, int64_t fallback)
{
    double number;
    return slurm_reply_number(job, key, &number) && fabs(number) < 0x1p53 ? (int64_t)number
                                                                          : fallback;
}

static void slurm_reply_read_state(const json_t *job, struct slurm_reply *r)
{
    const json_t *state = json_object_get(job, "job_state"), *word;
    size_t i;

    r->state = json_is_string(state) ? json_string_value(state) : "";
    json_array_foreach (state, i, word) {
        const char *text = json_string_value(word);
        if (text && strcmp(text, "COMPLETING") == 0)
            r->completing = true;
        else if (text && !*r->state)
            r->state = text;
    }
    if (strcmp(r->state, "COMPLETING") == 0)
        r->completing = true;
}

static void slurm_reply_read_exit(const json_t *job, struct slurm_reply *r)
{
    const json_t *exit_code = json_object_get(job, "exit_code");

    r->exit_code = r->exit_signal = -1;
    if (json_is_object(exit_code)) {
        r->exit_code = slurm_reply_integer(exit_code, "return_code", -1);
        r->exit_signal = slurm_reply_integer(json_object_get(exit_code, "signal"), "signal_id", -1);
        r->exit_signal = r->exit_signal == 0 ? -1 : r->exit_signal;
    } else if (json_is_integer(exit_code)) {
        int64_t status = json_integer_value(exit_code);
        if (status & 127)
            r->exit_signal = status & 127;
        else
            r->exit_code = status >> 8;
    }
}

bool slurm_reply_read(const json_t *job, struct slurm_reply *r)
{
    double minutes;

    *r = (struct slurm_reply){
        .id = slurm_reply_integer(job, "job_id", 0),
        .name = json_get_text(job, "name", ""),
        .reason = json_get_text(job, "state_reason", ""),
        .partition = json_get_text(job, "partition", ""),
        .nodes = json_get_text(job, "nodes", ""),
        .restarts = slurm_reply_integer(job, "restart_cnt", 0),
        .priority = slurm_reply_integer(job, "priority", 0),
        .start = (double)slurm_reply_integer(job, "start_time", 0),
        .limit_seconds = slurm_reply_number(job, "time_limit", &minutes) ? 60 * minutes : NAN,
    };
    slurm_reply_read_state(job, r);
    slurm_reply_read_exit(job, r);
    return r->id > 0 && *r->state;
}

int64_t slurm_reply_ahead(const json_t *jobs, const struct slurm_reply *r)
{
    const json_t *job;
    int64_t ahead = 0;
    size_t i;

    json_array_foreach (jobs, i, job) {
        struct slurm_reply other;
        if (!slurm_reply_read(job, &other) || other.id == r->id ||
            strcmp(other.state, "PENDING") != 0 || strcmp(other.partition, r->partition) != 0)
            continue;
        ahead +=
            other.priority > r->priority || (other.priority == r->priority && other.id < r->id);
    }
    return ahead;
}

/* Reason codes from squeue(1) and src/common/slurm_protocol_defs.c. */
static const struct {
    const char *code, *words;
} reasons[] = {
    {"Priority",                        "waiting for priority"                                    },
    {"Resources",                       "waiting for nodes that are in use: it is next"           },
    {"Dependency",                      "waiting for another job to end"                          },
    {"DependencyNeverSatisfied",        "will never start: a job it depends on has failed"        },
    {"BeginTime",                       "waiting for its begin time"                              },
    {"JobHeldUser",                     "held: release it with scontrol release"                  },
    {"JobHeldAdmin",                    "held by an administrator"                                },
    {"JobHoldMaxRequeue",               "held: it was requeued too often"                         },
    {"launch_failed_requeued_held",     "held: a node's prolog failed; release it with "
                                    "it go"                    },
    {"ReqNodeNotAvail",                 "waiting for nodes that are down or reserved"             },
    {"Nodes_required_for_job_are_DOWN", "waiting for nodes that are down, drained or reserved"    },
    {"NodeDown",                        "waiting for nodes that are down"                         },
    {"PartitionDown",                   "waiting for a partition that is down"                    },
    {"PartitionInactive",               "waiting for a partition that is inactive"                },
    {"PartitionNodeLimit",              "requests more nodes than the partition has or allows"    },
    {"PartitionTimeLimit",              "requests more time than the partition allows"            },
    {"PartitionConfig",                 "requests nodes that the partition does not have"         },
    {"BadConstraints",                  "requests a feature that no node has (cluster.constraint)"},
    {"Reservation",                     "waiting for its reservation"                             },
    {"Licenses",                        "waiting for licenses"                                    },
    {"Cleaning",                        "waiting until the previous attempt has been cleaned up"  },
    {"Prolog",                          "its nodes are being prepared (prolog)"                   },
    {"AssocGrpCpuLimit",                "waiting for its account's limit of cores"                },
    {"AssocGrpNodeLimit",               "waiting for its account's limit of nodes"                },
    {"AssocGrpJobsLimit",               "waiting for its account's limit of jobs"                 },
    {"AssocMaxJobsLimit",               "waiting for its account's limit of jobs"                 },
    {"QOSMaxJobsPerUserLimit",          "waiting for its quality of service's limit of jobs"      },
    {"QOSMaxNodePerUserLimit",          "waiting for its quality of service's limit of nodes"     },
    {"QOSMaxCpuPerUserLimit",           "waiting for its quality of service's limit of cores"     },
    {"QOSGrpNodeLimit",                 "waiting for its quality of service's limit of nodes"     },
    {"InvalidAccount",                  "uses an account that is not permitted (cluster.account)" },
    {"InvalidQOS",                      "uses a quality of service that is not permitted"         },
};

static const char *slurm_reply_reason(const char *code)
{
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (strncmp(code, reasons[i].code, strlen(reasons[i].code)) == 0 &&
            (code[strlen(reasons[i].code)] == '\0' || code[strlen(reasons[i].code)] == ',' ||
             code[strlen(reasons[i].code)] == '_'))
            return reasons[i].words;
    if (strncmp(code, "Assoc", 5) == 0)
        return "waiting for a limit of its account";
    if (strncmp(code, "QOS", 3) == 0)
        return "waiting for a limit of its quality of service";
    return "waiting in Slurm's queue";
}

void slurm_reply_waiting(const struct slurm_reply *r, int64_t ahead, char *text, size_t bytes)
{
    if (!*r->reason || strcmp(r->reason, "None") == 0)
        snprintf(text, bytes, "waiting for Slurm to consider it");
    else if (strcmp(r->reason, "Priority") == 0)
        snprintf(text, bytes, "waiting for priority: %lld %s ahead [Priority]", (long long)ahead,
                 ahead == 1 ? "job" : "jobs");
    else
        snprintf(text, bytes, "%s [%s]", slurm_reply_reason(r->reason), r->reason);
}

const char *slurm_state_words(const char *state)
{
    static const struct {
        const char *state, *words;
    } table[] = {
        {"NODE_FAIL",     "one of its nodes failed"                 },
        {"BOOT_FAIL",     "one of its nodes could not be started"   },
        {"PREEMPTED",     "it was preempted by another job"         },
        {"TIMEOUT",       "it reached its time limit"               },
        {"DEADLINE",      "it missed its deadline"                  },
        {"OUT_OF_MEMORY", "it exceeded its memory limit"            },
        {"CANCELLED",     "it was cancelled in Slurm, not by traind"},
        {"REVOKED",       "Slurm revoked it"                        },
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(table[i].state, state) == 0)
            return table[i].words;
    return NULL;
}

/* Joules of the steps of a job; 0: unknown. */
struct slurm_energy_steps {
    double external, batch, numbered; /* numbered: the largest one */
};

/* Slurm prints NO_VAL and INFINITE, with 32 or 64 bits, for unknown values. */
static double slurm_energy_number(const char *text)
{
    char *end;
    uint64_t value = strtoumax(text, &end, 10);
    bool unknown = value == UINT32_MAX || value == UINT32_MAX - 1 || value >= UINT64_MAX - 1;

    return end == text || *text == '-' || *end || unknown ? 0 : (double)value;
}

static void slurm_energy_take_step(char *line, struct slurm_energy_steps *steps)
{
    char *number = strrchr(line, '|'), *step = strchr(line, '.');

    if (!number || !step || step > number)
        return;
    *number++ = '\0';
    step++;
    step[strcspn(step, "|")] = '\0';
    double joules = slurm_energy_number(number);
    double *place = strcmp(step, "extern") == 0                           ? &steps->external
                    : strcmp(step, "batch") == 0                          ? &steps->batch
                    : strspn(step, "0123456789") == strlen(step) && *step ? &steps->numbered
                                                                          : NULL;
    if (place)
        *place = fmax(*place, joules);
}

static double slurm_energy_of_all(const struct slurm_energy_steps *s, bool srun, long nodes)
{
    if (s->external > 0)
        return s->external;
    if (srun)
        return s->numbered > 0 ? s->numbered : NAN;
    if (s->batch > 0 && (nodes == 1 || s->numbered > 0))
        return s->batch + (nodes > 1 ? s->numbered : 0);
    return NAN;
}

double slurm_energy_read(const char *text)
{
    struct slurm_energy_steps steps = {0};
    char *copy = xstrdup(text), *rest = copy, *line, how[16] = "";
    long nodes = 0;

    while ((line = strsep(&rest, "\n")))
        if (line == copy)
            sscanf(line, "%15s %9ld", how, &nodes);
        else
            slurm_energy_take_step(line, &steps);
    bool srun = strcmp(how, "srun") == 0;
    bool told = nodes > 0 && (srun || strcmp(how, "mpirun") == 0);
    free(copy);
    return told ? slurm_energy_of_all(&steps, srun, nodes) : NAN;
}
