#include "launch/launch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/run/attempt.h"
#include "common/system/placement.h"
#include "common/system/process.h"
#include "common/system/spawn.h"
#include "common/xalloc.h"

static bool launch_process_read_living(int64_t pid, struct process_stat *stat)
{
    return process_stat_read(pid, stat) && !process_has_ended(stat);
}

int64_t process_start(int64_t pid)
{
    struct process_stat stat;
    return launch_process_read_living(pid, &stat) ? stat.start : -1;
}

bool launch_release(struct launch_process *p)
{
    /* The reader may have exited, and pipes have no MSG_NOSIGNAL. */
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
    /* After opening the pidfd, so that the pid cannot be reused unnoticed. */
    if (p->pidfd < 0 || process_start(pid) != start) {
        launch_process_close(p);
        return false;
    }
    p->session = p->pid;
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
    free(p->members.items);
    p->members = (struct process_set){0};
}

struct process {
    int64_t pid, parent, session, start;
    bool member;
};

struct process_list {
    struct process *items;
    size_t count, capacity;
};

static void launch_process_list_processes(struct process_list *list)
{
    DIR *folder = opendir("/proc");
    struct dirent *entry;

    while (folder && (entry = readdir(folder))) {
        char *end;
        struct process_stat f;
        long pid = strtol(entry->d_name, &end, 10);
        if (*end || pid <= 1 || pid == getpid() || !launch_process_read_living(pid, &f))
            continue;
        array_add(list->items, list->count, list->capacity) =
            (struct process){pid, f.parent, f.session, f.start, false};
    }
    if (folder)
        closedir(folder);
}

static bool launch_process_is_of_attempt(int64_t pid, const char *attempt_dir)
{
    char *its = process_variable(pid, ATTEMPT_MARK);
    bool same = its && strcmp(its, attempt_dir) == 0;

    free(its);
    return same;
}

static bool launch_process_in_set(const struct process_set *set, const struct process *p)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->items[i].pid == p->pid && set->items[i].start == p->start)
            return true;
    return false;
}

static bool launch_process_is_child_of_member(const struct process_list *list,
                                              const struct process *p)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].member && list->items[i].pid == p->parent)
            return true;
    return false;
}

static void launch_process_mark_members(struct process_list *list, const struct process_set *set,
                                        const char *attempt_dir, int64_t session, int64_t since)
{
    for (size_t i = 0; i < list->count; i++) {
        struct process *p = &list->items[i];
        p->member = launch_process_in_set(set, p) || (session > 0 && p->session == session) ||
                    (p->start >= since && launch_process_is_of_attempt(p->pid, attempt_dir));
    }
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < list->count; i++) {
            struct process *p = &list->items[i];
            if (!p->member && launch_process_is_child_of_member(list, p))
                p->member = more = true;
        }
    }
}

size_t process_set_update(struct process_set *set, const char *attempt_dir, int64_t session,
                          int64_t since)
{
    struct process_list look = {0};

    launch_process_list_processes(&look);
    launch_process_mark_members(&look, set, attempt_dir, session, since);
    set->count = 0;
    for (size_t i = 0; i < look.count; i++) {
        if (look.items[i].member)
            array_add(set->items, set->count, set->capacity) =
                (struct process_id){look.items[i].pid, look.items[i].start};
    }
    free(look.items);
    return set->count;
}

static int64_t launch_process_rank_of(int64_t pid)
{
    char *text = process_variable(pid, "OMPI_COMM_WORLD_RANK");
    int64_t rank = text ? strtoll(text, NULL, 10) : -1;

    free(text);
    return rank;
}

static void launch_process_read_name(int64_t pid, char *name, size_t bytes)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%lld/comm", (long long)pid);
    FILE *file = fopen(path, "re");
    if (!file || !fgets(name, (int)bytes, file))
        snprintf(name, bytes, "a process");
    name[strcspn(name, "\n")] = '\0';
    if (file)
        fclose(file);
}

bool process_set_find_stopped(const struct process_set *set, int64_t first,
                              struct process_stopped *found)
{
    *found = (struct process_stopped){.pid = -1, .rank = -1};
    for (size_t i = 0; i < set->count; i++) {
        int64_t pid = set->items[i].pid;
        struct process_stat stat;
        if (!process_stat_read(pid, &stat) || stat.start != set->items[i].start ||
            !process_is_stopped(&stat))
            continue;
        int64_t rank = pid == first ? -1 : launch_process_rank_of(pid);
        if (pid == first || found->pid < 0 ||
            (found->pid != first && rank >= 0 && (found->rank < 0 || rank < found->rank))) {
            found->pid = pid;
            found->rank = rank;
        }
    }
    if (found->pid >= 0)
        launch_process_read_name(found->pid, found->name, sizeof found->name);
    return found->pid >= 0;
}

/* Opens the pidfd before checking the start time, so that a reused pid is never signalled. */
void process_set_signal(const struct process_set *set, int signal_number)
{
    for (size_t i = 0; i < set->count; i++) {
        int fd = pidfd_open((pid_t)set->items[i].pid, 0);
        if (fd < 0)
            continue;
        if (process_start(set->items[i].pid) == set->items[i].start)
            pidfd_send_signal(fd, signal_number, NULL, 0);
        close(fd);
    }
}

double launch_elapsed_seconds(const struct launch_process *p)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    double elapsed = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec -
                     (double)p->start / (double)sysconf(_SC_CLK_TCK);
    return p->start > 0 && elapsed > 0 ? elapsed : 0;
}

static bool launch_process_is_program(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static int launch_process_find_in_path(const char *name, char **path, struct error *e)
{
    const char *folders = getenv("PATH");

    for (const char *at = folders ? folders : "/usr/bin:/bin"; *at;) {
        size_t length = strcspn(at, ":");
        *path = xasprintf("%.*s/%s", (int)length, at, name);
        if (length && launch_process_is_program(*path))
            return 0;
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
        return launch_process_find_in_path(name, path, e);
    if (access(name, F_OK))
        return error_set_errno(e, errno, "%s cannot be run", name);
    if (!launch_process_is_program(name))
        return error_set(e, ERR_NOT_ALLOWED, "%s is not an executable file", name);
    /* Not realpath(): mpirun is a symbolic link and depends on the name it is called by. */
    char folder[PATH_MAX];
    bool absolute = *name == '/' || !getcwd(folder, sizeof folder);
    *path = absolute ? xstrdup(name) : xasprintf("%s/%s", folder, name);
    return 0;
}

static int launch_process_ask_version(const char *mpirun)
{
    char *argv[] = {(char *)mpirun, "--version", NULL};
    struct spawn_request r = {
        .argv = argv, .stream = {SPAWN_COLLECTED, SPAWN_MUTE},
             .limit_bytes = 256, .seconds = 10
    };
    struct spawn s = SPAWN_NONE;
    struct error e;
    int version = 0;

    if (!spawn_run(&r, &s, &e) && s.text[SPAWN_OUT].data)
        version = placement_mpi_version(s.text[SPAWN_OUT].data);
    spawn_clear(&s);
    return version;
}

int launch_mpi_version(const char *mpirun)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static char *known;
    static int version;

    pthread_mutex_lock(&lock);
    if (!known || strcmp(known, mpirun) != 0) {
        free(known);
        known = xstrdup(mpirun);
        version = launch_process_ask_version(mpirun);
    }
    int answer = version;
    pthread_mutex_unlock(&lock);
    return answer;
}

int64_t launch_node_slots(bool smt)
{
    struct placement_machine machine;

    placement_read_mine(&machine);
    int64_t slots = placement_slots(&machine, smt);
    return slots > 0 ? slots : 1;
}
