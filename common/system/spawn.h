/* Programs that are run for what they print: started without a shell, collected with a limit of
 * bytes and of time. */
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

/* Starts it, with stdin from input, SIGPIPE at its default and no signal blocked. "cannot run
 * PROGRAM: ...", with errno set; s is SPAWN_NONE then. */
int spawn_begin(const struct spawn_request *r, struct spawn *s, struct error *e);

/* Reads what it has printed, waiting at most so long for news; true: it has ended. Another process
 * that holds its streams open is not waited for. */
bool spawn_look(struct spawn *s, int wait_ms);

/* spawn_begin, and spawn_look until it has ended: 0 with s->status and s->text. ERR_UNREACHABLE: it
 * took too long, or *quit. Clear s in any case. */
int spawn_run(const struct spawn_request *r, struct spawn *s, struct error *e);

/* Ends it by SIGKILL if it still runs, and frees what it printed. */
void spawn_clear(struct spawn *s);

/* What a program prints, cut to bytes; false if it cannot be run or prints nothing. */
bool spawn_output(char *const *argv, char *text, size_t bytes);
