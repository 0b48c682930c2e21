/*
 * From what the store is about to keep to notices in the outbox: whom do the job's document and the
 * administrator's rules want to be told? Runs inside the store's transaction.
 */
#pragma once

#include "daemon/notice/notice_settings.h"
#include "daemon/store/store.h"

/* *raised grows by the notices that were written. */
int raise_fact(struct sql *c, const char *database_uuid, const struct notice_settings *settings,
               const struct store_fact *fact, int *raised, struct error *e);
