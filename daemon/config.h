/*
 * The daemon's settings: from the command line, else the environment (TRAIND_STATE alone), else
 * traind.conf, else the default. One table in config.c defines the keys; a test checks that
 * traind.conf(5) and etc/traind.conf have the same.
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

#define CONFIG_NONE "none" /* the value of job_env_prefixes for none */

typedef unsigned __int128 config_keys; /* a bit for each key of the table */

/* Zero-initialise. Strings are owned; NULL: not set. All values are set once config_load returned
 * 0. The table in config.c says what each key means. */
struct config {
    config_keys given; /* bit i: config_key_at(i) is set in the file or on the command line */
    char *listen, *socket, *state;
    int64_t log_level, log_format; /* enum log_level, enum log_format */
    int64_t max_body_bytes, http_threads, max_connections, connections_per_address;
    int64_t requests_per_second, require_token;
    struct streams_limits streams;
    char *web_dir, *tls_certificate, *tls_key, *socket_group;
    char *data_roots, *job_env_prefixes, *mpi_prefixes;
    char *failure_rules;
    struct job_manager_config jobs; /* without jobs_dir and rules */
    struct node_self_settings nodes;
    struct plan_prices prices;
    char *notify_rules, *notify_secret_file, *notify_allow, *notify_proxy, *notify_ca_file;
    char *notify_sendmail, *notify_from, *notify_mail_domains, *public_url;
    int64_t notify_redirects, notify_retry_seconds, keep_notice_days;
};

struct config_key {
    const char *name;
    char kind; /* 's' text, 'i' whole number in an int64_t, 'd' in a double, 'r' any number in a
                * double, 'w' one of words (its index, in an int64_t) */
    const char *default_text; /* as in the file; NULL: see help */
    int64_t minimum, maximum;
    size_t offset; /* in struct config */
    const char *help;
    bool reloads;        /* on SIGHUP */
    const char *words;   /* separated by spaces */
    int64_t times, over; /* the value is stored x times / over; 0: 1 */
};
const struct config_key *config_key_at(size_t i); /* NULL behind the last */

/* Reads path ("key = value" lines; NULL: SYSCONFDIR/traind/traind.conf if it exists), then sets the
 * defaults. What is set in *c already wins. Errors name the file, the line and the nearest key. */
int config_load(struct config *c, const char *path, struct error *e);

/* Sets one key. source is for messages ("--listen", "traind.conf:3"). */
int config_set(struct config *c, const char *key, const char *text, const char *source,
               struct error *e);

/* The differences after a reload, separated by commas. */
struct config_changes {
    char *taken;         /* "stall_seconds = 60 (was 300)" */
    char *needs_restart; /* names of keys */
};

/* Gives fresh the values of before for all keys that do not reload. */
void config_inherit(struct config *fresh, const struct config *before,
                    struct config_changes *changes);

void config_copy(struct config *c, const struct config *from); /* into one that is set or zeroed */

/* ERR_USAGE for keys that contradict each other, and groups and folders that do not exist. */
int config_check(const struct config *c, struct error *e);

void config_help(FILE *out); /* for --help */
void config_clear(struct config *c);
void config_changes_clear(struct config_changes *changes);
