/* What a data set is, in a few bytes: from its index, so that no image is read for it. */
#include <stdint.h>
#include <string.h>

#include "common/dataset/dataset.h"
#include "common/dataset/list.h"
#include "common/system/file.h"

static void dataset_digest_add_number(struct digest *d, uint64_t number)
{
    digest_add(d, &number, sizeof number);
}

static void dataset_digest_add_name(struct digest *d, const char *name)
{
    dataset_digest_add_number(d, strlen(name));
    digest_add(d, name, strlen(name));
}

/* Shards by name and size; images by class and name, as far as the index goes. */
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

void dataset_list_digest(const struct dataset_list *list, const struct dataset_entry *entries,
                         int64_t images, struct dataset_digest *out)
{
    struct digest *d = digest_begin();

    dataset_digest_add_files(d, list);
    for (int64_t i = 0; i < images; i++) {
        dataset_digest_add_number(d, entries[i].bytes);
        dataset_digest_add_number(d, (uint64_t)(int64_t)entries[i].label);
    }
    digest_end(d, out->hex);
    out->images = images;
    out->changed = 1e-9 * (double)dataset_digest_newest_change(list);
}
