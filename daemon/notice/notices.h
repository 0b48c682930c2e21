/*
 * Notices: who asked for it is told what became of a job, a sweep or a node, by a request or a
 * mail. doc/notices.md has the whole.
 *
 *     the store's facts -> raise.c (rules) -> outbox.c (table notice) -> deliver.c -> post.c,
 * mail.c
 *
 * A notice is written in the transaction that stores what it tells of, and sent until it is taken
 * or given up: at least once, to each target in order. A target that does not answer keeps nobody
 * else waiting. One thread sends, as many targets at a time as DELIVER_AT_ONCE. Thread-safe.
 */
#pragma once

#include "daemon/notice/notice_settings.h"
#include "daemon/notice/outbox.h"

struct notices;

/* From now on facts of the store become notices. Takes over the reference to first. Nothing is sent
 * before notices_start. */
int notices_create(struct store *store, struct notice_settings *first, struct notices **out,
                   struct error *e);
int notices_start(struct notices *n, struct error *e);

/* Takes over the reference: for what is raised or sent from now on. */
void notices_set(struct notices *n, struct notice_settings *fresh);

#define NOTICES_TESTS_A_MINUTE 10

/* A notice of kind test, which is sent once: its id. owner: who asked, NULL: nobody was named.
 * *wait_seconds (NULL: no limit): how long, after ERR_TOO_MANY, as this owner has asked for
 * NOTICES_TESTS_A_MINUTE within the last. */
int notices_test(struct notices *n, const char *target, enum notice_format format,
                 const char *owner, int64_t *id, int *wait_seconds, struct error *e);

/* Since the daemon has started. */
struct notices_counts {
    int64_t raised, delivered, failed, attempts;
};
void notices_count(const struct notices *n, struct notices_counts *counts);

/* Ends the thread; what was under way is sent again by the next daemon. */
void notices_destroy(struct notices *n); /* NULL is fine */
