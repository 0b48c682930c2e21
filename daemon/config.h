/*
 * The daemon's settings: from the command line, else the environment (TRAIND_STATE alone), else
 * traind.conf, else the default. Keys, defaults, ranges and help are one table in config.c; --help
 * comes from it, and traind.conf(5) and etc/traind.conf are checked against it by a test.
 */
#ifndef TRAIND_DAEMON_CONFIG_H
#define TRAIND_DAEMON_CONFIG_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/error.h"
#include "common/log.h"

/* Zero-initialise. Strings are owned by the struct; all values are set once config_load gave 0. */
struct config {
    uint64_t given;               /* bit i: config_key_at(i) was set by hand */
    char *listen;                 /* "127.0.0.1:7077"; port 0 takes a free one */
    char *socket;                 /* path of the unix socket */
    char *state;                  /* folder of everything the daemon keeps; absolute */
    int64_t slots;                /* cores that jobs may take; never 0 after config_load */
    char *mpirun;                 /* program that starts workers */
    char *worker;                 /* program it starts */
    int64_t cancel_grace_seconds; /* between asking the workers to stop and SIGTERM */
    int64_t priority_seconds;     /* of waiting, for a point of priority */
    int64_t restart_delay_seconds;
    int64_t keep_runs, keep_checkpoints; /* 0: all */
    int64_t log_limit_bytes;             /* 0: none */
    int64_t stall_seconds;               /* without a step before a run warns of it; 0: never */
    enum log_level log_level;
    int64_t max_body_bytes; /* of a request */
    int64_t http_threads;
    int64_t streams_per_client, heartbeat_seconds; /* of events, live */
    char *web_dir; /* the dashboard's files */
};

struct config_key {
    const char *name;
    char kind;                /* 's' text, 'i' integer, 'l' log level */
    const char *default_text; /* as it would stand in the file; NULL: see help */
    int64_t minimum, maximum; /* of an integer */
    size_t offset;            /* in struct config */
    const char *help;
};
const struct config_key *config_key_at(size_t i); /* NULL behind the last */

/* Reads path ("key = value" lines; NULL: SYSCONFDIR/traind/traind.conf if that exists), then fills
 * what is still unset with defaults. What is set in *c already (from the command line) wins. Errors
 * name the file, the line and the nearest right key. */
int config_load(struct config *c, const char *path, struct error *e);

/* Sets one key from text; source is put into messages ("--listen", "traind.conf:3"). */
int config_set(struct config *c, const char *key, const char *text, const char *source,
               struct error *e);

void config_help(FILE *out); /* the table, for --help */
void config_clear(struct config *c);

#endif
