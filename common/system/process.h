/* Processes: /proc/PID/stat and environ, core dumps of this process, build ids of its program. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct process_stat {
    char state; /* R S D: running; T t: stopped; Z X: ended, not yet reaped */
    int64_t parent, session;
    int64_t start; /* in clock ticks since boot; detects that a pid was reused */
};

bool process_stat_read(int64_t pid, struct process_stat *stat);

bool process_stat_parse(const char *text, struct process_stat *stat);

/* A variable from /proc/PID/environ, which the caller frees; NULL: not set, or not readable. */
char *process_variable(int64_t pid, const char *name);

static inline bool process_has_ended(const struct process_stat *stat)
{
    return stat->state == 'Z' || stat->state == 'X';
}

static inline bool process_is_stopped(const struct process_stat *stat)
{
    return stat->state == 'T' || stat->state == 't';
}

/* Disables core dumps of a process with secrets (tokens, the TLS key). Only changes the soft limit,
 * so that children can restore it: workers have no secrets, and users need their dumps.
 * prctl(PR_SET_DUMPABLE) would hide /proc/PID/exe from the daemon's own user. */
void process_forbid_core_dump(void);

/* Restores the limit in a child process. Async-signal-safe. */
void process_allow_core_dump(void);

/* The digest made by the linker (ELF note NT_GNU_BUILD_ID) identifies a build. */
#define PROCESS_BUILD_ID_BYTES 65 /* hex digits and the NUL; longer ones are truncated */

/* Called for the program (name "") and each shared library. hex: "" if it has no build id. */
typedef void process_build_id_visit(void *context, const char *name, const char *hex);
void process_build_id_each(process_build_id_visit *visit, void *context);

char *process_build_id(char hex[PROCESS_BUILD_ID_BYTES]);
