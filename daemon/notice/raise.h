/*
 * Turns facts that the store is about to commit into notices, as the job's document and the
 * administrator's rules ask for. Runs inside the store's transaction, so a notice states what was
 * true then. Its body has the keys and units of the API:
 *
 *     {"kind", "t", "reason", "job": {...} | null, "evals": [...], "event": {...} | null,
 *      "sweep": {...} | null, "node": {...} | null}
 */
#pragma once

#include "daemon/notice/notice_settings.h"
#include "daemon/store/store.h"

/* Adds the number of notices written to *raised. */
int raise_fact(struct sql *c, const char *database_uuid, const struct notice_settings *settings,
               const struct store_fact *fact, int *raised, struct error *e);
