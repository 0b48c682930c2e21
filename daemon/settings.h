/* The settings of a running daemon, as immutable, reference-counted snapshots: a request uses the
 * same settings from its first byte to its response. Thread-safe. */
#pragma once

#include "daemon/config.h"

struct settings;

struct settings *settings_create(struct config *first); /* takes over the contents of *first */
void settings_destroy(struct settings *s); /* snapshots in use remain valid; NULL-safe */

const struct config *
settings_get(struct settings *s); /* returns a reference, for settings_release */
void settings_release(const struct config *snapshot); /* NULL-safe */

/* Replaces the current snapshot by the contents of *fresh, keeping the previous values of keys that
 * need a restart (config_inherit). */
void settings_replace(struct settings *s, struct config *fresh, struct config_changes *changes);
