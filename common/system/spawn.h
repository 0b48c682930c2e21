/* Runs programs for their output: without a shell, with limits of bytes and time. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/buffer.h"
#include "common/error.h"

enum spawn_stream {
    SPAWN_OURS, /* inherited from this process */
    SPAWN_COLLECTED,
    SPAWN_MUTE, /* /dev/null */
};

enum { SPAWN_OUT, SPAWN_ERR, SPAWN_STREAMS };

struct spawn_request {
    char *const *argv;        /* argv[0] is searched in PATH unless it contains a "/" */
    char *const *environment; /* NULL: the environment of this process */
    int input;                /* open file that becomes stdin; 0: /dev/null */
    enum spawn_stream stream[SPAWN_STREAMS];
    size_t limit_bytes;      /* of each collected stream; further output is discarded */
    bool ends_with_us;       /* SIGKILL when the thread that started it ends */
    double seconds;          /* spawn_run only: SIGKILL after this time */
    const atomic_bool *quit; /* spawn_run only: SIGKILL when this becomes true; NULL: not used */
};

struct spawn {
    pid_t pid; /* 0: it has ended, or was never started */
    int pidfd, fd[SPAWN_STREAMS];
    struct buffer
        text[SPAWN_STREAMS]; /* output of collected streams; data is NULL if it is empty */
    int status;              /* as returned by waitpid, once it has ended */
};

#define SPAWN_NONE ((struct spawn){.pidfd = -1, .fd[SPAWN_OUT] = -1, .fd[SPAWN_ERR] = -1})

/* Starts the program with default SIGPIPE and no blocked signals. On an error sets "cannot run
 * PROGRAM: ...", errno, and *s to SPAWN_NONE. */
int spawn_begin(const struct spawn_request *r, struct spawn *s, struct error *e);

/* Reads output, waiting at most wait_ms for more. Returns true if the program has ended; does not
 * wait for other processes that keep its streams open. */
bool spawn_look(struct spawn *s, int wait_ms);

/* Runs the program to its end and sets s->status and s->text. Returns ERR_UNREACHABLE if it took
 * too long or *quit became true. The caller must clear s in any case. */
int spawn_run(const struct spawn_request *r, struct spawn *s, struct error *e);

void spawn_clear(struct spawn *s);

/* Returns a program's output, truncated to `bytes`. False: it failed to run or printed nothing. */
bool spawn_output(char *const *argv, char *text, size_t bytes);
