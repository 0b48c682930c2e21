#include "common/dataset/dataset.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/dataset/list.h"
#include "common/dataset/manifest.h"
#include "common/file.h"
#include "common/tf_example.h"
#include "common/tfrecord.h"

#define IMAGE_FILE_LIMIT_BYTES (256u << 20) /* of one JPEG in a class folder */

struct dataset {
    struct dataset_list list;
    const uint8_t **maps; /* (files) of shards; NULL where not mapped */
    struct dataset_entry *entries;
    int64_t images, room;
};

static int add_entry(struct dataset *d, struct dataset_entry entry, struct error *e)
{
    if (d->images == d->room) {
        int64_t room = d->room ? 2 * d->room : 1024;
        struct dataset_entry *larger = realloc(d->entries, (size_t)room * sizeof *larger);
        if (!larger)
            return error_set(e, ERR_NO_MEMORY, "no memory for an index of %" PRId64 " images",
                             room);
        d->entries = larger;
        d->room = room;
    }
    d->entries[d->images++] = entry;
    return 0;
}

static int map_shard(struct dataset *d, size_t file, struct error *e)
{
    const char *name = d->list.files[file];
    struct stat st;
    int fd = open(name, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return error_set_errno(e, errno, "cannot open %s", name);
    if (fstat(fd, &st) || st.st_size == 0) {
        close(fd);
        return error_set(e, ERR_CORRUPT, "%s is empty", name);
    }
    d->list.bytes[file] = (uint64_t)st.st_size;
    void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    int reason = errno;
    close(fd);
    if (map == MAP_FAILED)
        return error_set_errno(e, reason, "cannot map %s", name);
    d->maps[file] = map;
    return 0;
}

static int index_shard(struct dataset *d, size_t file, struct error *e)
{
    uint64_t bytes, offset = 0, payload;
    int rc = map_shard(d, file, e);

    if (rc)
        return rc;
    bytes = d->list.bytes[file];
    /* The walk touches a few bytes a record: reading ahead would read the whole shard. */
    madvise((void *)d->maps[file], bytes, MADV_RANDOM);
    while (offset < bytes && rc == 0) {
        rc = tfrecord_frame(d->maps[file], bytes, d->list.files[file], offset, &payload, e);
        if (rc)
            break;
        struct dataset_entry entry = {(uint32_t)file, -1, offset, payload};
        rc = add_entry(d, entry, e);
        offset += TFRECORD_HEADER_BYTES + payload + TFRECORD_FOOTER_BYTES;
    }
    madvise((void *)d->maps[file], bytes, MADV_NORMAL);
    return rc;
}

static int index_files(struct dataset *d, struct error *e)
{
    int rc = 0;

    if (d->list.format == DATASET_TFRECORD) {
        d->maps = calloc(d->list.count, sizeof *d->maps);
        if (!d->maps)
            return error_set(e, ERR_NO_MEMORY, "no memory for the list of shards");
    }
    for (size_t i = 0; i < d->list.count && rc == 0; i++) {
        struct dataset_entry image = {(uint32_t)i, d->list.labels[i], 0, d->list.bytes[i]};
        rc = d->maps ? index_shard(d, i, e) : add_entry(d, image, e);
    }
    return rc;
}

int dataset_open(const char *path, enum dataset_role role, struct dataset **out, struct error *e)
{
    struct dataset *d = calloc(1, sizeof *d);

    *out = NULL;
    if (!d)
        return error_set(e, ERR_NO_MEMORY, "no memory for a data set");
    int rc = dataset_list(path, role, &d->list, e);
    if (rc == 0)
        rc = index_files(d, e);
    if (rc) {
        dataset_close(d);
        return rc;
    }
    *out = d;
    return 0;
}

void dataset_close(struct dataset *d)
{
    if (!d)
        return;
    for (size_t i = 0; d->maps && i < d->list.count; i++)
        if (d->maps[i])
            munmap((void *)d->maps[i], d->list.bytes[i]);
    free(d->maps);
    free(d->entries);
    dataset_list_free(&d->list);
    free(d);
}

enum dataset_format dataset_format(const struct dataset *d)
{
    return d->list.format;
}

int64_t dataset_images(const struct dataset *d)
{
    return d->images;
}

const struct dataset_entry *dataset_entry(const struct dataset *d, int64_t i)
{
    return &d->entries[i];
}

const char *dataset_file(const struct dataset *d, uint32_t file)
{
    return d->list.files[file];
}

int dataset_count(const char *path, enum dataset_role role, int64_t *images, struct error *e)
{
    struct dataset_list list;
    struct dataset *d;

    *images = 0;
    if (strcmp(path, "synthetic") == 0)
        return 0;
    int rc = dataset_list(path, role, &list, e);
    if (rc == 0 && list.format == DATASET_FOLDER) {
        *images = (int64_t)list.count;
    } else if (rc == 0 && !manifest_count(&list, images)) {
        rc = dataset_open(path, role, &d, e);
        if (rc == 0)
            *images = dataset_images(d);
        dataset_close(rc ? NULL : d);
    }
    dataset_list_free(&list);
    return rc;
}

static int read_record(const struct dataset *d, const struct dataset_entry *entry,
                       struct dataset_image *image, struct error *e)
{
    const uint8_t *file = d->maps[entry->file];
    const char *name = d->list.files[entry->file];
    struct tf_example_view view;

    int rc = tfrecord_check(file, name, entry->offset, entry->bytes, e);
    if (rc)
        return rc;
    rc = tf_example_parse(file + entry->offset + TFRECORD_HEADER_BYTES, entry->bytes, &view, e);
    if (rc)
        return error_prefix(e, "%s, record at byte %" PRIu64, name, entry->offset);
    if (view.label < INT32_MIN + 1 || view.label > INT32_MAX)
        return error_set(e, ERR_CORRUPT,
                         "%s, record at byte %" PRIu64 ": the label %" PRId64 " is no class number",
                         name, entry->offset, view.label);
    image->jpeg = view.jpeg;
    image->jpeg_bytes = view.jpeg_bytes;
    image->label = (int32_t)(view.label - 1);
    memcpy(image->name, view.filename, sizeof image->name);
    memcpy(image->text, view.text, sizeof image->text);
    return 0;
}

static int read_file(const struct dataset *d, const struct dataset_entry *entry,
                     struct dataset_image *image, struct error *e)
{
    const char *path = d->list.files[entry->file], *name = strrchr(path, '/') + 1;
    char *bytes;

    int rc = file_read(path, IMAGE_FILE_LIMIT_BYTES, &bytes, &image->jpeg_bytes, e);
    if (rc)
        return rc;
    image->owned = bytes;
    image->jpeg = image->owned;
    image->label = entry->label;
    snprintf(image->name, sizeof image->name, "%s", name);
    return 0;
}

int dataset_read(struct dataset *d, int64_t i, struct dataset_image *image, struct error *e)
{
    const struct dataset_entry *entry = &d->entries[i];

    *image = (struct dataset_image){0};
    return d->maps ? read_record(d, entry, image, e) : read_file(d, entry, image, e);
}

void dataset_image_release(struct dataset_image *image)
{
    free(image->owned);
    image->owned = NULL;
    image->jpeg = NULL;
}
