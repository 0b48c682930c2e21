#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/dataset/dataset.h"
#include "common/dataset/index.h"
#include "common/dataset/tfrecord.h"
#include "tests/unit/data_fixture.h"

static char *folder;

static void make_indexed(void)
{
    folder = fixture_folder();
}

static void remove_indexed(void)
{
    fixture_remove(folder);
}

TestSuite(dataset_index, .init = make_indexed, .fini = remove_indexed);

static const char *indexed_path(const char *name)
{
    return fixture_path(folder, name);
}

/* Sets the time of change so many seconds back: what changed just now is not indexed. */
static void settle_clock(const char *name, int seconds)
{
    struct timespec now, times[2];
    clock_gettime(CLOCK_REALTIME, &now);
    now.tv_sec -= seconds;
    times[0] = times[1] = now;
    cr_assert_eq(utimensat(AT_FDCWD, indexed_path(name), times, 0), 0);
}

/* Opens, keeps the index, and says whether there was one. */
static bool open_was_kept(int64_t images)
{
    struct dataset *d;
    struct error e;
    cr_assert_eq(dataset_open(folder, DATASET_TRAIN, &d, &e), 0, "%s", e.text);
    cr_assert_eq(dataset_images(d), images);
    bool kept = !dataset_keep_index(d);
    dataset_close(d);
    return kept;
}

static void two_shards(void)
{
    fixture_shard(indexed_path("train-00000-of-00002"), 0, 3, 10);
    fixture_shard(indexed_path("train-00001-of-00002"), 3, 2, 10);
    settle_clock("train-00000-of-00002", 10);
    settle_clock("train-00001-of-00002", 10);
}

Test(dataset_index, is_kept_and_gives_the_same_images)
{
    struct dataset *walked, *kept;
    struct error e;
    two_shards();
    cr_assert_eq(dataset_open(folder, DATASET_TRAIN, &walked, &e), 0);
    cr_assert(dataset_keep_index(walked));
    cr_assert_eq(dataset_open(folder, DATASET_TRAIN, &kept, &e), 0);
    cr_assert(!dataset_keep_index(kept));
    cr_assert_eq(dataset_images(kept), 5);
    for (int i = 0; i < 5; i++) {
        struct dataset_image image;
        const struct dataset_entry *a = dataset_entry(walked, i), *b = dataset_entry(kept, i);
        cr_assert(a->file == b->file && a->offset == b->offset && a->bytes == b->bytes &&
                  a->label == b->label);
        cr_assert_eq(dataset_read(kept, i, &image, &e), 0, "%s", e.text);
        cr_expect_eq(image.label, i);
        dataset_image_release(&image);
    }
    dataset_close(walked);
    dataset_close(kept);
}

Test(dataset_index, is_rebuilt_when_a_shard_changes)
{
    two_shards();
    cr_assert(!open_was_kept(5) && open_was_kept(5));
    fixture_shard(indexed_path("train-00001-of-00002"), 3, 4, 10);
    settle_clock("train-00001-of-00002", 10);
    cr_assert(!open_was_kept(7) && open_was_kept(7));
    settle_clock("train-00000-of-00002", 8); /* the same size, another time */
    cr_assert(!open_was_kept(7) && open_was_kept(7));
}

Test(dataset_index, is_not_kept_while_a_shard_is_changing)
{
    two_shards();
    settle_clock("train-00001-of-00002", -3600); /* as one that changes behind the listing */
    cr_assert(!open_was_kept(5) && !open_was_kept(5));
}

Test(dataset_index, is_rebuilt_if_damaged)
{
    size_t bytes;
    const char *path = indexed_path(".traind-index-train");
    two_shards();
    open_was_kept(5);
    uint8_t *good = fixture_read(path, &bytes);
    for (size_t i = 0; i < bytes; i++) {
        good[i] ^= 0x10;
        fixture_write(path, good, bytes);
        cr_assert(!open_was_kept(5), "byte %zu", i);
        good[i] ^= 0x10;
    }
    for (size_t n = 0; n < bytes; n += 5) {
        fixture_write(path, good, n);
        cr_assert(!open_was_kept(5), "%zu bytes", n);
    }
    cr_assert(open_was_kept(5));
    free(good);
}

/* For root every folder is writable: an index that is a folder is not. */
Test(dataset_index, is_kept_in_the_cache_folder_if_the_data_are_read_only)
{
    two_shards();
    mkdir(indexed_path("cache"), 0755);
    mkdir(indexed_path(".traind-index-train"), 0755);
    setenv("XDG_CACHE_HOME", indexed_path("cache"), 1);
    cr_assert(!open_was_kept(5) && open_was_kept(5));
    setenv("XDG_CACHE_HOME", indexed_path("other"), 1);
    cr_assert(!open_was_kept(5));
}

static void add_indexed_image(const char *name)
{
    size_t bytes;
    uint8_t *jpeg = fixture_jpeg(28, 28, 1, 1, &bytes);
    fixture_write(indexed_path(name), jpeg, bytes);
    free(jpeg);
}

Test(dataset_index, of_class_folders_is_valid_while_their_times_are_unchanged)
{
    struct dataset *d;
    struct error e;
    mkdir(indexed_path("a"), 0755);
    mkdir(indexed_path("b"), 0755);
    add_indexed_image("a/1.jpg");
    add_indexed_image("b/2.jpg");
    add_indexed_image("b/3.jpg");
    settle_clock("a", 10);
    settle_clock("b", 10);
    cr_assert(!open_was_kept(3) && open_was_kept(3));
    cr_assert_eq(dataset_open(folder, DATASET_TRAIN, &d, &e), 0);
    cr_expect_eq(dataset_entry(d, 2)->label, 1);
    cr_expect_not_null(strstr(dataset_file(d, 2), "/b/3.jpg"));
    dataset_close(d);
    add_indexed_image("a/0.jpg");
    cr_assert(!open_was_kept(4));
    settle_clock("a", 10);
    cr_assert(!open_was_kept(4) && open_was_kept(4));
    unlink(indexed_path("b/3.jpg"));
    settle_clock("b", 9);
    cr_assert(!open_was_kept(3));
}

/* ImageNet's size, with shards that hold nothing: only the index knows of the records. */
Test(dataset_index, of_imagenet_opens_without_reading_the_shards)
{
    enum { SHARDS = 1024, EACH = 1251, RECORD = 110016 };
    struct dataset_list list;
    struct dataset_index index = {0};
    struct error e;
    for (int s = 0; s < SHARDS; s++) {
        char name[64];
        snprintf(name, sizeof name, "train-%05d-of-%05d", s, SHARDS);
        int fd = open(indexed_path(name), O_WRONLY | O_CREAT, 0644);
        cr_assert(fd >= 0 && ftruncate(fd, (off_t)EACH * RECORD) == 0);
        close(fd);
        settle_clock(name, 10);
    }
    cr_assert_eq(dataset_list(folder, DATASET_TRAIN, &list, &e), 0, "%s", e.text);
    for (uint32_t s = 0; s < SHARDS; s++)
        for (uint64_t i = 0; i < EACH; i++)
            dataset_index_add(&index, (struct dataset_entry){s, -1, i * RECORD, RECORD - 16}, &e);
    dataset_index_store(&list, &index, clock_now());
    double started = clock_monotonic();
    cr_assert(open_was_kept(SHARDS * EACH));
    fprintf(stderr, "# opened in %.0f ms\n", 1e3 * (clock_monotonic() - started));
    free(index.entries);
    dataset_list_free(&list);
}

/* ---- parts */

static struct dataset *open_part(int number, int of)
{
    struct dataset *d;
    struct error e;
    cr_assert_eq(
        dataset_open_part(folder, DATASET_TRAIN, (struct dataset_part){number, of}, &d, &e), 0,
        "%s", e.text);
    return d;
}

static void seven_shards(void)
{
    for (int s = 0; s < 7; s++) {
        char name[64];
        snprintf(name, sizeof name, "train-%05d-of-00007", s);
        fixture_shard(indexed_path(name), 10 * s, 1 + s, 100);
    }
}

Test(dataset_index, parts_are_disjoint_and_together_all)
{
    seven_shards();
    for (int nodes = 1; nodes <= 7; nodes++) {
        struct dataset_counts counts;
        struct error e;
        int64_t sum = 0, least = 100, most = 0;
        for (int node = 0; node < nodes; node++) {
            struct dataset *d = open_part(node, nodes);
            int64_t images = dataset_images(d);
            for (int64_t i = 0; i < images; i++) {
                struct dataset_image image;
                cr_assert_eq((int)dataset_entry(d, i)->file % nodes, node);
                cr_assert_eq(dataset_read(d, i, &image, &e), 0, "%s", e.text);
                cr_assert_eq(image.label / 10 % nodes, node);
                dataset_image_release(&image);
            }
            sum += images;
            least = images < least ? images : least;
            most = images > most ? images : most;
            dataset_close(d);
        }
        cr_assert_eq(sum, 28);
        cr_assert_eq(dataset_count_parts(folder, DATASET_TRAIN, nodes, &counts, &e), 0);
        cr_assert(counts.images == 28 && counts.least == least && counts.most == most);
    }
}

/* A node's own copy holds its shards only. */
Test(dataset_index, a_part_needs_its_own_shards_only)
{
    struct dataset *d;
    struct error e;
    seven_shards();
    for (int s = 0; s < 7; s++) {
        char name[64];
        snprintf(name, sizeof name, "train-%05d-of-00007", s);
        if (s % 3 != 1)
            unlink(indexed_path(name));
    }
    d = open_part(1, 3);
    cr_expect_eq(dataset_images(d), 2 + 5);
    dataset_close(d);
    unlink(indexed_path("train-00004-of-00007"));
    cr_assert_eq(dataset_open_part(folder, DATASET_TRAIN, (struct dataset_part){1, 3}, &d, &e),
                 -ERR_NOT_FOUND);
    cr_expect_not_null(strstr(e.text, "shard train-00004-of-00007 is missing"), "%s", e.text);
}

Test(dataset_index, too_many_nodes_are_refused)
{
    struct dataset *d;
    struct error e;
    seven_shards();
    cr_assert_eq(dataset_open_part(folder, DATASET_TRAIN, (struct dataset_part){7, 8}, &d, &e),
                 -ERR_INVALID);
    cr_expect_not_null(strstr(e.text, "node 7 gets none"), "%s", e.text);
}

/* ---- shards that change while they are in use */

static void expect_second_read(const char *words)
{
    struct dataset_image image;
    struct dataset *d;
    struct error e = {0};
    const char *path = indexed_path("train-00000-of-00002");
    two_shards();
    cr_assert_eq(dataset_open(folder, DATASET_TRAIN, &d, &e), 0);
    cr_assert_eq(dataset_read(d, 0, &image, &e), 0);
    dataset_image_release(&image);
    if (strstr(words, "removed"))
        unlink(path);
    else if (strstr(words, "bytes when"))
        cr_assert_eq(truncate(path, 1000), 0);
    else
        fixture_write(path, "short", 5); /* another file of that name */
    cr_assert_neq(dataset_read(d, 1, &image, &e), 0);
    cr_expect(strstr(e.text, words) && strstr(e.text, "train-00000-of-00002"), "%s", e.text);
    dataset_close(d);
}

Test(dataset_index, a_shard_that_shrinks_is_named)
{
    expect_second_read("bytes when it was opened and has 1000 now");
}

Test(dataset_index, a_shard_that_vanishes_is_named)
{
    expect_second_read("was removed or replaced while it is in use");
}

Test(dataset_index, a_shard_that_is_replaced_is_named)
{
    expect_second_read("replaced while it is in use");
}

/* Before its first read, too: the index was made by another run. */
Test(dataset_index, a_shard_that_went_before_its_first_read_is_named)
{
    struct dataset_image image;
    struct dataset *d;
    struct error e = {0};
    two_shards();
    cr_assert_eq(dataset_open(folder, DATASET_TRAIN, &d, &e), 0);
    unlink(indexed_path("train-00001-of-00002"));
    cr_assert_eq(dataset_read(d, 4, &image, &e), -ERR_NOT_FOUND);
    cr_expect_not_null(strstr(e.text, "train-00001-of-00002"), "%s", e.text);
    dataset_close(d);
}
