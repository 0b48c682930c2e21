/* The launcher `local`: runs mpirun, for this host or others, in a separate session. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/digest.h"
#include "common/system/process.h"
#include "common/system/file.h"
#include "launch/command.h"
#include "launch/hosts.h"

/* Data for the child, prepared before fork() because in a process with threads only
 * async-signal-safe calls are allowed after it. */
struct child {
    char **argv, **environment;
    int gate, log;
    const char *run_dir;
};

static void local_write_stderr(const char *text)
{
    ssize_t ignored = write(STDERR_FILENO, text, strlen(text));
    (void)ignored;
}

static void local_become_mpirun(const struct child *c) __attribute__((noreturn));

static void local_become_mpirun(const struct child *c)
{
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigset_t none;
    char go;

    setsid();
    for (int s = 1; s < NSIG; s++)
        sigaction(s, &standard, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    process_allow_core_dump();
    int null = open("/dev/null", O_RDONLY);
    /* log and gate are above 2, because main.c keeps descriptors 0 to 2 open. */
    dup2(null, STDIN_FILENO);
    dup2(c->log, STDOUT_FILENO);
    dup2(c->log, STDERR_FILENO);
    dup2(c->gate, 3);
    close_range(4, ~0u, 0);
    ssize_t n;
    while ((n = read(3, &go, 1)) < 0 && errno == EINTR)
        ;
    if (n != 1)
        _exit(125); /* the daemon died before it had stored this process */
    close(3);
    if (chdir(c->run_dir) == 0)
        execve(c->argv[0], c->argv, c->environment);
    local_write_stderr("traind: cannot run ");
    local_write_stderr(c->argv[0]);
    local_write_stderr(": ");
    local_write_stderr(strerrordesc_np(errno) ? strerrordesc_np(errno) : "unknown error");
    local_write_stderr("\n");
    _exit(127);
}

static int local_start_child(struct child *c, struct launch_process *p, struct error *e)
{
    int gate[2];

    if (pipe2(gate, O_CLOEXEC))
        return error_set_errno(e, errno, "cannot make a pipe");
    c->gate = gate[0];
    pid_t pid = fork();
    if (pid == 0)
        local_become_mpirun(c);
    int why = errno;
    close(gate[0]);
    if (pid < 0) {
        close(gate[1]);
        return error_set_errno(e, why, "cannot start a process");
    }
    *p = (struct launch_process){
        .pid = pid, .gate = gate[1], .start = process_start(pid), .session = pid};
    p->pidfd = pidfd_open(pid, 0);
    if (p->pidfd >= 0)
        return 0;
    error_set_errno(e, errno, "cannot watch the process %d", (int)pid);
    launch_abandon(p);
    return -(int)e->code;
}

/* A separate folder for each attempt's shared memory on this host, because files left by killed
 * ranks could not be attributed to an attempt otherwise. */
static void local_shared_folder(const char *attempt_dir, char path[64])
{
    char hex[DIGEST_BYTES];

    digest_text(attempt_dir, strlen(attempt_dir), hex);
    snprintf(path, 64, "/dev/shm/traind-%u-%.16s", geteuid(), hex);
}

/* Checks the owner, because anyone can create a folder of this name in /dev/shm and /tmp. */
static bool local_is_own_folder(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

static bool local_make_shared_folder(const char *path)
{
    return (mkdir(path, 0700) == 0 || errno == EEXIST) && local_is_own_folder(path);
}

/* Writes a file without syncing it: nothing is launched from it after a power cut. Frees text. */
static int local_write_file(const char *folder, const char *name, char *text, struct error *e)
{
    char path[PATH_MAX];
    int status = file_path(path, e, "%s/%s", folder, name);

    if (!status)
        status = file_write_unsynced(path, text, strlen(text), e);
    free(text);
    return status;
}

static int local_open_log(const char *attempt_dir, int *fd, struct error *e)
{
    char path[PATH_MAX];

    if (file_path(path, e, "%s/stdout.log", attempt_dir))
        return -ERR_INVALID;
    *fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC, 0644);
    if (*fd < 0)
        return error_set_errno(e, errno, "cannot open %s", path);
    int status = file_check_regular(*fd, path, e);
    if (status)
        close(*fd);
    return status;
}

/* Prepares mpirun's files and the command to execute. The file `command` is for users. */
static int local_prepare(const struct launch_request *r, const char *attempt_dir, struct child *c,
                         struct error *e)
{
    char **mpirun = command_argv(r, attempt_dir, geteuid() == 0);
    bool hosts = job_spec_names_hosts(r->spec);
    char shared[64];
    int status = local_write_file(attempt_dir, "command", command_quote(mpirun), e);

    c->argv = hosts ? command_on_hosts(mpirun, attempt_dir) : mpirun;
    if (hosts)
        command_free(mpirun);
    local_shared_folder(attempt_dir, shared);
    c->environment = command_environment(
        environ, r, attempt_dir, !hosts && local_make_shared_folder(shared) ? shared : NULL);
    if (status)
        return status;
    return hosts ? hosts_write(r, attempt_dir, e)
                 : local_write_file(attempt_dir, "hostfile", command_hostfile(r), e);
}

static int local_start(const struct launch_request *r, struct launch_process *p, struct error *e)
{
    char attempt_dir[PATH_MAX];
    struct child c = {.log = -1, .run_dir = r->run_dir};

    *p = (struct launch_process){.pidfd = -1, .gate = -1};
    int status = file_path(attempt_dir, e, "%s/attempt-%lld", r->run_dir, (long long)r->attempt);
    if (!status)
        status = file_make_dirs_unsynced(attempt_dir, e);
    if (!status)
        status = local_prepare(r, attempt_dir, &c, e);
    if (!status)
        status = local_open_log(attempt_dir, &c.log, e);
    if (!status)
        status = local_start_child(&c, p, e);
    if (c.log >= 0)
        close(c.log);
    command_free(c.argv);
    command_free(c.environment);
    return status;
}

static size_t local_look_for_members(struct launch_process *p, const char *attempt_dir)
{
    return process_set_update(&p->members, attempt_dir, p->session, p->start);
}

/* Processes forked between the scan and the signal are found by the next scan. */
static void local_stop(struct launch_process *p, const char *attempt_dir, enum launch_stop how)
{
    size_t members = local_look_for_members(p, attempt_dir);

    if (how != LAUNCH_STOP_KILL) {
        if (p->pidfd >= 0)
            pidfd_send_signal(p->pidfd, how == LAUNCH_STOP_NOW ? SIGTERM : SIGUSR1, NULL, 0);
        if (p->pidfd >= 0 &&
            how == LAUNCH_STOP_NOW) /* a stopped process receives SIGTERM only after SIGCONT */
            pidfd_send_signal(p->pidfd, SIGCONT, NULL, 0);
        return;
    }
    for (int look = 0; look < 3 && members; look++) {
        process_set_signal(&p->members, SIGKILL);
        members = local_look_for_members(p, attempt_dir);
    }
}

/* Removes the session folder that a killed mpirun leaves, by its names in Open MPI 4 and 5. Without
 * hosts it is in the shared folder. */
static void local_remove_session(const struct launch_process *p)
{
    const char *tmp = getenv("TMPDIR");
    char host[128] = "", all[PATH_MAX], path[PATH_MAX];

    if (p->pid <= 0 || process_start(p->pid) > 0) /* the pid may have been reused */
        return;
    gethostname(host, sizeof host - 1);
    host[strcspn(host, ".")] = '\0';
    tmp = tmp && *tmp ? tmp : "/tmp";
    file_path(path, NULL, "%s/prterun.%s.%d.%u", tmp, host, (int)p->pid, geteuid());
    if (local_is_own_folder(path))
        file_remove_tree(path, NULL);
    file_path(all, NULL, "%s/ompi.%s.%u", tmp, host, geteuid());
    if (local_is_own_folder(all) && !file_path(path, NULL, "%s/pid.%d", all, (int)p->pid))
        file_remove_tree(path, NULL);
}

static int local_survivors(struct launch_process *p, const char *attempt_dir)
{
    int members = (int)local_look_for_members(p, attempt_dir);
    char shared[64];

    local_shared_folder(attempt_dir, shared);
    if (members == 0) {
        file_remove_tree(shared, NULL);
        local_remove_session(p);
    }
    return members;
}

const struct launcher launcher_local = {
    .name = "local", .start = local_start, .stop = local_stop, .survivors = local_survivors};
