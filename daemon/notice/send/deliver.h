/* The thread that sends what waits in the outbox. */
#pragma once

#include <stdatomic.h>

#include "daemon/notice/notice_settings.h"
#include "daemon/store/store.h"

/* Targets: of them so many of one user, and so many at one host, so that those that do not answer
 * hold up their own user's and host's. What the administrator's rules send has a user's share. */
#define DELIVER_AT_ONCE  16
#define DELIVER_OF_OWNER 4
#define DELIVER_OF_HOST  8

struct deliver;

/* Asked for before each look at the outbox; gives a reference. */
typedef struct notice_settings *deliver_settings(void *context);

int deliver_create(struct store *store, deliver_settings *settings, void *context,
                   struct deliver **out, struct error *e);
int deliver_start(struct deliver *d, struct error *e);
void deliver_wake(struct deliver *d); /* there is something new; from any thread, does not wait */

struct deliver_counts {
    int64_t delivered, failed, attempts;
};
void deliver_count(const struct deliver *d, struct deliver_counts *counts);

void deliver_destroy(struct deliver *d); /* NULL is fine */
