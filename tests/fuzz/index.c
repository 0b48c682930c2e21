/*
 * The kept index of a data set. The first byte of the input says whether of shards or of class
 * folders, and whether the rest is a whole file or its body, which then gets a header with a right
 * checksum. A loaded index describes nothing that lies outside its shard.
 */
#include "common/dataset/index.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/dataset/tfrecord.h"
#include "tests/fuzz/fuzz.h"

#define CHANGED_NS 1000

static struct dataset_list shards, classes;

static const char *index_folder(const char *name)
{
    static char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
    mkdir(path, 0700);
    return path;
}

static void index_lists(void)
{
    static const char hundred[100];
    struct error e;

    setenv("XDG_CACHE_HOME", index_folder("cache"), 1);
    index_folder("classes");
    index_folder("classes/a");
    index_folder("classes/b");
    index_folder("indexed");
    fuzz_file("indexed/train-1", hundred, sizeof hundred);
    fuzz_file("indexed/train-2", hundred, 50);
    struct dataset_part all = {0, 1};
    FUZZ_CHECK(dataset_list(index_folder("indexed"), DATASET_TRAIN, &shards, &e) == 0, "%s",
               e.text);
    FUZZ_CHECK(dataset_list_find(index_folder("classes"), DATASET_TRAIN, all, &classes, &e) == 0,
               "%s", e.text);
    for (int i = 0; i < 2; i++)
        shards.changed_ns[i] = classes.class_changed_ns[i] = CHANGED_NS;
}

static void write_index(const char *name, const uint8_t *data, size_t bytes, bool whole,
                        const struct dataset_list *list)
{
    struct {
        uint64_t magic, body_bytes;
        uint32_t body_crc, format;
        uint64_t keys;
    } header = {0x31584449444e5254u, bytes, tfrecord_crc32c(data, bytes), list->format, 2};
    uint8_t *text = malloc(sizeof header + bytes);

    FUZZ_CHECK(text, "no memory");
    memcpy(text, &header, sizeof header);
    memcpy(text + sizeof header, data, bytes);
    if (whole)
        fuzz_file(name, data, bytes);
    else
        fuzz_file(name, text, sizeof header + bytes);
    free(text);
}

static void judge_index(const struct dataset_index *index, const struct dataset_list *list)
{
    for (int64_t i = 0; i < index->images; i++) {
        const struct dataset_entry *entry = &index->entries[i];
        FUZZ_CHECK(entry->file < list->count, "image %lld is in file %u", (long long)i,
                   entry->file);
        if (list == &shards)
            FUZZ_CHECK(entry->offset + entry->bytes + TFRECORD_HEADER_BYTES +
                               TFRECORD_FOOTER_BYTES <=
                           list->bytes[entry->file],
                       "image %lld lies outside its shard", (long long)i);
        else
            FUZZ_CHECK(entry->label >= 0 && entry->label < list->class_count, "label %d",
                       entry->label);
    }
}

int fuzz_index(const uint8_t *data, size_t bytes)
{
    struct dataset_index index = {0};

    if (!shards.count)
        index_lists();
    if (bytes == 0)
        return 0;
    bool of_shards = data[0] & 1;
    struct dataset_list *list = of_shards ? &shards : &classes;
    write_index(of_shards ? "indexed/.traind-index-train" : "classes/.traind-index-classes",
                data + 1, bytes - 1, data[0] & 2, list);
    if (dataset_index_load(list, &index))
        judge_index(&index, list);
    for (size_t i = 0; i < classes.count; i++)
        free(classes.files[i]);
    classes.count = 0;
    free(index.entries);
    return 0;
}
