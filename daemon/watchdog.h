/* Tells systemd (WatchdogSec) that the job manager's loop runs. Waiting for the database's writer
 * is no hang, for a minute: a restarted daemon would wait for the same lock. */
#pragma once

#include "daemon/store/store.h"

struct watchdog;

/* Called by the thread that is watched. *out is NULL where systemd does not watch this process. */
int watchdog_start(struct store *store, struct watchdog **out, struct error *e);

/* In each round of the loop; returns the seconds until it has to come round again. NULL: never. */
double watchdog_round(struct watchdog *w);

void watchdog_stop(struct watchdog *w); /* NULL is fine */
