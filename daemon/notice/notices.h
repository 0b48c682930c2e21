/* Notices (doc/notices.md): facts of the store -> raise.c -> outbox.c -> deliver.c -> post.c,
 * mail.c. Sent at least once, in order per target, until accepted or given up. Thread-safe. */
#pragma once

#include "daemon/notice/notice_settings.h"
#include "daemon/notice/outbox.h"

struct notices;

/* Sends nothing before notices_start. Takes ownership of the reference to first. */
struct notices *notices_create(struct store *store, struct notice_settings *first);
int notices_start(struct notices *n, struct error *e);

/* Takes ownership of the reference. */
void notices_set(struct notices *n, struct notice_settings *fresh);

#define NOTICES_TESTS_A_MINUTE 10

/* Adds a notice of kind test, which is sent only once. owner: the requesting user; NULL: unnamed.
 * *wait_seconds (NULL: no rate limit): after ERR_TOO_MANY, time until the next one is allowed. */
int notices_test(struct notices *n, const char *target, enum notice_format format,
                 const char *owner, int64_t *id, int *wait_seconds, struct error *e);

struct notices_counts {
    int64_t raised, delivered, failed, attempts;
};
void notices_count(const struct notices *n, struct notices_counts *counts);

void notices_destroy(struct notices *n); /* NULL-safe */
