/* The thread that sends the notices in the outbox. */
#pragma once

#include <stdatomic.h>

#include "daemon/notice/notice_settings.h"
#include "daemon/store/store.h"

/* Limits per user and per host, so that targets that do not answer do not delay others. The
 * administrator's rules count as one user. */
#define DELIVER_MAX_CONCURRENT 16
#define DELIVER_MAX_OF_OWNER   4
#define DELIVER_MAX_OF_HOST    8

struct deliver;

typedef struct notice_settings *deliver_settings(void *context); /* returns a reference */

struct deliver *deliver_create(struct store *store, deliver_settings *settings, void *context);
int deliver_start(struct deliver *d, struct error *e);
void deliver_wake(struct deliver *d); /* makes it check the outbox; thread-safe, does not block */

struct deliver_counts {
    int64_t delivered, failed, attempts;
};
void deliver_count(const struct deliver *d, struct deliver_counts *counts);

void deliver_destroy(struct deliver *d); /* NULL-safe */
