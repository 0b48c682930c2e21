/*
 * An SQLite VFS under which the power can be cut: beside each file that it opens below a folder it
 * keeps what a disk would hold, which is what was synced, and apart from that, in order, what was
 * written since. It wraps SQLite's own VFS for Unix, which handles other files. For one
 * thread.
 */
#pragma once

#include <stdint.h>

#define POWER_SECTOR_BYTES 512

/* What has reached the disk of what was not synced when the power goes. */
enum power_loss {
    POWER_ALL_LOST,   /* nothing */
    POWER_IN_ORDER,   /* the first so many writes, the last of them torn between two sectors */
    POWER_ANY_SECTOR, /* any sectors of any writes: reordered and torn */
    POWER_NONE_LOST,  /* all */
    POWER_LOSSES
};
extern const char *const power_loss_names[POWER_LOSSES];

/* Called whenever a file is about to be synced: here the power may be cut. */
typedef void power_sync_point(void *context);

/* Makes it the default VFS for files below the folder. */
void power_vfs_begin(const char *folder, power_sync_point *point, void *context);

/* Leaves in the folder `to` the files that a disk would hold if the power were cut now; what of the
 * unsynced is among it is drawn from the state of a random number generator (not 0). */
void power_vfs_cut(const char *to, enum power_loss loss, uint64_t *random);

uint64_t power_draw(uint64_t *random, uint64_t below);
