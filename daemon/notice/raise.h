/*
 * Makes notices of facts inside the transaction that stores them, so that they state what was true
 * then. Keys and units are those of the API:
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
