#include "tests/powercut/power_vfs.h"

#include <limits.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const power_loss_names[POWER_LOSSES] = {"all lost", "in order", "any sectors",
                                                    "none lost"};

#define FILES_MAX 8 /* the database, its log, a journal */

/* A write, or where data is NULL a new size. */
struct change {
    sqlite3_int64 at;
    size_t bytes;
    uint8_t *data;
};

/* Bytes as they lie on a disk. */
struct image {
    uint8_t *data;
    size_t bytes, room;
};

struct disk_file {
    char path[PATH_MAX];
    bool entry;     /* the name is there */
    bool was_there; /* the name as the disk has it: a new or removed one may be lost */
    struct image synced;
    struct change *changes;
    size_t count, room;
};

struct power_file {
    sqlite3_file base;
    struct disk_file *disk; /* NULL: not ours */
    sqlite3_file *below;
};

static struct disk_file files[FILES_MAX];
static char power_folder[PATH_MAX];
static power_sync_point *sync_point;
static void *sync_context;
static sqlite3_vfs *below_vfs, power_vfs;

uint64_t power_draw(uint64_t *random, uint64_t below)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return (*random >> 11) % below;
}

static void *power_memory(void *old, size_t bytes)
{
    void *out = realloc(old, bytes ? bytes : 1);

    if (!out)
        abort();
    return out;
}

/* ---- images */

static void image_resize(struct image *i, size_t bytes)
{
    if (bytes > i->room)
        i->data = power_memory(i->data, i->room = 2 * bytes);
    if (bytes > i->bytes)
        memset(i->data + i->bytes, 0, bytes - i->bytes);
    i->bytes = bytes;
}

static void image_write(struct image *i, sqlite3_int64 at, const uint8_t *data, size_t bytes)
{
    size_t end = (size_t)at + bytes;

    if (bytes == 0)
        return;
    image_resize(i, end > i->bytes ? end : i->bytes);
    memcpy(i->data + at, data, bytes);
}

static void image_change(struct image *i, const struct change *c)
{
    if (c->data)
        image_write(i, c->at, c->data, c->bytes);
    else
        image_resize(i, (size_t)c->at);
}

/* Sectors of the file that the write touches; each is kept or not. The size of a file is one number
 * in its inode: where a part of a write is kept that makes the file longer, it is as long as with
 * all of it. */
static void image_tear(struct image *i, const struct change *c, size_t keep_first, uint64_t *random)
{
    size_t number = 0;

    for (size_t from = 0, to; from < c->bytes; from = to, number++) {
        size_t place = (size_t)c->at + from;
        to = from + POWER_SECTOR_BYTES - place % POWER_SECTOR_BYTES;
        to = to < c->bytes ? to : c->bytes;
        if (random ? power_draw(random, 2) : number < keep_first)
            image_write(i, (sqlite3_int64)place, c->data + from, to - from);
        if (i->bytes > (size_t)c->at && i->bytes < (size_t)c->at + c->bytes)
            image_resize(i, (size_t)c->at + c->bytes);
    }
}

/* ---- what is there */

static struct disk_file *disk_of(const char *path)
{
    struct disk_file *unused = NULL;

    if (!path || strncmp(path, power_folder, strlen(power_folder)) != 0)
        return NULL;
    for (int i = 0; i < FILES_MAX; i++) {
        if (strcmp(files[i].path, path) == 0)
            return &files[i];
        if (!unused && !files[i].path[0])
            unused = &files[i];
    }
    if (!unused)
        abort();
    snprintf(unused->path, sizeof unused->path, "%s", path);
    return unused;
}

static void disk_note(struct disk_file *d, sqlite3_int64 at, const void *data, size_t bytes)
{
    if (d->count == d->room)
        d->changes = power_memory(d->changes, (d->room = 2 * d->room + 16) * sizeof *d->changes);
    struct change *c = &d->changes[d->count++];
    *c = (struct change){at, bytes, NULL};
    if (data)
        c->data = memcpy(power_memory(NULL, bytes), data, bytes);
}

static void disk_forget(struct disk_file *d)
{
    for (size_t i = 0; i < d->count; i++)
        free(d->changes[i].data);
    d->count = 0;
}

static void disk_sync(struct disk_file *d)
{
    for (size_t i = 0; i < d->count; i++)
        image_change(&d->synced, &d->changes[i]);
    disk_forget(d);
    d->was_there = d->entry;
}

/* ---- what the store does to files without SQLite (the linker leads its calls here: --wrap) */

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);

/* Until the folder is synced the disk may have the old name or the new one. */
int __wrap_rename(const char *from, const char *to)
{
    struct disk_file *old = disk_of(from), *new = disk_of(to);
    int status = __real_rename(from, to);

    if (status || !old || !new)
        return status;
    disk_forget(new);
    new->synced.bytes = 0;
    image_write(&new->synced, 0, old->synced.data, old->synced.bytes);
    for (size_t i = 0; i < old->count; i++)
        disk_note(new, old->changes[i].at, old->changes[i].data, old->changes[i].bytes);
    new->entry = true;
    old->entry = false;
    return 0;
}

void __real_file_sync_dir_of(const char *path);
void __wrap_file_sync_dir_of(const char *path);

void __wrap_file_sync_dir_of(const char *path)
{
    if (disk_of(path)) {
        sync_point(sync_context);
        for (int i = 0; i < FILES_MAX && files[i].path[0]; i++)
            files[i].was_there = files[i].entry;
    }
    __real_file_sync_dir_of(path);
}

/* ---- the cut */

static void lose(struct image *i, const struct disk_file *d, enum power_loss loss, uint64_t *random)
{
    size_t whole = loss == POWER_NONE_LOST              ? d->count
                   : loss == POWER_IN_ORDER && d->count ? power_draw(random, d->count)
                                                        : 0;

    for (size_t n = 0; n < whole; n++)
        image_change(i, &d->changes[n]);
    if (loss == POWER_IN_ORDER && d->count && d->changes[whole].data)
        image_tear(i, &d->changes[whole],
                   power_draw(random, d->changes[whole].bytes / POWER_SECTOR_BYTES + 1), NULL);
    for (size_t n = 0; n < d->count && loss == POWER_ANY_SECTOR; n++) {
        if (d->changes[n].data)
            image_tear(i, &d->changes[n], 0, random);
        else if (power_draw(random, 2))
            image_change(i, &d->changes[n]);
    }
}

static void power_leave(const char *to, const struct disk_file *d, enum power_loss loss,
                        uint64_t *random)
{
    struct image image = {0};
    char path[2 * PATH_MAX];
    bool entry = loss == POWER_NONE_LOST || (loss != POWER_ALL_LOST && power_draw(random, 2))
                     ? d->entry
                     : d->was_there;

    if (!entry)
        return;
    if (d->synced.bytes)
        image_write(&image, 0, d->synced.data, d->synced.bytes);
    lose(&image, d, loss, random);
    snprintf(path, sizeof path, "%s%s", to, d->path + strlen(power_folder));
    FILE *out = fopen(path, "wb");
    if (!out || fwrite(image.data, 1, image.bytes, out) != image.bytes || fclose(out))
        abort();
    free(image.data);
}

void power_vfs_cut(const char *to, enum power_loss loss, uint64_t *random)
{
    for (int i = 0; i < FILES_MAX && files[i].path[0]; i++)
        power_leave(to, &files[i], loss, random);
}

/* ---- files */

static struct power_file *power_of(sqlite3_file *file)
{
    return (struct power_file *)file;
}

static sqlite3_file *below_of(sqlite3_file *file)
{
    return power_of(file)->below;
}

static int power_close(sqlite3_file *file)
{
    int status = below_of(file)->pMethods->xClose(below_of(file));

    free(below_of(file));
    return status;
}

static int power_read(sqlite3_file *file, void *data, int bytes, sqlite3_int64 at)
{
    return below_of(file)->pMethods->xRead(below_of(file), data, bytes, at);
}

static int power_write(sqlite3_file *file, const void *data, int bytes, sqlite3_int64 at)
{
    if (power_of(file)->disk)
        disk_note(power_of(file)->disk, at, data, (size_t)bytes);
    return below_of(file)->pMethods->xWrite(below_of(file), data, bytes, at);
}

static int power_truncate(sqlite3_file *file, sqlite3_int64 bytes)
{
    if (power_of(file)->disk)
        disk_note(power_of(file)->disk, bytes, NULL, 0);
    return below_of(file)->pMethods->xTruncate(below_of(file), bytes);
}

static int power_sync(sqlite3_file *file, int flags)
{
    (void)flags;
    if (power_of(file)->disk) {
        sync_point(sync_context);
        disk_sync(power_of(file)->disk);
    }
    return SQLITE_OK;
}

static int power_size(sqlite3_file *file, sqlite3_int64 *bytes)
{
    return below_of(file)->pMethods->xFileSize(below_of(file), bytes);
}

static int power_lock(sqlite3_file *file, int level)
{
    return below_of(file)->pMethods->xLock(below_of(file), level);
}

static int power_unlock(sqlite3_file *file, int level)
{
    return below_of(file)->pMethods->xUnlock(below_of(file), level);
}

static int power_check_lock(sqlite3_file *file, int *reserved)
{
    return below_of(file)->pMethods->xCheckReservedLock(below_of(file), reserved);
}

static int power_control(sqlite3_file *file, int op, void *argument)
{
    return below_of(file)->pMethods->xFileControl(below_of(file), op, argument);
}

static int power_sector(sqlite3_file *file)
{
    return below_of(file)->pMethods->xSectorSize(below_of(file));
}

static int power_device(sqlite3_file *file)
{
    return below_of(file)->pMethods->xDeviceCharacteristics(below_of(file));
}

/* The log's index is shared memory, which no power cut leaves. */
static int power_map(sqlite3_file *file, int page, int bytes, int extend, void volatile **data)
{
    return below_of(file)->pMethods->xShmMap(below_of(file), page, bytes, extend, data);
}

static int power_shm_lock(sqlite3_file *file, int from, int count, int flags)
{
    return below_of(file)->pMethods->xShmLock(below_of(file), from, count, flags);
}

static void power_barrier(sqlite3_file *file)
{
    below_of(file)->pMethods->xShmBarrier(below_of(file));
}

static int power_unmap(sqlite3_file *file, int remove)
{
    return below_of(file)->pMethods->xShmUnmap(below_of(file), remove);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = power_close,
    .xRead = power_read,
    .xWrite = power_write,
    .xTruncate = power_truncate,
    .xSync = power_sync,
    .xFileSize = power_size,
    .xLock = power_lock,
    .xUnlock = power_unlock,
    .xCheckReservedLock = power_check_lock,
    .xFileControl = power_control,
    .xSectorSize = power_sector,
    .xDeviceCharacteristics = power_device,
    .xShmMap = power_map,
    .xShmLock = power_shm_lock,
    .xShmBarrier = power_barrier,
    .xShmUnmap = power_unmap,
};

static int power_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags, int *out)
{
    struct power_file *f = power_of(file);

    (void)vfs;
    f->base.pMethods = NULL;
    f->below = power_memory(NULL, (size_t)below_vfs->szOsFile);
    memset(f->below, 0, (size_t)below_vfs->szOsFile);
    int status = below_vfs->xOpen(below_vfs, path, f->below, flags, out);
    if (status) {
        free(f->below);
        return status;
    }
    f->base.pMethods = &methods;
    f->disk = disk_of(path);
    if (f->disk)
        f->disk->entry = true;
    return SQLITE_OK;
}

static int power_delete(sqlite3_vfs *vfs, const char *path, int sync_folder)
{
    struct disk_file *d = disk_of(path);
    int status = below_vfs->xDelete(below_vfs, path, sync_folder);

    (void)vfs;
    if (d && status == SQLITE_OK) {
        d->entry = false;
        if (sync_folder) {
            d->was_there = false;
            disk_forget(d);
            d->synced.bytes = 0;
        }
    }
    return status;
}

void power_vfs_begin(const char *folder, power_sync_point *point, void *context)
{
    snprintf(power_folder, sizeof power_folder, "%s", folder);
    sync_point = point;
    sync_context = context;
    below_vfs = sqlite3_vfs_find("unix");
    power_vfs = *below_vfs;
    power_vfs.zName = "power";
    power_vfs.szOsFile = sizeof(struct power_file);
    power_vfs.xOpen = power_open;
    power_vfs.xDelete = power_delete;
    sqlite3_vfs_register(&power_vfs, 1);
}
