/*
 * From what the store is about to keep to notices in the outbox: whom do the job's document and the
 * administrator's rules want to be told? Runs inside the store's transaction.
 */
#ifndef TRAIND_DAEMON_NOTICE_RAISE_H
#define TRAIND_DAEMON_NOTICE_RAISE_H

#include "daemon/notice/notice_settings.h"
#include "daemon/store/store.h"

/* *raised grows by the notices that were written. */
int raise_fact(struct sql *c, const char *database_uuid, const struct notice_settings *settings,
               const struct store_fact *fact, int *raised, struct error *e);

/* Something about a job that is none of the store's facts. reason: words for a person. key: what
 * happened; the same key of the same job and kind is told once. */
struct raise_event {
    enum notice_kind kind;
    int64_t job_id;
    const char *reason, *key;
    double t;
};
int raise_job_event(struct sql *c, const char *database_uuid,
                    const struct notice_settings *settings, const struct raise_event *event,
                    int *raised, struct error *e);

#endif
