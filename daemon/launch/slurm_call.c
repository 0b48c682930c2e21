#include "daemon/launch/slurm_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/system/spawn.h"
#include "common/xalloc.h"
#include "launch/command.h"
#include "launch/launch.h"

#define CALL_SECONDS   45.0 /* Slurm's clients retry and give up after MessageTimeout, 10 s */
#define ANSWER_BYTES   ((size_t)256 << 20)
#define COMPLAIN_BYTES 1024

bool slurm_call_is_unclear(const char *words)
{
    static const char *const signs[] = {
        "Unable to contact",
        "Socket timed out",
        "timed out",
        "connect failure",
        "Connection refused",
        "Zero Bytes",
        "Communication connect",
        "Transport endpoint",
        "Protocol authentication",
        "Invalid authentication",
        "Unexpected message",
        "backup controller",
        "in standby mode",
        "munge",
        "Resource temporarily unavailable",
        "temporarily unable",
        "fetch_config",
        "slurm_receive",
    };
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
        if (strcasestr(words, signs[i]))
            return true;
    return false;
}

/* Excludes variables of another job and those that set options of the commands. */
static char **slurm_call_environment(void)
{
    static const char *const prefixes[] = {
        "SLURM_", "SBATCH_",    "SQUEUE_",        "SCANCEL_", "SRUN_",
        "PMIX_",  "OMPI_COMM_", "NOTIFY_SOCKET=", "LISTEN_",  "WATCHDOG_"};
    static const char *const needed[] = {"SLURM_CONF=", "SLURM_JWT="};
    size_t count = 0, kept = 0;

    while (environ[count])
        count++;
    char **list = xcalloc(count + 1, sizeof *list);
    for (size_t i = 0; i < count; i++)
        if (command_has_prefix(environ[i], needed, 2) ||
            !command_has_prefix(environ[i], prefixes, sizeof prefixes / sizeof prefixes[0]))
            list[kept++] = environ[i];
    return list;
}

static void slurm_call_one_line(char *text)
{
    size_t length = text ? strlen(text) : 0;

    while (length && (text[length - 1] == '\n' || text[length - 1] == ' '))
        text[--length] = '\0';
    for (char *c = text; c && *c; c++)
        if (*c == '\n')
            *c = ';';
        else if ((unsigned char)*c < ' ')
            *c = ' ';
}

/* If Slurm does not answer, its commands report several attempts; the last line states the
 * failure. */
static int slurm_call_refusal(const char *program, char *words, int wait_status, struct error *e)
{
    bool unclear = words && slurm_call_is_unclear(words);
    size_t length = unclear ? strlen(words) : 0;

    while (length && strchr("\n ", words[length - 1]))
        words[--length] = '\0';
    const char *last = unclear ? strrchr(words, '\n') : NULL;
    if (unclear)
        return error_set(e, ERR_UNREACHABLE, "%.*s", COMPLAIN_BYTES, last ? last + 1 : words);
    slurm_call_one_line(words);
    if (!words || !*words)
        return error_set(e, ERR_UNREACHABLE, "%s exited with status %d without a message", program,
                         wait_status);
    return error_set(e, ERR_INVALID, "%.*s", COMPLAIN_BYTES, words);
}

/* The caller frees *answer. The program is killed together with the daemon, so that no submission
 * outlives it. */
static int slurm_run_program(const struct slurm_call *c, char *const *argv, char **answer,
                             struct error *e)
{
    struct spawn_request r = {
        .argv = argv,
        .environment = slurm_call_environment(),
        .stream = {SPAWN_COLLECTED, SPAWN_COLLECTED},
        .limit_bytes = ANSWER_BYTES,
        .ends_with_us = true,
        .seconds = c->seconds > 0 ? c->seconds : CALL_SECONDS,
        .quit = c->quit,
    };
    struct spawn s = SPAWN_NONE;

    *answer = NULL;
    int status = spawn_run(&r, &s, e);
    if (status == -ERR_NOT_FOUND)
        error_set(e, ERR_NOT_FOUND, "%s is not installed on traind's machine (PATH)", argv[0]);
    else if (!status && s.status)
        status = slurm_call_refusal(argv[0], s.text[SPAWN_ERR].data, s.status, e);
    else if (!status && !(*answer = buffer_take(&s.text[SPAWN_OUT], NULL)))
        status = error_set(e, ERR_NO_MEMORY, "out of memory for the answer of %s", argv[0]);
    spawn_clear(&s);
    free((void *)r.environment);
    return status;
}

int slurm_call_submit(const struct slurm_call *c, const char *script_path, int64_t *job_id,
                      struct error *e)
{
    char *const argv[] = {"sbatch", "--parsable", (char *)script_path, NULL};
    char *answer;

    int status = slurm_run_program(c, argv, &answer, e);
    if (status)
        return status;
    *job_id = strtoll(answer, NULL, 10); /* "12", or "12;cluster" */
    if (*job_id <= 0) {
        slurm_call_one_line(answer);
        status = error_set(e, ERR_UNREACHABLE, "sbatch answered \"%.200s\"", answer);
    }
    free(answer);
    return status;
}

int slurm_call_jobs(const struct slurm_call *c, json_t **jobs, struct error *e)
{
    /* Version 22.05 lists all jobs in any case, later ones only with this option. */
    char *const argv[] = {"squeue", "--json", "--states=all", NULL};
    char *answer;
    json_error_t where;

    *jobs = NULL;
    int status = slurm_run_program(c, argv, &answer, e);
    if (status)
        return error_set(e, ERR_UNREACHABLE, "%s", e->text);
    json_t *reply = json_loads(answer, 0, &where);
    *jobs = json_incref(json_object_get(reply, "jobs"));
    json_decref(reply);
    free(answer);
    if (json_is_array(*jobs))
        return 0;
    json_decref(*jobs);
    *jobs = NULL;
    return error_set(e, ERR_UNREACHABLE, "squeue --json did not print a list of jobs (%s)",
                     where.text);
}

/* Parses "n1
 * 2
 * 24
 * 96
 * 190000
 * skylake,big
 * long*": name, sockets, cores per socket, CPUs, MiB of memory, features, partition. */
static void slurm_call_add_node(char *line, bool only_default, json_t *nodes)
{
    char *field[7];

    for (int i = 0; i < 7; i++)
        if (!(field[i] = strsep(&line, "|")))
            return;
    size_t length = strlen(field[6]);
    if (only_default && !(length && field[6][length - 1] == '*'))
        return;
    int64_t sockets = strtoll(field[1], NULL, 10);
    int64_t cores = sockets * strtoll(field[2], NULL, 10);
    int64_t cpus = strtoll(field[3], NULL, 10);
    json_array_append_new(nodes,
                          json_pack("{s:s, s:I, s:I, s:I, s:I, s:s}", "node", field[0], "cores",
                                    (json_int_t)(cpus > 0 && cpus < cores ? cpus : cores), "cpus",
                                    (json_int_t)cpus, "sockets", (json_int_t)sockets, "memory",
                                    (json_int_t)strtoll(field[4], NULL, 10), "features", field[5]));
}

int slurm_call_nodes(const struct slurm_call *c, const char *partition, const char *hosts,
                     json_t **nodes, struct error *e)
{
    char *argv[10] = {"sinfo", "--noheader", "--Node", "--format=%N|%X|%Y|%c|%m|%f|%P"};
    char *answer, *rest, *line;
    int n = 4;

    *nodes = NULL;
    if (partition) {
        argv[n++] = "--partition";
        argv[n++] = (char *)partition;
    }
    if (hosts) {
        argv[n++] = "--nodes";
        argv[n++] = (char *)hosts;
    }
    int status = slurm_run_program(c, argv, &answer, e);
    if (status)
        return status;
    *nodes = json_array();
    rest = answer;
    while ((line = strsep(&rest, "\n")))
        slurm_call_add_node(line, !partition && !hosts, *nodes);
    free(answer);
    return 0;
}

int slurm_call_cancel(const struct slurm_call *c, int64_t job_id, struct error *e)
{
    char id[32], *answer;
    char *const argv[] = {"scancel", id, NULL};

    snprintf(id, sizeof id, "%lld", (long long)job_id);
    int status = slurm_run_program(c, argv, &answer, e);
    free(answer);
    return status;
}
