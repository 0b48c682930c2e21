/*
 * The daemon's settings: from the command line, else the environment (TRAIND_STATE alone), else
 * traind.conf, else the default. Keys, defaults, ranges and help are one table in config.c; --help
 * comes from it, and traind.conf(5) and etc/traind.conf are checked against it by a test.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/error.h"
#include "common/log.h"
#include "common/plan/predict.h"
#include "daemon/http/stream/stream.h"
#include "daemon/job/job_manager.h"
#include "daemon/node/node_self.h"

#define CONFIG_NONE "none" /* as the value of job_env_prefixes: there are none */

/* A bit for each key of the table. */
typedef unsigned __int128 config_keys;

/* Zero-initialise. Strings are owned by the struct; all values are set once config_load gave 0. */
struct config {
    config_keys given;      /* bit i: config_key_at(i) was set by hand */
    char *listen;           /* "127.0.0.1:7077"; port 0 takes a free one */
    char *socket;           /* path of the unix socket */
    char *state;            /* folder of everything the daemon keeps; absolute */
    int64_t log_level;      /* enum log_level */
    int64_t log_format;     /* enum log_format */
    int64_t max_body_bytes; /* of a request */
    int64_t http_threads;
    struct streams_limits streams;
    char *web_dir;                   /* the dashboard's files */
    int64_t require_token;           /* over TCP; 0: no */
    char *tls_certificate, *tls_key; /* PEM files; NULL: no TLS */
    char *socket_group;              /* its members may use the socket; NULL: none */
    char *data_roots;                /* "/a:/b"; NULL: any folder */
    char *job_env_prefixes;          /* "OMP_ UCX_", or CONFIG_NONE */
    char *mpi_prefixes;              /* "/a:/b"; NULL: none */
    int64_t max_connections, connections_per_address; /* the latter 0: any number */
    int64_t requests_per_second;                      /* of a token; 0: any number */
    char *failure_rules;                              /* a file; NULL: traind's own alone */
    struct job_manager_config jobs;                   /* but for jobs_dir and rules */
    struct node_self_settings nodes;
    struct plan_prices prices;
    /* Notices; NULL: not set. */
    char *notify_rules, *notify_secret_file; /* files */
    char *notify_allow;                      /* as daemon/notice/address.h reads it */
    char *notify_proxy, *notify_ca_file, *notify_sendmail, *notify_from, *notify_mail_domains;
    char *public_url;
    int64_t notify_redirects;
    int64_t notify_retry_seconds; /* since it happened: later failures are final */
    int64_t keep_notice_days;     /* of one that is done; 0: all */
};

struct config_key {
    const char *name;
    char kind; /* 's' text, 'i' whole number in an int64_t, 'd' in a double, 'r' any number in a
                * double, 'w' one of words (its index, in an int64_t) */
    const char *default_text; /* as it would stand in the file; NULL: see help */
    int64_t minimum, maximum; /* of a number */
    size_t offset;            /* in struct config */
    const char *help;
    bool reloads;        /* SIGHUP changes it as the daemon runs */
    const char *words;   /* of kind 'w', with spaces between */
    int64_t times, over; /* of kind 'd': what is stored is the value x times / over; 0: 1 */
};
const struct config_key *config_key_at(size_t i); /* NULL behind the last */

/* Reads path ("key = value" lines; NULL: SYSCONFDIR/traind/traind.conf if that exists), then fills
 * what is still unset with defaults. What is set in *c already (from the command line) wins. Errors
 * name the file, the line and the nearest right key. */
int config_load(struct config *c, const char *path, struct error *e);

/* Sets one key from text; source is put into messages ("--listen", "traind.conf:3"). */
int config_set(struct config *c, const char *key, const char *text, const char *source,
               struct error *e);

/* What is different in settings that were read again, with commas between; "" for nothing. */
struct config_changes {
    char *taken;         /* "stall_seconds = 60 (was 300)" */
    char *needs_restart; /* names of keys */
};

/* Gives fresh the values of before for all keys but those that SIGHUP changes. The caller frees
 * what *changes gets. */
void config_inherit(struct config *fresh, const struct config *before,
                    struct config_changes *changes);

void config_copy(struct config *c, const struct config *from); /* into one that is set or zeroed */

/* ERR_USAGE where settings do not go together: TLS with one of its two files, addresses beyond the
 * loopback without tokens and TLS, a group or a folder that is not there. */
int config_check(const struct config *c, struct error *e);

void config_help(FILE *out); /* the table, for --help */
void config_clear(struct config *c);
void config_changes_clear(struct config_changes *changes);
