/* By commands. What slurmrestd does is in slurm_rest.c. */
#include "daemon/launch/slurm_call.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "launch/command.h"
#include "launch/launch.h"

#define CALL_SECONDS   45.0 /* Slurm's own clients give up at MessageTimeout, 10 s, and try again */
#define LOOK_MS        200
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

/* ---------------------------------------------------------------- a command */

struct output {
    char *text; /* NUL-terminated */
    size_t bytes;
    int fd; /* -1: at its end */
};

/* Variables of another job, and those that are options of the commands. */
static bool is_left_out(const char *variable)
{
    static const char *const prefixes[] = {
        "SLURM_", "SBATCH_",    "SQUEUE_",        "SCANCEL_", "SRUN_",
        "PMIX_",  "OMPI_COMM_", "NOTIFY_SOCKET=", "LISTEN_",  "WATCHDOG_"};
    static const char *const kept[] = {"SLURM_CONF=", "SLURM_JWT="};
    return !command_has_prefix(variable, kept, 2) &&
           command_has_prefix(variable, prefixes, sizeof prefixes / sizeof prefixes[0]);
}

static char **environment(void)
{
    size_t count = 0, kept = 0;

    while (environ[count])
        count++;
    char **list = calloc(count + 1, sizeof *list);
    for (size_t i = 0; list && i < count; i++)
        if (!is_left_out(environ[i]))
            list[kept++] = environ[i];
    return list;
}

/* It ends with the daemon, so that no submission outlives it. */
static void become(char *path, char *const *argv, char **variables, int out, int err)
    __attribute__((noreturn));

static void become(char *path, char *const *argv, char **variables, int out, int err)
{
    sigset_t none;
    int null = open("/dev/null", O_RDONLY);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    dup2(null, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    execve(path, argv, variables);
    _exit(127);
}

static int spawn(char *const *argv, struct output outputs[2], pid_t *pid, struct error *e)
{
    int out[2] = {-1, -1}, err[2] = {-1, -1};
    char *path, **variables = environment();
    int status = launch_find_program(argv[0], &path, e);

    if (status) {
        free(variables);
        return error_set(e, ERR_NOT_FOUND, "%s is not installed where traind runs (PATH)", argv[0]);
    }
    if (!variables || pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC) || (*pid = fork()) < 0)
        status = error_set_errno(e, errno, "cannot start %s", argv[0]);
    else if (*pid == 0)
        become(path, argv, variables, out[1], err[1]);
    if (out[1] >= 0)
        close(out[1]);
    if (err[1] >= 0)
        close(err[1]);
    outputs[0].fd = out[0];
    outputs[1].fd = err[0];
    free(variables);
    free(path);
    return status;
}

static void read_some(struct output *o)
{
    char bytes[65536];
    ssize_t n = read(o->fd, bytes, sizeof bytes);
    char *grown = n > 0 && o->bytes + (size_t)n < ANSWER_BYTES
                      ? realloc(o->text, o->bytes + (size_t)n + 1)
                      : NULL;

    if (!grown) {
        close(o->fd);
        o->fd = -1;
        return;
    }
    memcpy(grown + o->bytes, bytes, (size_t)n);
    o->text = grown;
    o->bytes += (size_t)n;
    o->text[o->bytes] = '\0';
}

/* True: both have ended; false: it took too long. */
static double seconds_of(const struct slurm_call *c)
{
    return c->seconds > 0 ? c->seconds : CALL_SECONDS;
}

static bool read_all(const struct slurm_call *c, struct output o[2])
{
    double until = clock_monotonic() + seconds_of(c);

    while (o[0].fd >= 0 || o[1].fd >= 0) {
        struct pollfd fds[2] = {
            {.fd = o[0].fd, .events = POLLIN},
            {.fd = o[1].fd, .events = POLLIN}
        };
        if (*c->quit || clock_monotonic() > until)
            return false;
        if (poll(fds, 2, LOOK_MS) <= 0)
            continue;
        for (int i = 0; i < 2; i++)
            if (fds[i].revents)
                read_some(&o[i]);
    }
    return true;
}

/* "sbatch: error: Batch job submission failed: Invalid partition name specified": as it is, but
 * in one line. */
static void one_line(char *text)
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

static int refusal(const char *program, char *words, int wait_status, struct error *e)
{
    one_line(words);
    if (!words || !*words)
        return error_set(e, ERR_UNREACHABLE, "%s ended with status %d and said nothing", program,
                         wait_status);
    return error_set(e, slurm_call_is_unclear(words) ? ERR_UNREACHABLE : ERR_INVALID, "%.*s",
                     COMPLAIN_BYTES, words);
}

/* *answer is what it printed; the caller frees it. */
static int run(const struct slurm_call *c, char *const *argv, char **answer, struct error *e)
{
    struct output o[2] = {{.fd = -1}, {.fd = -1}};
    pid_t pid = -1;
    int wait_status = 0;
    int status = spawn(argv, o, &pid, e);

    *answer = NULL;
    if (!status) {
        bool ended = read_all(c, o);
        if (!ended)
            kill(pid, SIGKILL);
        while (waitpid(pid, &wait_status, 0) < 0 && errno == EINTR)
            ;
        if (!ended)
            status = error_set(e, ERR_UNREACHABLE, "%s gave no answer within %.0f s", argv[0],
                               seconds_of(c));
        else if (wait_status)
            status = refusal(argv[0], o[1].text, wait_status, e);
    }
    if (!status)
        *answer = o[0].text ? o[0].text : strdup("");
    else
        free(o[0].text);
    for (int i = 0; i < 2; i++)
        if (o[i].fd >= 0)
            close(o[i].fd);
    free(o[1].text);
    return status;
}

/* ---------------------------------------------------------------- what is asked */

int slurm_call_submit(const struct slurm_call *c, const char *script_path, const json_t *properties,
                      int64_t *job_id, struct error *e)
{
    char *const argv[] = {"sbatch", "--parsable", (char *)script_path, NULL};
    char *answer;

    if (c->settings->slurmrestd)
        return slurm_rest_submit(c, script_path, properties, job_id, e);
    int status = run(c, argv, &answer, e);
    if (status)
        return status;
    *job_id = strtoll(answer, NULL, 10); /* "12", or "12;cluster" */
    if (*job_id <= 0) {
        one_line(answer);
        status = error_set(e, ERR_UNREACHABLE, "sbatch answered \"%.200s\"", answer);
    }
    free(answer);
    return status;
}

int slurm_call_jobs(const struct slurm_call *c, json_t **jobs, struct error *e)
{
    /* 22.05 lists all jobs whatever the options say; later versions only these. */
    char *const argv[] = {"squeue", "--json", "--states=all", NULL};
    char *answer;
    json_error_t where;

    if (c->settings->slurmrestd)
        return slurm_rest_jobs(c, jobs, e);
    *jobs = NULL;
    int status = run(c, argv, &answer, e);
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
    return error_set(e, ERR_UNREACHABLE, "squeue --json gave no list of jobs (%s)", where.text);
}

/* "n1|2|24|96|skylake,big|long*": name, sockets, cores of each, CPUs, features, partition. */
static void add_node(char *line, bool only_default, json_t *nodes)
{
    char *field[6];

    for (int i = 0; i < 6; i++)
        if (!(field[i] = strsep(&line, "|")))
            return;
    size_t length = strlen(field[5]);
    if (only_default && !(length && field[5][length - 1] == '*'))
        return;
    int64_t cores = strtoll(field[1], NULL, 10) * strtoll(field[2], NULL, 10);
    int64_t cpus = strtoll(field[3], NULL, 10);
    json_array_append_new(nodes, json_pack("{s:s, s:I, s:I, s:s}", "node", field[0], "cores",
                                           (json_int_t)(cpus > 0 && cpus < cores ? cpus : cores),
                                           "cpus", (json_int_t)cpus, "features", field[4]));
}

int slurm_call_nodes(const struct slurm_call *c, const char *partition, const char *hosts,
                     json_t **nodes, struct error *e)
{
    char *argv[10] = {"sinfo", "--noheader", "--Node", "--format=%N|%X|%Y|%c|%f|%P"};
    char *answer, *rest, *line;
    int n = 4;

    *nodes = NULL;
    if (c->settings->slurmrestd)
        return slurm_rest_nodes(c, partition, hosts, nodes, e);
    if (partition) {
        argv[n++] = "--partition";
        argv[n++] = (char *)partition;
    }
    if (hosts) {
        argv[n++] = "--nodes";
        argv[n++] = (char *)hosts;
    }
    int status = run(c, argv, &answer, e);
    if (status)
        return status;
    *nodes = json_array();
    rest = answer;
    while ((line = strsep(&rest, "\n")))
        add_node(line, !partition && !hosts, *nodes);
    free(answer);
    return 0;
}

int slurm_call_cancel(const struct slurm_call *c, int64_t job_id, struct error *e)
{
    char id[32], *answer;
    char *const argv[] = {"scancel", id, NULL};

    if (c->settings->slurmrestd)
        return slurm_rest_cancel(c, job_id, e);
    snprintf(id, sizeof id, "%lld", (long long)job_id);
    int status = run(c, argv, &answer, e);
    free(answer);
    return status;
}
