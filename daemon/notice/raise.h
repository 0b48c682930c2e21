/* Creates notices for facts in the transaction that stores them, so that they describe the state at
 * that time. Keys and units are those of the API:
 *
 * {"kind", "t", "reason", "job": {...} | null, "evals": [...], "event": {...} | null, "sweep":
 * {...} | null, "node": {...} | null} */
#pragma once

#include "daemon/notice/notice_settings.h"
#include "daemon/store/store.h"

/* Adds the number of written notices to *raised. */
int raise_fact(struct sql *c, const char *database_uuid, const struct notice_settings *settings,
               const struct store_fact *fact, int *raised, struct error *e);
