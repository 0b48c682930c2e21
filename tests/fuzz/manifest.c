/* manifest.json beside two shards of 100 bytes: what it counts is a number of images. */
#include "common/dataset/manifest.h"

#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/dataset/dataset.h"
#include "tests/fuzz/fuzz.h"

static struct dataset_list list;

static void list_shards(void)
{
    static const char hundred[100];
    char path[PATH_MAX];
    struct error e;

    snprintf(path, sizeof path, "%s/shards", fuzz_folder());
    mkdir(path, 0700);
    fuzz_file("shards/train-00000-of-00002", hundred, sizeof hundred);
    fuzz_file("shards/train-00001-of-00002", hundred, sizeof hundred);
    FUZZ_CHECK(dataset_list(path, DATASET_TRAIN, &list, &e) == 0 && list.count == 2, "%s", e.text);
}

int fuzz_manifest(const uint8_t *data, size_t bytes)
{
    struct dataset_counts counts;
    struct error e;
    int64_t in_file[2];

    if (!list.count)
        list_shards();
    fuzz_file("shards/" MANIFEST_NAME, data, bytes);
    const char *why;
    json_t *classes = manifest_classes(&list, &why);
    FUZZ_CHECK(!classes || json_array_size(classes) > 0, "a list of no classes");
    json_decref(classes);
    manifest_check_empty(&list, &e);
    if (!manifest_count(&list, in_file))
        return 0;
    FUZZ_CHECK(in_file[0] > 0 && in_file[1] > 0, "%lld and %lld images", (long long)in_file[0],
               (long long)in_file[1]);
    if (dataset_count_parts(list.folder, DATASET_TRAIN, 2, &counts, &e) == 0)
        FUZZ_CHECK(counts.images > 0 && counts.least > 0 && counts.least <= counts.most &&
                       counts.least + counts.most == counts.images,
                   "%lld images: %lld and %lld", (long long)counts.images, (long long)counts.least,
                   (long long)counts.most);
    return 0;
}
