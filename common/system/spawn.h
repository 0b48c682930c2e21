/* Programs run for their output: without a shell, limited in bytes and time. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/buffer.h"
#include "common/error.h"

enum spawn_stream {
    SPAWN_OURS, /* it prints where we do */
    SPAWN_COLLECTED,
    SPAWN_MUTE, /* /dev/null */
};

enum { SPAWN_OUT, SPAWN_ERR, SPAWN_STREAMS };

struct spawn_request {
    char *const *argv;        /* argv[0] is looked for in PATH unless it has a "/" */
    char *const *environment; /* NULL: that of this process */
    int input;                /* an open file that is its stdin; 0: /dev/null */
    enum spawn_stream stream[SPAWN_STREAMS];
    size_t limit_bytes;      /* of what is kept of a stream; what comes behind is dropped */
    bool ends_with_us;       /* SIGKILL when the thread that started it ends */
    double seconds;          /* of spawn_run: SIGKILL then */
    const atomic_bool *quit; /* of spawn_run: SIGKILL when it is set; NULL: none */
};

struct spawn {
    pid_t pid; /* 0: it has ended, or was never started */
    int pidfd, fd[SPAWN_STREAMS];
    struct buffer text[SPAWN_STREAMS]; /* of collected ones; data NULL where nothing came */
    int status;                        /* as waitpid gives it, once it has ended */
};

#define SPAWN_NONE ((struct spawn){.pidfd = -1, .fd[SPAWN_OUT] = -1, .fd[SPAWN_ERR] = -1})

/* Starts it with stdin from input, default SIGPIPE and no blocked signals. On error "cannot run
 * PROGRAM: ...", with errno set and s SPAWN_NONE. */
int spawn_begin(const struct spawn_request *r, struct spawn *s, struct error *e);

/* Reads output, waiting at most wait_ms for more; true: it has ended. Does not wait for other
 * processes that hold its streams. */
bool spawn_look(struct spawn *s, int wait_ms);

/* Runs it to its end, with s->status and s->text. ERR_UNREACHABLE: too slow, or *quit. Clear s in
 * any case. */
int spawn_run(const struct spawn_request *r, struct spawn *s, struct error *e);

void spawn_clear(struct spawn *s);

/* The output, cut to bytes; false: it cannot be run or prints nothing. */
bool spawn_output(char *const *argv, char *text, size_t bytes);
