#include "common/assert_always.h"
#include "common/dataset/dataset.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/dataset/index.h"
#include "common/dataset/file_list.h"
#include "common/dataset/manifest.h"
#include "common/dataset/shards.h"
#include "common/dataset/tf_example.h"
#include "common/dataset/tfrecord.h"
#include "common/system/file.h"
#include "common/system/open_beneath.h"
#include "common/xalloc.h"

#define IMAGE_FILE_LIMIT_BYTES (256u << 20) /* of an image file in a class folder */

#define DATASET_MAGIC 0xda7a5e75u

struct dataset {
    unsigned magic;
    struct dataset_list list;
    struct dataset_index index; /* index of all files */
    struct dataset_entry
        *owned; /* (images), the entries of the part; NULL if the part is the whole */
    int64_t images;
    struct shards *shards; /* NULL for class folders */
    int64_t classes;       /* from manifest.json; 0: unknown */
    double listed_at;      /* Unix time */
    bool was_kept;
};

static int dataset_index_shard(struct dataset *d, uint32_t file, struct error *e)
{
    uint64_t *lengths, count, offset = 0;
    int rc = shards_walk(&d->list, file, &lengths, &count, e);

    for (uint64_t i = 0; i < count && rc == 0; i++) {
        struct dataset_entry entry = {file, -1, offset, lengths[i]};
        rc = dataset_index_add(&d->index, entry, e);
        offset += TFRECORD_HEADER_BYTES + lengths[i] + TFRECORD_FOOTER_BYTES;
    }
    free(lengths);
    return rc;
}

/* Refuses empty shards if all are empty, or if the manifest lists images for one of them. */
static int dataset_check_empty_shards(const struct dataset_list *list, struct error *e)
{
    bool some = false, all = true;

    for (size_t i = 0; i < list->count; i++) {
        some = some || list->bytes[i] == 0;
        all = all && list->bytes[i] == 0;
    }
    if (all)
        return error_set(e, ERR_CORRUPT, "%s is empty, as are all shards in %s", list->files[0],
                         list->folder);
    return some ? manifest_check_empty(list, e) : 0;
}

static int dataset_make_index(struct dataset *d, struct error *e)
{
    bool shards = d->list.format == DATASET_TFRECORD;
    int rc = shards ? 0 : dataset_list_images(&d->list, e);

    for (uint32_t i = 0; i < d->list.count && rc == 0; i++) {
        struct dataset_entry image = {i, d->list.labels[i], 0, d->list.bytes[i]};
        rc = shards ? dataset_index_shard(d, i, e) : dataset_index_add(&d->index, image, e);
    }
    return rc;
}

static int dataset_take_part(struct dataset *d, struct dataset_part part, struct error *e)
{
    const struct dataset_entry *all = d->index.entries;
    bool owns = true;

    d->images = d->index.images;
    if (part.of == 1)
        return 0;
    d->owned = malloc((size_t)d->index.images * sizeof *d->owned);
    if (!d->owned)
        return error_set(e, ERR_NO_MEMORY, "no memory for an index of %" PRId64 " images",
                         d->index.images);
    d->images = 0;
    for (int64_t i = 0; i < d->index.images; i++) {
        if (i == 0 || all[i].file != all[i - 1].file)
            owns = dataset_list_node(&d->list, part.of, all[i].file) == part.number;
        if (owns)
            d->owned[d->images++] = all[i];
    }
    if (d->images > 0)
        return 0;
    return error_set(e, ERR_INVALID,
                     "%s has too few files to share out over %d nodes: node %d gets none",
                     d->list.folder, part.of, part.number);
}

static void dataset_open_shards(struct dataset *d)
{
    const char *why;
    json_t *classes = manifest_classes(&d->list, &why);

    d->classes = (int64_t)json_array_size(classes);
    json_decref(classes);
    d->shards = shards_create(&d->list);
}

int dataset_open_part(const char *path, enum dataset_role role, struct dataset_part part,
                      struct dataset **out, struct error *e)
{
    struct dataset *d = xcalloc(1, sizeof *d);

    *out = NULL;
    d->magic = DATASET_MAGIC;
    d->listed_at = clock_now();
    int rc = dataset_list_find(path, role, part, &d->list, e);
    if (rc == 0 && d->list.format == DATASET_TFRECORD)
        rc = dataset_check_empty_shards(&d->list, e);
    if (rc == 0)
        d->was_kept = dataset_index_load(&d->list, &d->index);
    if (rc == 0 && !d->was_kept)
        rc = dataset_make_index(d, e);
    if (rc == 0)
        rc = dataset_take_part(d, part, e);
    if (rc == 0 && d->list.format == DATASET_TFRECORD)
        dataset_open_shards(d);
    dataset_list_note_empty(&d->list);
    if (rc) {
        dataset_close(d);
        return rc;
    }
    *out = d;
    return 0;
}

int dataset_open(const char *path, enum dataset_role role, struct dataset **out, struct error *e)
{
    return dataset_open_part(path, role, (struct dataset_part){0, 1}, out, e);
}

void dataset_close(struct dataset *d)
{
    if (!d)
        return;
    assert_object_ends(d, DATASET_MAGIC);
    shards_destroy(d->shards);
    free(d->index.entries);
    free(d->owned);
    dataset_list_free(&d->list);
    free(d);
}

bool dataset_keep_index(const struct dataset *d)
{
    if (!d->was_kept)
        dataset_index_store(&d->list, &d->index, d->listed_at);
    return !d->was_kept;
}

enum dataset_format dataset_format(const struct dataset *d)
{
    assert_object(d, DATASET_MAGIC);
    return d->list.format;
}

int64_t dataset_images(const struct dataset *d)
{
    assert_object(d, DATASET_MAGIC);
    return d->images;
}

const struct dataset_entry *dataset_entry(const struct dataset *d, int64_t i)
{
    assert_object(d, DATASET_MAGIC);
    assert_always(i >= 0 && i < d->images);
    return d->owned ? &d->owned[i] : &d->index.entries[i];
}

const char *dataset_remarks(const struct dataset *d)
{
    return d->list.remarks;
}

const char *dataset_file(const struct dataset *d, uint32_t file)
{
    assert_object(d, DATASET_MAGIC);
    return d->list.files[file];
}

static void dataset_digest_add_number(struct digest *d, uint64_t number)
{
    digest_add(d, &number, sizeof number);
}

static void dataset_digest_add_name(struct digest *d, const char *name)
{
    dataset_digest_add_number(d, strlen(name));
    digest_add(d, name, strlen(name));
}

static void dataset_digest_add_files(struct digest *d, const struct dataset_list *list)
{
    dataset_digest_add_number(d, (uint64_t)list->format);
    for (int i = 0; i < list->class_count; i++)
        dataset_digest_add_name(d, list->classes[i]);
    for (size_t i = 0; i < list->count; i++) {
        dataset_digest_add_name(d, file_base_name(list->files[i]));
        dataset_digest_add_number(d, list->bytes[i]);
    }
}

static int64_t dataset_digest_newest_change(const struct dataset_list *list)
{
    int64_t newest = 0;

    for (size_t i = 0; i < list->count; i++)
        newest = list->changed_ns[i] > newest ? list->changed_ns[i] : newest;
    for (int i = 0; i < list->class_count; i++)
        newest = list->class_changed_ns[i] > newest ? list->class_changed_ns[i] : newest;
    return newest;
}

void dataset_digest(const struct dataset *d, struct dataset_digest *out)
{
    struct digest *sum = digest_begin();

    assert_object(d, DATASET_MAGIC);
    dataset_digest_add_files(sum, &d->list);
    for (int64_t i = 0; i < d->index.images; i++) {
        dataset_digest_add_number(sum, d->index.entries[i].bytes);
        dataset_digest_add_number(sum, (uint64_t)(int64_t)d->index.entries[i].label);
    }
    digest_end(sum, out->hex);
    out->images = d->index.images;
    out->changed = 1e-9 * (double)dataset_digest_newest_change(&d->list);
}

static void dataset_count_list_parts(const struct dataset_list *list, const int64_t *in_file,
                                     int nodes, struct dataset_counts *counts)
{
    int64_t *of_node = xcalloc((size_t)nodes, sizeof *of_node);

    for (size_t i = 0; i < list->count; i++) {
        counts->images += in_file[i];
        of_node[dataset_list_node(list, nodes, (uint32_t)i)] += in_file[i];
    }
    counts->least = of_node[0];
    for (int node = 0; node < nodes; node++) {
        counts->least = of_node[node] < counts->least ? of_node[node] : counts->least;
        counts->most = of_node[node] > counts->most ? of_node[node] : counts->most;
    }
    free(of_node);
}

static int dataset_count_by_index(const char *path, enum dataset_role role, int nodes,
                                  struct dataset_counts *counts, struct error *e)
{
    struct dataset *d;
    int rc = dataset_open(path, role, &d, e);

    if (rc)
        return rc;
    dataset_keep_index(d);
    int64_t *in_file = xcalloc(d->list.count, sizeof *in_file);
    for (int64_t i = 0; i < d->images; i++)
        in_file[d->index.entries[i].file]++;
    dataset_count_list_parts(&d->list, in_file, nodes, counts);
    memcpy(counts->remarks, d->list.remarks, sizeof counts->remarks);
    free(in_file);
    dataset_close(d);
    return 0;
}

int dataset_count_parts(const char *path, enum dataset_role role, int nodes,
                        struct dataset_counts *counts, struct error *e)
{
    struct dataset_list list;
    bool known = false;

    *counts = (struct dataset_counts){0};
    if (strcmp(path, "synthetic") == 0)
        return 0;
    int rc = dataset_list_find(path, role, (struct dataset_part){0, 1}, &list, e);
    if (rc == 0 && list.format == DATASET_TFRECORD) {
        int64_t *in_file = xcalloc(list.count, sizeof *in_file);
        known = manifest_count(&list, in_file);
        if (known)
            dataset_count_list_parts(&list, in_file, nodes, counts);
        memcpy(counts->remarks, list.remarks, sizeof counts->remarks);
        free(in_file);
    }
    dataset_list_free(&list);
    return rc || known ? rc : dataset_count_by_index(path, role, nodes, counts, e);
}

static int dataset_view_record(const struct dataset *d, const struct dataset_entry *entry,
                               struct dataset_image *image, struct error *e)
{
    const char *name = d->list.files[entry->file];
    const uint8_t *payload = (const uint8_t *)image->owned + TFRECORD_HEADER_BYTES;
    struct tf_example_view view;

    if (tf_example_parse(payload, entry->bytes, &view, e))
        return error_prefix(e, "%s, record at byte %" PRIu64, name, entry->offset);
    if (view.label < INT32_MIN + 1 || view.label > INT32_MAX)
        return error_set(e, ERR_CORRUPT,
                         "%s, record at byte %" PRIu64 ": the label %" PRId64 " is no class number",
                         name, entry->offset, view.label);
    if (d->classes && view.label > d->classes)
        return error_set(e, ERR_CORRUPT,
                         "%s, record at byte %" PRIu64 ": the label %" PRId64
                         " is beyond the %" PRId64 " classes that manifest.json names",
                         name, entry->offset, view.label, d->classes);
    image->jpeg = view.jpeg;
    image->jpeg_bytes = view.jpeg_bytes;
    image->label = (int32_t)(view.label - 1);
    memcpy(image->name, view.filename, sizeof image->name);
    memcpy(image->text, view.text, sizeof image->text);
    return 0;
}

static int dataset_read_record(const struct dataset *d, const struct dataset_entry *entry,
                               struct dataset_image *image, struct error *e)
{
    uint8_t *frame;
    int rc = shards_read(d->shards, entry, &frame, e);

    if (rc)
        return rc;
    image->owned = frame;
    rc = dataset_view_record(d, entry, image, e);
    if (rc)
        dataset_image_release(image);
    return rc;
}

static int dataset_read_file(const struct dataset *d, const struct dataset_entry *entry,
                             struct dataset_image *image, struct error *e)
{
    const char *path = d->list.files[entry->file], *name = file_base_name(path);
    char *bytes;

    int fd = open_beneath_file(path, e);
    if (fd < 0)
        return fd;
    int rc = file_read_fd(fd, path, IMAGE_FILE_LIMIT_BYTES, &bytes, &image->jpeg_bytes, e);
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
    const struct dataset_entry *entry = dataset_entry(d, i);

    *image = (struct dataset_image){0};
    return d->shards ? dataset_read_record(d, entry, image, e)
                     : dataset_read_file(d, entry, image, e);
}

void dataset_image_release(struct dataset_image *image)
{
    free(image->owned);
    image->owned = NULL;
    image->jpeg = NULL;
}

void dataset_expect(struct dataset *d, const int64_t *images, int count)
{
    assert_object(d, DATASET_MAGIC);
    for (int i = 0; d->shards && i < count; i++)
        shards_expect(d->shards, dataset_entry(d, images[i]));
}
