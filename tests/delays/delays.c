/*
 * For LD_PRELOAD: before and after calls with effects that other processes see, one in
 * DELAYS_ONE_IN times (6) the programs of this project sleep for up to DELAYS_MS milliseconds
 * (120). What must happen in an order but only happens to do so is found that way.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static unsigned one_in, longest_ms; /* one_in: 0 where nothing is delayed */
static _Thread_local uint64_t state;

static unsigned number_from(const char *variable, unsigned otherwise)
{
    const char *text = getenv(variable);

    return text ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

__attribute__((constructor)) static void begin(void)
{
    static const char *const delayed[] = {"traind",     "trainctl", "train-worker",
                                          "train-prep", "mpirun",   "fixture_worker"};

    for (size_t i = 0; i < sizeof delayed / sizeof delayed[0]; i++)
        if (!strcmp(program_invocation_short_name, delayed[i]))
            one_in = number_from("DELAYS_ONE_IN", 6);
    longest_ms = number_from("DELAYS_MS", 120);
}

static void delay(void)
{
    int saved = errno;
    struct timespec t;

    if (!one_in)
        return;
    if (!state) {
        clock_gettime(CLOCK_MONOTONIC, &t);
        state = (uint64_t)t.tv_nsec * 2654435761U + (uint64_t)gettid();
    }
    state = state * 6364136223846793005U + 1442695040888963407U;
    if ((state >> 33) % one_in == 0) {
        t = (struct timespec){0, (long)((state >> 40) % (longest_ms + 1)) * 1000000};
        nanosleep(&t, NULL);
    }
    errno = saved;
}

#define DELAYED(type, name, parameters, arguments)                                                 \
    type name parameters                                                                           \
    {                                                                                              \
        type(*next) parameters = (type(*) parameters)dlsym(RTLD_NEXT, #name);                      \
        delay();                                                                                   \
        type result = next arguments;                                                              \
        delay();                                                                                   \
        return result;                                                                             \
    }

DELAYED(int, fsync, (int fd), (fd))
DELAYED(int, fdatasync, (int fd), (fd))
DELAYED(int, rename, (const char *from, const char *to), (from, to))
DELAYED(int, renameat, (int from_fd, const char *from, int to_fd, const char *to),
        (from_fd, from, to_fd, to))
DELAYED(int, unlink, (const char *path), (path))
DELAYED(int, unlinkat, (int fd, const char *path, int flags), (fd, path, flags))
DELAYED(int, mkdir, (const char *path, mode_t mode), (path, mode))
DELAYED(pid_t, fork, (void), ())
DELAYED(pid_t, waitpid, (pid_t pid, int *status, int options), (pid, status, options))
DELAYED(int, kill, (pid_t pid, int signal), (pid, signal))
DELAYED(int, connect, (int fd, const struct sockaddr *to, socklen_t bytes), (fd, to, bytes))
DELAYED(int, epoll_wait, (int fd, struct epoll_event *events, int count, int timeout),
        (fd, events, count, timeout))
DELAYED(int, execve, (const char *path, char *const args[], char *const environment[]),
        (path, args, environment))
