/*
 * The settings of a daemon that runs, as snapshots. A snapshot is never changed once it is here:
 * who works with settings takes a reference to the current one, reads all it needs from that, and
 * gives the reference back; the last one frees it. So a request sees the same settings from its
 * first byte to its answer, and a daemon may read them again as often as it is told to.
 * Thread-safe.
 */
#pragma once

#include "common/error.h"
#include "daemon/config.h"

struct settings;

/* Takes over what first holds and leaves it empty; on error it stays with the caller. */
int settings_create(struct config *first, struct settings **out, struct error *e);
void settings_destroy(struct settings *s); /* snapshots that are held live on; NULL is fine */

const struct config *settings_get(struct settings *s); /* a reference, for settings_release */
void settings_release(const struct config *snapshot);  /* NULL is fine */

/* Makes fresh the current snapshot and leaves it empty, with the values of before where a key needs
 * a restart (config_inherit). ERR_NO_MEMORY: nothing has changed. */
int settings_replace(struct settings *s, struct config *fresh, struct config_changes *changes,
                     struct error *e);
