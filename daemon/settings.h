/*
 * The settings of a running daemon, as reference-counted snapshots that never change: a request
 * sees the same settings from its first byte to its answer. Thread-safe.
 */
#pragma once

#include "daemon/config.h"

struct settings;

struct settings *settings_create(struct config *first); /* takes over what it holds, empties it */
void settings_destroy(struct settings *s); /* snapshots that are held live on; NULL is fine */

const struct config *settings_get(struct settings *s); /* a reference, for settings_release */
void settings_release(const struct config *snapshot);  /* NULL is fine */

/* Makes fresh the current snapshot and empties it, with the values of before where a key needs a
 * restart (config_inherit). */
void settings_replace(struct settings *s, struct config *fresh, struct config_changes *changes);
