/* The thread that sends the notices of the outbox. */
#pragma once

#include <stdatomic.h>

#include "daemon/notice/notice_settings.h"
#include "daemon/store/store.h"

/* Limits of one user and one host, so that targets that do not answer hold up nobody else's. The
 * administrator's rules count as one user. */
#define DELIVER_MAX_CONCURRENT 16
#define DELIVER_MAX_OF_OWNER   4
#define DELIVER_MAX_OF_HOST    8

struct deliver;

typedef struct notice_settings *deliver_settings(void *context); /* returns a reference */

struct deliver *deliver_create(struct store *store, deliver_settings *settings, void *context);
int deliver_start(struct deliver *d, struct error *e);
void deliver_wake(struct deliver *d); /* to look at the outbox; from any thread, does not wait */

struct deliver_counts {
    int64_t delivered, failed, attempts;
};
void deliver_count(const struct deliver *d, struct deliver_counts *counts);

void deliver_destroy(struct deliver *d); /* NULL is fine */
