/*
 * What a notice tells, collected inside the transaction that stores it, so that it is what was true
 * then: keys and units are those of the API.
 *
 *     {"kind", "t", "reason", "job": {...} | null, "evals": [...], "event": {...} | null,
 *      "sweep": {...} | null, "node": {...} | null}
 */
#pragma once

#include <jansson.h>

#include "common/notify/kind.h"
#include "daemon/store/store.h"

/* Who is concerned by a job or a sweep, and whom its document wants to be told. */
struct body_subject {
    char *owner;    /* of a sweep's job that of the sweep; NULL: nobody is known */
    json_t *notify; /* the list of the document; NULL: none */
    int64_t attempt;
    double target; /* eval.target_top1; NAN: none */
};
/* 0: found or not (all is empty then); negative: error. */
int body_job_subject(struct sql *c, int64_t job_id, struct body_subject *subject, struct error *e);
int body_sweep_subject(struct sql *c, int64_t sweep_id, struct body_subject *subject,
                       struct error *e);
void body_subject_clear(struct body_subject *subject);

struct body_parts {
    enum notice_kind kind;
    double t;
    const char *reason;       /* NULL: none */
    int64_t job_id, sweep_id; /* 0: none */
    const json_t *event;
    const struct store_node_check *check;
};
/* A new reference in *body. */
int body_make(struct sql *c, const struct body_parts *parts, json_t **body, struct error *e);
