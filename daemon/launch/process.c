/* Launcher processes: start, identity, end. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/launch/process.h"

int64_t process_start(int64_t pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return -1;
    text[n] = '\0';
    /* The name, field 2, may hold spaces and parentheses: count from the last one. */
    char *field = strrchr(text, ')');
    if (!field || field[1] != ' ' || field[2] == 'Z' || field[2] == 'X')
        return -1;
    field += 2;
    for (int number = 3; number < 22 && field; number++)
        if ((field = strchr(field, ' ')))
            field++;
    return field ? strtoll(field, NULL, 10) : -1;
}

bool launch_release(struct launch_process *p)
{
    /* The reader may be gone: without MSG_NOSIGNAL on a pipe, SIGPIPE has to be held back. */
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    sigaction(SIGPIPE, &ignore, &before);
    ssize_t written = write(p->gate, "g", 1);
    sigaction(SIGPIPE, &before, NULL);
    close(p->gate);
    p->gate = -1;
    return written == 1;
}

bool launch_adopt(int64_t pid, int64_t start, struct launch_process *p)
{
    *p = (struct launch_process){.pid = (pid_t)pid, .start = start, .pidfd = -1, .gate = -1};
    if (pid <= 0)
        return false;
    p->pidfd = pidfd_open((pid_t)pid, 0);
    /* The start is read behind the opening: now the pid cannot pass to another process unseen. */
    if (p->pidfd < 0 || process_start(pid) != start) {
        launch_process_close(p);
        return false;
    }
    return true;
}

void launch_reap(struct launch_process *p, int64_t *code, int64_t *signal_number)
{
    siginfo_t info = {0};

    *code = *signal_number = -1;
    if (p->pidfd < 0 || waitid(P_PIDFD, (id_t)p->pidfd, &info, WEXITED | WNOHANG) || !info.si_pid)
        return;
    if (info.si_code == CLD_EXITED)
        *code = info.si_status;
    else
        *signal_number = info.si_status;
}

void launch_abandon(struct launch_process *p)
{
    if (p->gate >= 0)
        close(p->gate);
    p->gate = -1;
    if (p->pid > 0)
        waitpid(p->pid, NULL, 0);
    launch_process_close(p);
}

void launch_process_close(struct launch_process *p)
{
    if (p->pidfd >= 0)
        close(p->pidfd);
    if (p->gate >= 0)
        close(p->gate);
    p->pidfd = p->gate = -1;
}

/* /proc/PID/environ: NUL-terminated strings. */
static bool has_variable(int64_t pid, const char *variable)
{
    char path[64], *text = NULL;
    size_t room = 0;
    ssize_t n;
    bool found = false;

    snprintf(path, sizeof path, "/proc/%lld/environ", (long long)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    while (!found && (n = getdelim(&text, &room, '\0', file)) > 0)
        found = strcmp(text, variable) == 0;
    free(text);
    fclose(file);
    return found;
}

/* The pidfd is opened first, so that the process that is signalled is the one that was looked at.
 */
static bool signal_if_marked(int64_t pid, const char *variable, int signal_number)
{
    int fd = pidfd_open((pid_t)pid, 0);
    if (fd < 0)
        return false;
    bool marked = process_start(pid) >= 0 && has_variable(pid, variable);
    if (marked && signal_number)
        pidfd_send_signal(fd, signal_number, NULL, 0);
    close(fd);
    return marked;
}

int process_signal_marked(const char *variable, int signal_number)
{
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    int count = 0;

    while (folder && (entry = readdir(folder))) {
        char *end;
        long pid = strtol(entry->d_name, &end, 10);
        if (*end == '\0' && pid > 1 && pid != getpid())
            count += signal_if_marked(pid, variable, signal_number);
    }
    if (folder)
        closedir(folder);
    return count;
}

static bool is_program(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static int find_in_path(const char *name, char **path, struct error *e)
{
    const char *folders = getenv("PATH");

    for (const char *at = folders ? folders : "/usr/bin:/bin"; *at;) {
        size_t length = strcspn(at, ":");
        if (length && asprintf(path, "%.*s/%s", (int)length, at, name) < 0)
            return error_set(e, ERR_NO_MEMORY, "no memory for a path");
        if (length && is_program(*path))
            return 0;
        if (length)
            free(*path);
        *path = NULL;
        at += length + (at[length] == ':');
    }
    return error_set(e, ERR_NOT_FOUND, "there is no program %s in PATH", name);
}

int launch_find_program(const char *name, char **path, struct error *e)
{
    *path = NULL;
    if (!strchr(name, '/'))
        return find_in_path(name, path, e);
    if (access(name, F_OK))
        return error_set_errno(e, errno, "%s cannot be run", name);
    if (!is_program(name))
        return error_set(e, ERR_NOT_ALLOWED, "%s is not an executable file", name);
    /* Not realpath(): mpirun is a link and looks at the name it was called by. */
    char folder[PATH_MAX];
    if (*name == '/' || !getcwd(folder, sizeof folder))
        *path = strdup(name);
    else if (asprintf(path, "%s/%s", folder, name) < 0)
        *path = NULL;
    return *path ? 0 : error_set(e, ERR_NO_MEMORY, "no memory for a path");
}

/* The lowest hardware thread of a core stands for it. */
static bool is_first_of_core(int cpu, const cpu_set_t *allowed)
{
    char path[128];
    int first = cpu;

    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    FILE *file = fopen(path, "re");
    if (!file)
        return true;
    if (fscanf(file, "%d", &first) != 1)
        first = cpu;
    fclose(file);
    return first == cpu || first < 0 || first >= CPU_SETSIZE || !CPU_ISSET(first, allowed);
}

int64_t launch_node_cores(void)
{
    cpu_set_t allowed;
    int64_t cores = 0;

    if (sched_getaffinity(0, sizeof allowed, &allowed))
        return 1;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && is_first_of_core(cpu, &allowed))
            cores++;
    return cores > 0 ? cores : 1;
}
