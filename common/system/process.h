/*
 * Processes: what /proc/PID/stat and /proc/PID/environ show, core dumps of this process, and the
 * build ids of its program and libraries.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct process_stat {
    char state; /* R S D: running; T t: stopped; Z X: ended, not yet reaped */
    int64_t parent, session;
    int64_t start; /* clock ticks since boot: tells a reused pid from the old one */
};

/* False: there is no such process. */
bool process_stat_read(int64_t pid, struct process_stat *stat);

/* Parses the content of the file: "1234 (any name) S 1 ...". */
bool process_stat_parse(const char *text, struct process_stat *stat);

/* A variable of the environment that a process was started with. The caller frees it; NULL if it
 * is not set or may not be read. */
char *process_variable(int64_t pid, const char *name);

static inline bool process_has_ended(const struct process_stat *stat)
{
    return stat->state == 'Z' || stat->state == 'X';
}

static inline bool process_is_stopped(const struct process_stat *stat)
{
    return stat->state == 'T' || stat->state == 't';
}

/*
 * Disables core dumps of a process that holds secrets (tokens, the TLS key); called at its start.
 * Only the soft limit changes, so that children can restore it: workers hold no secrets and their
 * users want the dumps. prctl(PR_SET_DUMPABLE) would hide /proc/PID/exe from the daemon's own user.
 */
void process_forbid_core_dump(void);

/* Restores the limit in a child after fork(); async-signal-safe. No effect if none was forbidden.
 */
void process_allow_core_dump(void);

/* ELF note NT_GNU_BUILD_ID, the linker's digest of what was compiled: distinguishes two builds of
 * one version. */
#define PROCESS_BUILD_ID_BYTES 65 /* hex digits and the NUL; longer ones are cut */

/* Called for the program and each shared library. name: without its folder, "" for the program;
 * hex: "" if it has none. */
typedef void process_build_id_visit(void *context, const char *name, const char *hex);
void process_build_id_each(process_build_id_visit *visit, void *context);

/* Of the program itself. Returns hex. */
char *process_build_id(char hex[PROCESS_BUILD_ID_BYTES]);
