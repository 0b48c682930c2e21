/* The table of routes. 404, 405, the check of query parameters and openapi.json are derived from
 * it. To add a route, see doc/how-to-add-a-route.md. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/digest.h"
#include "common/error.h"
#include "daemon/config.h"
#include "daemon/http/access/role.h"
#include "daemon/http/reply.h"
#include "daemon/job/job.h"
#include "daemon/notice/notices.h"
#include "daemon/settings.h"
#include "daemon/store/store.h"

struct http_app {
    struct settings *settings; /* handlers use the config of their request instead */
    struct store *store;
    struct job_manager *jobs;
    struct streams *streams;
    struct tokens *tokens;
    struct notices *notices;
    gid_t socket_gid; /* gid of socket_group; (gid_t)-1: none */
};

#define QUERY_MAX         16
#define REQUEST_WHO_BYTES 256
struct request {
    const struct http_app *app;
    const struct config *config; /* as of the start of the request */
    const struct route *route;
    const char *method; /* "GET" also for HEAD */
    const char *path;   /* percent-decoded, without the query */
    int64_t id;         /* value of {id} in the pattern, at least 1 */
    int64_t token;      /* id of the token sent; 0: none */
    unsigned rights;    /* RIGHT() bits */
    bool on_socket;     /* received on the unix socket */
    const char *host;   /* Host header; NULL: not sent */
    const char *body;
    size_t body_bytes;
    const char *accept, *idempotency_key, *if_none_match, *last_event_id, *prefer, *range,
        *if_range; /* header values, NULL: not sent */
    struct {
        const char *name, *value;
    } query[QUERY_MAX];
    int query_count;
    char client[64];             /* "token 7", an address, or "unix" */
    char who[REQUEST_WHO_BYTES]; /* "user:NAME" (unix socket) or "token:NAME"; "": unknown */
};

/* Fills *r and returns 0, or returns a negative error with *e, which is sent as a problem. A
 * handler may also write a more detailed problem itself and return 0. Handlers run on several
 * threads and keep no state. */
typedef int route_handler(const struct request *q, struct reply *r, struct error *e);

struct route {
    const char *method;
    const char *pattern;    /* "/v1/jobs/{id}/evals"; {id} matches a positive integer, other {words}
                               match any segment */
    route_handler *handler; /* NULL: not supported by this version (501) */
    enum role role;         /* lowest role that may use it */
    const char *parameters; /* names of query parameters, separated by spaces */
    int success;            /* status on success */
    const char *summary;
};
const struct route *route_at(size_t i); /* NULL after the last */

/* Finds the route for a method and a path and sets *id to {id}. Returns NULL with *e:
 * ERR_NOT_FOUND, ERR_USAGE (an invalid id), or ERR_METHOD with the value for the Allow header in
 * `allow`. */
const struct route *route_find(const char *method, const char *path, int64_t *id, char *allow,
                               size_t allow_bytes, struct error *e);

/* Returns whether the handler copies or reads whole files, which may take seconds. */
bool route_reads_files(const struct route *route);

/* ERR_USAGE if a query parameter is unknown or repeated; the error lists the known ones. */
int route_check_query(const struct request *q, struct error *e);

const char *request_query(const struct request *q, const char *name);
/* Parses an integer parameter, or returns `fallback` if it was not sent. ERR_USAGE. */
int request_query_int(const struct request *q, const char *name, int64_t minimum, int64_t maximum,
                      int64_t fallback, int64_t *value, struct error *e);

/* Looks up a parameter's value among name_at(0), name_at(1), ... up to NULL. *index is unchanged if
 * it was not sent. ERR_USAGE lists the allowed values. */
int request_query_word(const struct request *q, const char *name, const char *name_at(size_t),
                       size_t *index, struct error *e);

/* Whether the answer is to be CSV, by the parameter format (json or csv) or the header Accept.
 * ERR_USAGE. */
int request_query_csv(const struct request *q, bool *csv, struct error *e);

/* Validates the Idempotency-Key, if sent, and computes the digest of the body. ERR_USAGE. */
int request_key(const struct request *q, char digest[DIGEST_BYTES], struct error *e);

/* Handlers, defined in handlers/handle_*.c by subject, handle_index.c and static.c. */
route_handler handle_plan, handle_preset_times, handle_job_submit, handle_speeds, handle_speed_add;
route_handler handle_job_show, handle_job_cancel, handle_job_hold, handle_job_release,
    handle_job_priority, handle_job_remove;
route_handler handle_job_list, handle_job_label, handle_job_resume, handle_compare;
route_handler handle_metrics, handle_evals, handle_throughput;
route_handler handle_confusion, handle_confusion_image;
route_handler handle_events, handle_all_events, handle_ranks;
route_handler handle_log, handle_trace, handle_layers, handle_predictions;
route_handler handle_checkpoints, handle_checkpoint;
route_handler handle_provenance, handle_pinned, handle_reproduction;
route_handler handle_mllog, handle_tensorboard, handle_archive;
route_handler handle_sweep_create, handle_sweep_plan, handle_sweep_list, handle_sweep_show,
    handle_sweep_cancel;
route_handler handle_nodes, handle_node, handle_node_report;
route_handler handle_usage, handle_forecasts, handle_failures, handle_prometheus;
route_handler handle_schema, handle_presets, handle_openapi, handle_healthz, handle_readyz,
    handle_whoami, handle_index, handle_static;
route_handler handle_token_create, handle_token_list, handle_token_revoke;
route_handler handle_audit, handle_backup, handle_backup_tokens;
route_handler handle_notice_list, handle_notice_test;
