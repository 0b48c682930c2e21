#include "common/dataset/index.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/dataset/tfrecord.h"
#include "common/log.h"
#include "common/run/stall_report.h"
#include "common/system/file.h"
#include "common/system/open_beneath.h"

#define MAGIC             0x31584449444e5254u /* "TRNDIDX1" in little-endian byte order */
#define INDEX_LIMIT_BYTES ((size_t)16 << 30)

/* The file consists of a header; for each key (shard or class folder) its number of images, name,
 * size and time; for each image the size of its record, or the size and name of its file. Names are
 * length-prefixed. */
struct header {
    uint64_t magic, body_bytes;
    uint32_t body_crc;
    uint32_t format; /* enum dataset_format */
    uint64_t keys;
};

static bool index_of_shards(const struct dataset_list *list)
{
    return list->format == DATASET_TFRECORD;
}

static size_t index_key_count(const struct dataset_list *list)
{
    return index_of_shards(list) ? list->count : (size_t)list->class_count;
}

static const char *index_key_name(const struct dataset_list *list, size_t i)
{
    return index_of_shards(list) ? file_base_name(list->files[i]) : list->classes[i];
}

static uint64_t index_key_bytes(const struct dataset_list *list, size_t i)
{
    return index_of_shards(list) ? list->bytes[i] : 0;
}

static int64_t index_key_changed_ns(const struct dataset_list *list, size_t i)
{
    return index_of_shards(list) ? list->changed_ns[i] : list->class_changed_ns[i];
}

static void index_place_beside(const struct dataset_list *list, char path[PATH_MAX])
{
    const char *kind = "classes";

    if (index_of_shards(list))
        kind = strncmp(file_base_name(list->files[0]), "train-", 6) == 0 ? "train" : "validation";
    file_path(path, NULL, "%s/.traind-index-%s", list->folder, kind);
}

static void index_place_in_cache(const struct dataset_list *list, char path[PATH_MAX])
{
    char beside[PATH_MAX], real[PATH_MAX], cache[PATH_MAX];

    path[0] = '\0';
    index_place_beside(list, beside);
    if (!realpath(list->folder, real) || !file_cache_folder(cache))
        return;
    file_path(path, NULL, "%s/%08x%s", cache, tfrecord_crc32c(real, strlen(real)),
              file_base_name(beside));
}

struct cursor {
    const char *at, *end;
    bool bad; /* a read was beyond the end */
};

static uint64_t index_take_u64(struct cursor *c)
{
    uint64_t value = 0;

    if (c->end - c->at < (ptrdiff_t)sizeof value) {
        c->bad = true;
        return 0;
    }
    memcpy(&value, c->at, sizeof value);
    c->at += sizeof value;
    return value;
}

static const char *index_read_name(struct cursor *c, size_t *length)
{
    uint64_t bytes = index_take_u64(c);
    const char *name = c->at;

    if (c->bad || bytes > (uint64_t)(c->end - c->at)) {
        c->bad = true;
        return NULL;
    }
    c->at += bytes;
    *length = bytes;
    return name;
}

static bool index_key_fits(struct cursor *c, const struct dataset_list *list, size_t i,
                           uint64_t *images)
{
    size_t length = 0;
    *images = index_take_u64(c);
    const char *name = index_read_name(c, &length);
    uint64_t bytes = index_take_u64(c), changed = index_take_u64(c);

    return !c->bad && strlen(index_key_name(list, i)) == length &&
           memcmp(index_key_name(list, i), name, length) == 0 &&
           bytes == index_key_bytes(list, i) && (int64_t)changed == index_key_changed_ns(list, i);
}

static bool index_load_shard(struct cursor *c, const struct dataset_list *list, size_t file,
                             uint64_t images, struct dataset_index *index)
{
    uint64_t offset = 0;
    struct error e;

    for (uint64_t i = 0; i < images; i++) {
        uint64_t left = list->bytes[file] - offset, bytes = index_take_u64(c);
        if (c->bad || bytes > left ||
            left - bytes < TFRECORD_HEADER_BYTES + TFRECORD_FOOTER_BYTES ||
            dataset_index_add(index, (struct dataset_entry){(uint32_t)file, -1, offset, bytes}, &e))
            return false;
        offset += TFRECORD_HEADER_BYTES + bytes + TFRECORD_FOOTER_BYTES;
    }
    return offset == list->bytes[file];
}

static bool index_load_class(struct cursor *c, struct dataset_list *list, size_t class,
                             uint64_t images)
{
    struct error e;

    for (uint64_t i = 0; i < images; i++) {
        size_t length = 0;
        uint64_t bytes = index_take_u64(c);
        const char *name = index_read_name(c, &length);
        char *path;
        if (c->bad || asprintf(&path, "%s/%s/%.*s", list->folder, list->classes[class], (int)length,
                               name) < 0)
            return false;
        if (dataset_list_add(list, path, bytes, 0, (int32_t) class, &e))
            return false;
    }
    return true;
}

/* The keys come first; their counts are read again with the images. */
static bool index_load_body(struct cursor c, struct dataset_list *list, struct dataset_index *index)
{
    size_t keys = index_key_count(list);
    uint64_t *images = calloc(keys + 1, sizeof *images);
    bool good = images != NULL;

    for (size_t i = 0; i < keys && good; i++)
        good = index_key_fits(&c, list, i, &images[i]);
    for (size_t i = 0; i < keys && good; i++)
        good = index_of_shards(list) ? index_load_shard(&c, list, i, images[i], index)
                                     : index_load_class(&c, list, i, images[i]);
    free(images);
    return good && c.at == c.end;
}

static void index_clear(struct dataset_list *list, struct dataset_index *index)
{
    if (!index_of_shards(list)) {
        for (size_t i = 0; i < list->count; i++)
            free(list->files[i]);
        list->count = 0;
    }
    index->images = 0;
}

static bool index_load_from(int fd, const char *path, struct dataset_list *list,
                            struct dataset_index *index)
{
    struct header h;
    struct error e;
    char *text;
    size_t bytes;

    if (fd < 0 || file_read_fd(fd, path, INDEX_LIMIT_BYTES, &text, &bytes, &e))
        return false;
    bool good = bytes >= sizeof h;
    if (good) {
        memcpy(&h, text, sizeof h);
        good = h.magic == MAGIC && h.body_bytes == bytes - sizeof h &&
               h.format == (uint32_t)list->format && h.keys == index_key_count(list) &&
               h.body_crc == tfrecord_crc32c(text + sizeof h, h.body_bytes);
    }
    if (good)
        good = index_load_body((struct cursor){text + sizeof h, text + bytes, false}, list, index);
    free(text);
    if (!good)
        index_clear(list, index);
    return good;
}

bool dataset_index_load(struct dataset_list *list, struct dataset_index *index)
{
    char path[PATH_MAX];
    struct error e;

    index_place_beside(list, path);
    bool good = index_load_from(open_beneath_file(path, &e), path, list, index);
    if (!good) {
        index_place_in_cache(list, path);
        good = path[0] && index_load_from(file_open(path, &e), path, list, index);
    }
    for (size_t i = 0; i < list->count && good && !index_of_shards(list); i++)
        good = dataset_index_add(
                   index, (struct dataset_entry){(uint32_t)i, list->labels[i], 0, list->bytes[i]},
                   &e) == 0;
    return good;
}

int dataset_index_add(struct dataset_index *index, struct dataset_entry entry, struct error *e)
{
    stall_progress_add(1);
    struct dataset_entry *larger =
        array_grow(index->entries, (size_t)index->images, &index->capacity, sizeof *larger);
    if (!larger)
        return error_set(e, ERR_NO_MEMORY, "no memory for an index of %" PRId64 " images",
                         index->images + 1);
    index->entries = larger;
    index->entries[index->images++] = entry;
    return 0;
}

static void index_put_u64(FILE *out, uint64_t value)
{
    fwrite(&value, sizeof value, 1, out);
}

static void index_put_name(FILE *out, const char *name)
{
    index_put_u64(out, strlen(name));
    fputs(name, out);
}

static void index_put_body(FILE *out, const struct dataset_list *list,
                           const struct dataset_index *index)
{
    const struct dataset_entry *entry = index->entries, *end = entry + index->images;

    for (size_t i = 0; i < index_key_count(list); i++) {
        uint64_t images = 0;
        while (entry < end && (index_of_shards(list) ? entry->file : (uint32_t)entry->label) == i) {
            images++;
            entry++;
        }
        index_put_u64(out, images);
        index_put_name(out, index_key_name(list, i));
        index_put_u64(out, index_key_bytes(list, i));
        index_put_u64(out, (uint64_t)index_key_changed_ns(list, i));
    }
    for (entry = index->entries; entry < end; entry++) {
        index_put_u64(out, entry->bytes);
        if (!index_of_shards(list))
            index_put_name(out, file_base_name(list->files[entry->file]));
    }
}

static bool index_is_settled(const struct dataset_list *list, double listed_at)
{
    for (size_t i = 0; i < index_key_count(list); i++)
        if (1e-9 * (double)index_key_changed_ns(list, i) > listed_at - 1)
            return false;
    return true;
}

static char *index_make(const struct dataset_list *list, const struct dataset_index *index,
                        size_t *bytes)
{
    struct header h = {.magic = MAGIC, .format = list->format, .keys = index_key_count(list)};
    char *text = NULL;
    FILE *out = open_memstream(&text, bytes);

    if (!out)
        return NULL;
    fwrite(&h, sizeof h, 1, out);
    index_put_body(out, list, index);
    if (fclose(out)) {
        free(text);
        return NULL;
    }
    h.body_bytes = *bytes - sizeof h;
    h.body_crc = tfrecord_crc32c(text + sizeof h, h.body_bytes);
    memcpy(text, &h, sizeof h);
    return text;
}

static int index_store_in_cache(const struct dataset_list *list, const char *text, size_t bytes,
                                struct error *e)
{
    char path[PATH_MAX];

    index_place_in_cache(list, path);
    if (!path[0])
        return error_set(e, ERR_NOT_FOUND, "there is no cache folder: HOME is not set");
    char *slash = strrchr(path, '/');
    *slash = '\0';
    int rc = file_make_dirs(path, e);
    *slash = '/';
    return rc ? rc : file_write_atomic(path, text, bytes, e);
}

/* Gives the index the permissions of the data, because a daemon's umask is restrictive. */
static void index_share_as_data(int folder, const char *name)
{
    struct stat st;

    if (fstat(folder, &st) || fchmodat(folder, name, (st.st_mode & 0444) | 0600, 0))
        log_debug("the index %s stays closed to other users", name);
}

static int index_store_beside(const struct dataset_list *list, const char *text, size_t bytes,
                              struct error *e)
{
    char path[PATH_MAX];
    int folder = open_beneath_folder(list->folder, e);

    if (folder < 0)
        return folder;
    index_place_beside(list, path);
    int rc = file_write_atomic_in(folder, file_base_name(path), text, bytes, e);
    if (rc == 0)
        index_share_as_data(folder, file_base_name(path));
    close(folder);
    return rc;
}

void dataset_index_store(const struct dataset_list *list, const struct dataset_index *index,
                         double listed_at)
{
    struct error beside, in_cache;
    size_t bytes;

    if (!index_is_settled(list, listed_at))
        return;
    char *text = index_make(list, index, &bytes);
    if (!text)
        return;
    if (index_store_beside(list, text, bytes, &beside) &&
        index_store_in_cache(list, text, bytes, &in_cache))
        log_info("cannot store the index of %s, so the next run will build it again: %s; %s",
                 list->folder, beside.text, in_cache.text);
    free(text);
}
