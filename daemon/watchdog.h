/* Reports to systemd (WatchdogSec) that the job manager's loop runs. Up to a minute of waiting for
 * the database's writer is not a hang: a restarted daemon would wait for the same lock. */
#pragma once

#include "daemon/store/store.h"

struct watchdog;

/* Called by the thread to be watched. *out is NULL if systemd does not watch this process. */
int watchdog_start(struct store *store, struct watchdog **out, struct error *e);

/* Call it in each round of the loop. Returns the seconds until it is due again; NULL: never. */
double watchdog_round(struct watchdog *w);

void watchdog_stop(struct watchdog *w); /* NULL-safe */
