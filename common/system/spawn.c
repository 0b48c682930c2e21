#include "common/system/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/system/process.h"

#define LOOK_MS 200

static void spawn_close_one(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void spawn_set_stream(enum spawn_stream wish, int pipe_end, int null, int stream)
{
    if (wish != SPAWN_OURS)
        dup2(wish == SPAWN_COLLECTED ? pipe_end : null, stream);
}

/* Runs in the child of a process with threads, so it may call only async-signal-safe functions. */
static void spawn_exec(const struct spawn_request *r, const int ends[SPAWN_STREAMS], int failure)
    __attribute__((noreturn));

static void spawn_exec(const struct spawn_request *r, const int ends[SPAWN_STREAMS], int failure)
{
    sigset_t none;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (r->ends_with_us)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    process_allow_core_dump();
    dup2(r->input > 0 ? r->input : null, STDIN_FILENO);
    spawn_set_stream(r->stream[SPAWN_OUT], ends[SPAWN_OUT], null, STDOUT_FILENO);
    spawn_set_stream(r->stream[SPAWN_ERR], ends[SPAWN_ERR], null, STDERR_FILENO);
    execvpe(r->argv[0], r->argv, r->environment ? r->environment : environ);
    int why = errno;
    ssize_t ignored = write(failure, &why, sizeof why);
    (void)ignored;
    _exit(127);
}

/* Returns the errno of starting the process or its program, or 0. */
static int spawn_start_process(const struct spawn_request *r, struct spawn *s,
                               int ends[SPAWN_STREAMS], int failure[2])
{
    int why = 0;

    for (int i = 0; i < SPAWN_STREAMS; i++) {
        int both[2];
        if (r->stream[i] != SPAWN_COLLECTED)
            continue;
        if (pipe2(both, O_CLOEXEC))
            return errno;
        s->fd[i] = both[0];
        ends[i] = both[1];
        fcntl(s->fd[i], F_SETFL, O_NONBLOCK);
    }
    if (pipe2(failure, O_CLOEXEC))
        return errno;
    pid_t pid = fork();
    if (pid < 0)
        return errno;
    if (pid == 0)
        spawn_exec(r, ends, failure[1]);
    s->pid = pid;
    spawn_close_one(&failure[1]);
    while (read(failure[0], &why, sizeof why) < 0 && errno == EINTR)
        ;
    if (!why && (s->pidfd = pidfd_open(pid, 0)) < 0)
        why = errno;
    return why;
}

int spawn_begin(const struct spawn_request *r, struct spawn *s, struct error *e)
{
    int ends[SPAWN_STREAMS] = {-1, -1}, failure[2] = {-1, -1};

    *s = SPAWN_NONE;
    for (int i = 0; i < SPAWN_STREAMS; i++)
        s->text[i] = BUFFER(r->limit_bytes);
    int why = spawn_start_process(r, s, ends, failure);
    for (int i = 0; i < 2; i++) {
        spawn_close_one(&ends[i]);
        spawn_close_one(&failure[i]);
    }
    if (!why)
        return 0;
    spawn_clear(s);
    error_set_errno(e, why, "cannot run %s", r->argv[0]);
    errno = why;
    return -(int)e->code;
}

static void spawn_read_stream(struct spawn *s, int i)
{
    struct buffer *text = &s->text[i];
    char bytes[16384];
    ssize_t n;

    while (s->fd[i] >= 0 && (n = read(s->fd[i], bytes, sizeof bytes)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0)
            break;
        size_t left = text->limit - text->bytes;
        buffer_append(text, bytes, (size_t)n < left ? (size_t)n : left);
    }
    spawn_close_one(&s->fd[i]);
}

static void spawn_reap(struct spawn *s)
{
    while (waitpid(s->pid, &s->status, 0) < 0 && errno == EINTR)
        ;
    s->pid = 0;
    spawn_close_one(&s->pidfd);
    spawn_close_one(&s->fd[SPAWN_OUT]);
    spawn_close_one(&s->fd[SPAWN_ERR]);
}

bool spawn_look(struct spawn *s, int wait_ms)
{
    struct pollfd fds[] = {
        {.fd = s->pidfd,         .events = POLLIN},
        {.fd = s->fd[SPAWN_OUT], .events = POLLIN},
        {.fd = s->fd[SPAWN_ERR], .events = POLLIN}
    };

    if (s->pid == 0)
        return true;
    if (poll(fds, 3, wait_ms) <= 0)
        return false;
    /* The process has ended, so no more output follows. */
    spawn_read_stream(s, SPAWN_OUT);
    spawn_read_stream(s, SPAWN_ERR);
    if (fds[0].revents)
        spawn_reap(s);
    return s->pid == 0;
}

int spawn_run(const struct spawn_request *r, struct spawn *s, struct error *e)
{
    double until = clock_monotonic() + r->seconds;
    int status = spawn_begin(r, s, e);

    if (status)
        return status;
    while (!spawn_look(s, LOOK_MS))
        if ((r->quit && *r->quit) || clock_monotonic() > until)
            return error_set(e, ERR_UNREACHABLE, "%s gave no answer within %.0f s", r->argv[0],
                             r->seconds);
    return 0;
}

void spawn_clear(struct spawn *s)
{
    if (s->pid > 0) {
        kill(s->pid, SIGKILL);
        spawn_reap(s);
    }
    spawn_close_one(&s->pidfd);
    for (int i = 0; i < SPAWN_STREAMS; i++) {
        spawn_close_one(&s->fd[i]);
        buffer_clear(&s->text[i]);
    }
}

bool spawn_output(char *const *argv, char *text, size_t bytes)
{
    struct spawn_request r = {
        .argv = argv,
        .stream = {SPAWN_COLLECTED, SPAWN_MUTE},
        .limit_bytes = bytes - 1,
        .seconds = INFINITY,
    };
    struct spawn s;
    struct error e;

    spawn_run(&r, &s, &e);
    size_t got = s.text[SPAWN_OUT].bytes;
    memcpy(text, got ? s.text[SPAWN_OUT].data : "", got + 1);
    spawn_clear(&s);
    return got > 0;
}
