/* The daemon's settings, in order of precedence: command line, environment (TRAIND_STATE only),
 * traind.conf, default. The table in config.c defines the keys; a test checks that traind.conf(5)
 * and etc/traind.conf list the same ones. */
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

#define CONFIG_NONE "none" /* value of job_env_prefixes that allows none */

typedef unsigned __int128 config_keys; /* a bit for each key of the table */

/* Zero-initialise. Strings are owned; NULL: not set. All values are set once config_load has
 * returned 0. The table in config.c documents the keys. */
struct config {
    config_keys given; /* bit i: config_key_at(i) was set in the file or on the command line */
    char *listen, *socket, *state;
    int64_t log_level, log_format; /* enum log_level, enum log_format */
    int64_t max_body_bytes, http_threads, max_connections, connections_per_address;
    int64_t requests_per_second, require_token;
    struct streams_limits streams;
    char *web_dir, *tls_certificate, *tls_key, *socket_group;
    char *data_roots, *job_env_prefixes, *mpi_prefixes;
    char *failure_rules;
    struct job_manager_config jobs; /* except jobs_dir and rules */
    struct node_self_settings nodes;
    struct plan_prices prices;
    char *notify_rules, *notify_secret_file, *notify_allow, *notify_proxy, *notify_ca_file;
    char *notify_sendmail, *notify_from, *notify_mail_domains, *public_url;
    int64_t notify_redirects, notify_retry_seconds, keep_notice_days;
};

struct config_key {
    const char *name;
    char kind; /* 's' string, 'i' int64_t, 'd' integer as double, 'r' real, 'w' a word's index */
    const char *default_text; /* as written in the file; NULL: see help */
    int64_t minimum, maximum;
    size_t offset; /* of the field in struct config */
    const char *help;
    bool reloads;        /* takes effect on SIGHUP */
    const char *words;   /* separated by spaces */
    int64_t times, over; /* the stored value is the given one x times / over; 0: 1 */
};
const struct config_key *config_key_at(size_t i); /* NULL past the last */

/* Reads path ("key = value" lines; NULL: SYSCONFDIR/traind/traind.conf if it exists), then fills in
 * the defaults. Values set in *c take precedence. Errors name file, line and the nearest key. */
int config_load(struct config *c, const char *path, struct error *e);

/* Sets one key. source: where the value comes from, for messages ("--listen", "traind.conf:3"). */
int config_set(struct config *c, const char *key, const char *text, const char *source,
               struct error *e);

/* Differences after a reload, separated by commas. */
struct config_changes {
    char *taken;         /* for example "stall_seconds = 60 (was 300)" */
    char *needs_restart; /* names of keys */
};

/* Copies the values of all keys that do not reload from before to fresh. */
void config_inherit(struct config *fresh, const struct config *before,
                    struct config_changes *changes);

void config_copy(struct config *c, const struct config *from); /* into one that is set or zeroed */

/* ERR_USAGE for keys that contradict each other, and for groups and folders that do not exist. */
int config_check(const struct config *c, struct error *e);

void config_help(FILE *out); /* for --help */
void config_clear(struct config *c);
void config_changes_clear(struct config_changes *changes);
