#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/dataset/class_names.h"
#include "common/dataset/dataset.h"
#include "common/dataset/file_list.h"
#include "common/dataset/probe.h"
#include "common/dataset/tfrecord.h"
#include "common/rng.h"
#include "tests/unit/data_fixture.h"

static char *folder;

static void make_dataset(void)
{
    folder = fixture_folder();
}

static void remove_dataset(void)
{
    fixture_remove(folder);
}

TestSuite(dataset, .init = make_dataset, .fini = remove_dataset);

static const char *dataset_path(const char *name)
{
    return fixture_path(folder, name);
}

static struct dataset *open_good(const char *path, enum dataset_role role)
{
    struct dataset *d;
    struct error e;
    cr_assert_eq(dataset_open(path, role, &d, &e), 0, "%s", e.text);
    return d;
}

static void expect_refused(const char *path, enum error_code code, const char *words)
{
    struct dataset *d = NULL;
    struct error e = {0};
    cr_assert_eq(dataset_open(path, DATASET_TRAIN, &d, &e), -(int)code, "%s", e.text);
    cr_assert_null(d);
    cr_assert_not_null(strstr(e.text, words), "%s", e.text);
}

Test(dataset, reads_shards_in_file_order)
{
    fixture_shard(dataset_path("train-00001-of-00002"), 3, 2, 10);
    fixture_shard(dataset_path("train-00000-of-00002"), 0, 3, 10);
    struct dataset *d = open_good(folder, DATASET_TRAIN);
    cr_assert_eq(dataset_format(d), DATASET_TFRECORD);
    cr_assert_eq(dataset_images(d), 5);
    for (int i = 0; i < 5; i++) {
        struct dataset_image image;
        struct error e;
        char name[32];
        size_t bytes;
        uint8_t *jpeg = fixture_jpeg(28, 28, 1, i, &bytes);
        snprintf(name, sizeof name, "%d.jpg", i);
        cr_assert_eq(dataset_read(d, i, &image, &e), 0, "%s", e.text);
        cr_expect_eq(image.label, i);
        cr_expect_str_eq(image.name, name);
        cr_assert_eq(image.jpeg_bytes, bytes);
        cr_expect_arr_eq(image.jpeg, jpeg, bytes);
        cr_expect_eq(dataset_entry(d, i)->file, (uint32_t)(i >= 3));
        dataset_image_release(&image);
        free(jpeg);
    }
    dataset_close(d);
}

Test(dataset, takes_the_role_asked_for_or_the_only_one)
{
    fixture_shard(dataset_path("train-00000-of-00001"), 0, 3, 10);
    struct dataset *d = open_good(folder, DATASET_EVAL);
    cr_expect_eq(dataset_images(d), 3);
    dataset_close(d);
    fixture_shard(dataset_path("validation-00000-of-00001"), 0, 2, 10);
    d = open_good(folder, DATASET_EVAL);
    cr_expect_eq(dataset_images(d), 2);
    dataset_close(d);
    d = open_good(folder, DATASET_TRAIN);
    cr_expect_eq(dataset_images(d), 3);
    dataset_close(d);
}

Test(dataset, enters_train_prep_s_folder_by_role)
{
    mkdir(dataset_path("train"), 0755);
    mkdir(dataset_path("validation"), 0755);
    fixture_shard(dataset_path("train/train-00000-of-00001"), 0, 3, 10);
    fixture_shard(dataset_path("validation/validation-00000-of-00001"), 0, 1, 10);
    struct dataset *d = open_good(folder, DATASET_TRAIN);
    cr_expect_eq(dataset_images(d), 3);
    dataset_close(d);
    d = open_good(dataset_path("validation/"), DATASET_EVAL);
    cr_expect_eq(dataset_images(d), 1);
    dataset_close(d);
}

static void add_class_image(const char *name, int seed)
{
    size_t bytes;
    uint8_t *jpeg = fixture_jpeg(28, 28, 1, seed, &bytes);
    fixture_write(dataset_path(name), jpeg, bytes);
    free(jpeg);
}

Test(dataset, numbers_class_folders_in_sorted_order)
{
    struct dataset_image image;
    struct error e;
    mkdir(dataset_path("zebra"), 0755);
    mkdir(dataset_path("Ant"), 0755);
    mkdir(dataset_path("train"), 0755); /* a class, as it has others beside it */
    add_class_image("zebra/b.jpg", 1);
    add_class_image("Ant/a.JPEG", 2);
    add_class_image("train/c.jpeg", 3);
    fixture_write(dataset_path("Ant/.hidden"), "x", 1);
    struct dataset *d = open_good(folder, DATASET_TRAIN);
    cr_assert_eq(dataset_format(d), DATASET_FOLDER);
    cr_assert_eq(dataset_images(d), 3);
    const char *names[] = {"a.JPEG", "c.jpeg", "b.jpg"};
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(dataset_read(d, i, &image, &e), 0);
        cr_expect_eq(image.label, i);
        cr_expect_str_eq(image.name, names[i]);
        dataset_image_release(&image);
    }
    dataset_close(d);
}

Test(dataset, names_what_is_missing_empty_or_no_data_set)
{
    expect_refused(dataset_path("nowhere"), ERR_NOT_FOUND, "there is no data set at");
    expect_refused(folder, ERR_INVALID, "no data set in ");
    fixture_write(dataset_path("notes.txt"), "x", 1);
    expect_refused(folder, ERR_INVALID, "no data set in ");
    expect_refused(dataset_path("notes.txt"), ERR_INVALID, "is a file");
    fixture_write(dataset_path("train-00000-of-00002"), "", 0);
    expect_refused(folder, ERR_NOT_FOUND, "shard train-00001-of-00002 is missing");
    fixture_write(dataset_path("train-00001-of-00002"), "", 0);
    expect_refused(folder, ERR_CORRUPT, "train-00000-of-00002 is empty");
    mkdir(dataset_path("class"), 0755);
    mkdir(dataset_path("class/a"), 0755);
    fixture_write(dataset_path("class/a/readme.txt"), "x", 1);
    expect_refused(dataset_path("class"), ERR_INVALID, "readme.txt is not a JPEG file");
}

/* For root every folder is readable. */
Test(dataset, names_an_unreadable_folder)
{
    chmod(folder, 0);
    if (geteuid() == 0) {
        pid_t nobody = 65534;
        cr_assert_eq(seteuid((uid_t)nobody), 0);
    }
    struct dataset *d;
    struct error e;
    int rc = dataset_open(folder, DATASET_TRAIN, &d, &e);
    if (getuid() == 0)
        cr_assert_eq(seteuid(0), 0);
    chmod(folder, 0755);
    cr_assert_eq(rc, -ERR_NOT_ALLOWED, "%s", e.text);
    cr_assert_not_null(strstr(e.text, "cannot open the folder"));
}

Test(dataset, refuses_shards_of_two_sets)
{
    fixture_shard(dataset_path("train-00000-of-00002"), 0, 1, 10);
    fixture_shard(dataset_path("train-00001-of-00003"), 0, 1, 10);
    expect_refused(folder, ERR_INVALID, "shards of two data sets");
}

/* Damage to the second record of a shard is named by its offset: length and end when opened,
 * payload when read. */
Test(dataset, names_file_and_offset_of_damage)
{
    const char *path = dataset_path("train-00000-of-00001");
    char words[64];
    size_t bytes;
    struct dataset_image image;
    struct error e;
    fixture_shard(path, 0, 3, 10);
    struct dataset *d = open_good(folder, DATASET_TRAIN);
    uint64_t offset = dataset_entry(d, 1)->offset, third = dataset_entry(d, 2)->offset;
    dataset_close(d);
    uint8_t *good = fixture_read(path, &bytes);

    good[offset] ^= 1;
    fixture_write(path, good, bytes);
    snprintf(words, sizeof words, "length at byte %llu is wrong", (unsigned long long)offset);
    expect_refused(folder, ERR_CORRUPT, words);
    good[offset] ^= 1;

    snprintf(words, sizeof words, "is truncated: the record at byte %llu",
             (unsigned long long)third);
    for (size_t cut = 1; cut < bytes - third; cut += 7) {
        fixture_write(path, good, bytes - cut);
        expect_refused(folder, ERR_CORRUPT, words);
    }

    good[offset + 100] ^= 1;
    fixture_write(path, good, bytes);
    d = open_good(folder, DATASET_TRAIN);
    cr_assert_eq(dataset_read(d, 0, &image, &e), 0);
    dataset_image_release(&image);
    cr_assert_eq(dataset_read(d, 1, &image, &e), -ERR_CORRUPT);
    snprintf(words, sizeof words, "checksum of the record at byte %llu",
             (unsigned long long)offset);
    cr_assert(strstr(e.text, words) && strstr(e.text, "train-00000-of-00001"), "%s", e.text);
    dataset_close(d);
    free(good);
}

Test(dataset, random_damage_never_crashes)
{
    const char *path = dataset_path("train-00000-of-00001");
    struct rng r = rng_stream(3, 0, 0, RNG_SYNTHETIC);
    size_t bytes;
    int opened = 0, refused = 0;
    fixture_shard(path, 0, 3, 10);
    uint8_t *good = fixture_read(path, &bytes);
    for (int i = 0; i < 300; i++) {
        uint8_t *bad = malloc(bytes);
        struct dataset_image image;
        struct dataset *d;
        struct error e;
        memcpy(bad, good, bytes);
        for (uint32_t k = rng_below(&r, 3) + 1; k > 0; k--)
            bad[rng_below(&r, (uint32_t)bytes)] = (uint8_t)rng_u32(&r);
        FILE *file = fopen(path, "wb");
        fwrite(bad, 1, i % 3 ? bytes : 1 + rng_below(&r, (uint32_t)bytes - 1), file);
        fclose(file);
        if (dataset_open(folder, DATASET_TRAIN, &d, &e) == 0) {
            for (int64_t k = 0; k < dataset_images(d); k++)
                if (dataset_read(d, k, &image, &e))
                    refused++;
                else
                    dataset_image_release(&image);
            opened++;
            dataset_close(d);
        }
        free(bad);
    }
    cr_assert(opened > 0 && refused > 0);
    free(good);
}

static int64_t count_images_read(void)
{
    struct dataset_counts counts;
    struct error e;
    cr_assert_eq(dataset_count_parts(folder, DATASET_TRAIN, 1, &counts, &e), 0, "%s", e.text);
    return counts.images;
}

/* Of one shard; classes: JSON. */
static void write_manifest_of(const char *shard, long bytes, int images, const char *classes)
{
    char text[512];
    int n = snprintf(text, sizeof text,
                     "{\"format\": 1, \"classes\": %s, \"train\": {\"images\": %d, \"shards\": "
                     "[{\"file\": \"train/%s\", \"images\": %d, \"bytes\": %ld}]}}",
                     classes, images, shard, images, bytes);
    fixture_write(dataset_path("manifest.json"), text, (size_t)n);
}

static void write_manifest(long bytes, int images)
{
    write_manifest_of("train-00000-of-00001", bytes, images, "[]");
}

/* The manifest here lies on purpose: to see whether it is believed. */
Test(dataset, counts_by_a_manifest_only_if_it_fits)
{
    struct stat st;
    fixture_shard(dataset_path("train-00000-of-00001"), 0, 3, 10);
    stat(dataset_path("train-00000-of-00001"), &st);
    cr_expect_eq(count_images_read(), 3);
    write_manifest(st.st_size, 99);
    cr_expect_eq(count_images_read(), 99);
    write_manifest(st.st_size + 1, 99);
    cr_expect_eq(count_images_read(), 3);
    fixture_write(dataset_path("manifest.json"), "{", 1);
    cr_expect_eq(count_images_read(), 3);
    struct dataset_counts counts = {.images = 1};
    struct error e;
    cr_expect_eq(dataset_count_parts("synthetic", DATASET_TRAIN, 1, &counts, &e), 0);
    cr_expect_eq(counts.images, 0);
    cr_expect_eq(dataset_count_parts(dataset_path("none"), DATASET_TRAIN, 1, &counts, &e),
                 -ERR_NOT_FOUND);
}

Test(dataset, a_probe_reads_the_first_image)
{
    struct dataset_probe glance, other;

    fixture_shard(dataset_path("train-00000-of-00001"), 0, 3, 10);
    fixture_shard(dataset_path("validation-00000-of-00001"), 0, 3, 10);
    dataset_probe(folder, DATASET_TRAIN, &glance);
    dataset_probe(folder, DATASET_EVAL, &other);
    cr_assert_eq(glance.width, 28);
    cr_assert_eq(glance.height, 28);
    cr_assert_eq(glance.classes, 0, "no manifest lists them");
    cr_assert(glance.inode && glance.inode != other.inode, "one role's shards are not the other's");
    dataset_probe(dataset_path("nothing"), DATASET_TRAIN, &glance);
    cr_assert_eq(glance.inode, 0);
}

Test(dataset, a_probe_counts_class_folders)
{
    struct dataset_probe glance, other;
    size_t bytes;
    uint8_t *jpeg = fixture_jpeg(60, 40, 3, 1, &bytes);

    mkdir(dataset_path("a"), 0755);
    mkdir(dataset_path("b"), 0755);
    fixture_write(dataset_path("a/1.jpg"), jpeg, bytes);
    fixture_write(dataset_path("b/2.jpg"), jpeg, bytes);
    dataset_probe(folder, DATASET_TRAIN, &glance);
    dataset_probe(folder, DATASET_EVAL, &other);
    cr_assert_eq(glance.classes, 2);
    cr_assert_eq(glance.width, 60);
    cr_assert_eq(glance.height, 40);
    cr_assert_eq(glance.inode, other.inode, "one folder holds the same images for both");
    free(jpeg);
}

Test(dataset, truncated_and_missing_images_have_no_size)
{
    size_t bytes;
    uint8_t *jpeg = fixture_progressive_jpeg(70, 50, &bytes);
    int width, height;

    cr_assert(dataset_image_size(jpeg, bytes, &width, &height));
    cr_assert(width == 70 && height == 50);
    for (size_t cut = 0; cut < bytes; cut++) { /* each in memory of its own, for ASan */
        uint8_t *part = malloc(cut ? cut : 1);
        memcpy(part, jpeg, cut);
        dataset_image_size(part, cut, &width, &height);
        free(part);
    }
    cr_assert(!dataset_image_size((const uint8_t *)"GIF89a, no JPEG", 15, &width, &height));
    static const uint8_t png[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\2\0\0\0\7\x08\2";
    cr_assert(dataset_image_size(png, 24, &width, &height));
    cr_assert(width == 258 && height == 7);
    cr_assert(!dataset_image_size(png, 23, &width, &height));
    free(jpeg);
}

/* ---- which files are the set */

static void expect_images(int images, const char *remark)
{
    struct dataset *d = open_good(folder, DATASET_TRAIN);
    cr_expect_eq(dataset_images(d), images);
    if (*remark)
        cr_expect_not_null(strstr(dataset_remarks(d), remark), "%s: %s", remark,
                           dataset_remarks(d));
    else
        cr_expect_str_eq(dataset_remarks(d), "");
    dataset_close(d);
}

Test(dataset, other_files_beside_numbered_shards_are_ignored)
{
    static const char *const others[] = {
        "train-00000-of-00002.bak", "train-00000-of-00002.idx",
        "train-00000-of-00002 (1)", "train-00000-of-00002~",
        "train-00000-of-00002.x",   "train-00000-of-00002-copy",
        "train-index.json",         "train-00000-of-00002.idx.2",
        "train-00000-of-00002.gz",  "train-old",
    };
    size_t bytes;

    fixture_shard(dataset_path("train-00000-of-00002"), 0, 3, 10);
    fixture_shard(dataset_path("train-00001-of-00002"), 3, 2, 10);
    uint8_t *copy = fixture_read(dataset_path("train-00000-of-00002"), &bytes);
    expect_images(5, "");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        fixture_write(dataset_path(others[i]), copy, bytes);
        expect_images(5, others[i]);
        rename(dataset_path("train-00001-of-00002"), dataset_path("kept"));
        expect_refused(folder, ERR_NOT_FOUND, "shard train-00001-of-00002 is missing");
        expect_refused(folder, ERR_NOT_FOUND, others[i]);
        rename(dataset_path("kept"), dataset_path("train-00001-of-00002"));
        unlink(dataset_path(others[i]));
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        fixture_write(dataset_path(others[i]), copy, bytes);
    expect_images(5, "and 5 more");
    free(copy);
}

Test(dataset, shards_with_other_names_are_read_and_side_files_ignored)
{
    fixture_shard(dataset_path("train-a"), 0, 3, 10);
    fixture_shard(dataset_path("train-b.tfrecord"), 3, 2, 10);
    fixture_shard(dataset_path("train-a.bak"), 3, 2, 10);
    fixture_shard(dataset_path("train-b.tfrecord~"), 3, 2, 10);
    fixture_write(dataset_path("train-b.idx"), "0 100\n", 6);
    expect_images(5, "ignored: train-a.bak, train-b.idx, train-b.tfrecord~");
    for (const char *const *name = (const char *const[]){"train-a", "train-b.tfrecord", NULL};
         *name; name++)
        unlink(dataset_path(*name));
    expect_refused(folder, ERR_INVALID, "no data set in ");
    expect_refused(folder, ERR_INVALID, "train-a.bak");
}

/* Files of one image each; the last name is NULL. */
static void expect_set(const char *const *names, enum error_code code, const char *words)
{
    int count = 0;

    for (; names[count]; count++)
        fixture_shard(dataset_path(names[count]), count, 1, 10);
    if (code)
        expect_refused(folder, code, words);
    else
        expect_images(count, words);
    while (count--)
        unlink(dataset_path(names[count]));
}

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

Test(dataset, numbered_shards_are_one_whole_set)
{
    expect_set(NAMES("train-00000-of-00002", "train-00001-of-00002", "train-00000-of-00004"),
               ERR_INVALID, "two data sets (train-00000-of-00002 and train-00000-of-00004)");
    expect_set(NAMES("train-00000-of-00001", "train-more-00000-of-00001"), ERR_INVALID,
               "two data sets");
    expect_set(NAMES("train-0-of-2", "train-00000-of-00002", "train-1-of-2"), ERR_INVALID,
               "the same number, train-0-of-2 and train-00000-of-00002");
    expect_set(NAMES("train-00000-of-00001", "train-00000-of-00001.tfrecord"), ERR_INVALID,
               "the same number");
    expect_set(NAMES("train-0-of-2", "train-1-of-2", "train-2-of-2"), ERR_INVALID,
               "train-2-of-2, but numbers start at 0");
    expect_set(NAMES("train-00001-of-00002.tfrecord"), ERR_NOT_FOUND,
               "shard train-00000-of-00002.tfrecord is missing");
    expect_set(NAMES("train-00000-of-00003", "train-00002-of-00003"), ERR_NOT_FOUND,
               "shard train-00001-of-00003 is missing");
    expect_set(NAMES("train-00001-of-00002", "train-00002-of-00002"), 0, "");
    expect_set(NAMES("train-0-of-12", "train-1-of-12", "train-2-of-12", "train-3-of-12",
                     "train-4-of-12", "train-5-of-12", "train-6-of-12", "train-7-of-12",
                     "train-8-of-12", "train-9-of-12", "train-10-of-12", "train-11-of-12"),
               0, "");
}

Test(dataset, a_shard_of_0_bytes_holds_no_images)
{
    struct dataset_probe glance;
    struct stat st;

    fixture_write(dataset_path("train-00000-of-00003"), "", 0);
    fixture_shard(dataset_path("train-00001-of-00003"), 0, 3, 10);
    fixture_write(dataset_path("train-00002-of-00003"), "", 0);
    expect_images(3, "are empty (0 bytes): train-00000-of-00003, train-00002-of-00003");
    cr_expect_eq(count_images_read(), 3);
    dataset_probe(folder, DATASET_TRAIN, &glance);
    cr_expect_eq(glance.width, 28, "the first image is that of the second shard");
    unlink(dataset_path("train-00001-of-00003"));
    expect_refused(folder, ERR_NOT_FOUND, "shard train-00001-of-00003 is missing");

    fixture_remove(folder);
    folder = fixture_folder();
    fixture_write(dataset_path("train-00000-of-00002"), "", 0);
    fixture_shard(dataset_path("train-00001-of-00002"), 0, 3, 10);
    stat(dataset_path("train-00001-of-00002"), &st);
    write_manifest_of("train-00000-of-00002", st.st_size, 3, "[]");
    expect_refused(folder, ERR_CORRUPT, "train-00000-of-00002 is empty, but manifest.json lists");
}

Test(dataset, a_label_without_a_name_is_corrupt)
{
    struct dataset_image image;
    struct error e;
    struct stat st;

    fixture_shard(dataset_path("train-00000-of-00001"), 0, 3, 10);
    stat(dataset_path("train-00000-of-00001"), &st);
    write_manifest_of("train-00000-of-00001", st.st_size, 3, "[\"a\", \"b\"]");
    struct dataset *d = open_good(folder, DATASET_TRAIN);
    cr_assert_eq(dataset_read(d, 1, &image, &e), 0, "%s", e.text);
    dataset_image_release(&image);
    cr_assert_eq(dataset_read(d, 2, &image, &e), -ERR_CORRUPT);
    cr_assert_not_null(strstr(e.text, "the label 3 is beyond the 2 classes"), "%s", e.text);
    dataset_close(d);
}

/* ---- folders that are no classes */

/* Folders of one image each. */
static void make_classes(const char *const *names)
{
    char path[300];
    size_t bytes;
    uint8_t *jpeg = fixture_jpeg(28, 28, 1, 1, &bytes);

    for (; *names; names++) {
        mkdir(dataset_path(*names), 0755);
        snprintf(path, sizeof path, "%s/1.jpg", *names);
        fixture_write(dataset_path(path), jpeg, bytes);
    }
    free(jpeg);
}

static void expect_classes(const char *const *names, enum error_code code, const char *words)
{
    int count = 0;

    make_classes(names);
    while (names[count])
        count++;
    if (code)
        expect_refused(folder, code, words);
    else
        expect_images(count, words);
    fixture_remove(folder);
    folder = fixture_folder();
}

Test(dataset, folders_named_train_or_validation_are_not_classes)
{
    expect_classes(NAMES("train", "test"), ERR_INVALID, "/train as the training data and");
    expect_classes(NAMES("train", "test"), ERR_INVALID, "/test as the evaluation data");
    expect_classes(NAMES("Train", "Valid"), ERR_INVALID, "Train, Valid: parts of a data set");
    expect_classes(NAMES("training_set", "test_set"), ERR_INVALID, "/training_set as the training");
    expect_classes(NAMES("train2017", "val2017"), ERR_INVALID, "/val2017 as the evaluation");
    expect_classes(NAMES("train", "dev", "extra"), ERR_INVALID, "dev, train");
    expect_classes(NAMES("test"), ERR_INVALID, "test: parts of a data set");
    expect_classes(NAMES("eval"), ERR_INVALID, "eval: parts of a data set");
    expect_classes(NAMES("car", "train"), 0, "");
    expect_classes(NAMES("car", "train-station", "test-tube", "valley", "developer"), 0, "");
    expect_classes(NAMES("cat", "dog", "test"), 0, "name of a part of a data set: test");
}

Test(dataset, folders_made_by_the_system_are_not_classes)
{
    make_classes(NAMES("ant", "zebra", "lost+found", "@eaDir", "__MACOSX"));
    expect_images(2, "ignored: @eaDir, __MACOSX, lost+found");
    mkdir(dataset_path("giraffe"), 0755);
    expect_images(2, "no images and count as classes all the same: giraffe");
    mkdir(dataset_path("ant/more"), 0755);
    expect_refused(folder, ERR_INVALID, "ant/more is a folder");
    expect_refused(folder, ERR_INVALID, "classes cannot be nested");
}

Test(dataset, a_folder_of_one_role_has_none_of_the_other)
{
    struct dataset *d;
    struct error e;

    mkdir(dataset_path("train"), 0755);
    fixture_shard(dataset_path("train/train-00000-of-00001"), 0, 3, 10);
    cr_assert_eq(dataset_open(folder, DATASET_EVAL, &d, &e), -ERR_INVALID);
    cr_assert_not_null(strstr(e.text, "there are no validation shards in"), "%s", e.text);
    cr_assert_not_null(strstr(e.text, "/train; give that folder"), "%s", e.text);
    mkdir(dataset_path("lost+found"), 0755);
    expect_images(3, "");
    rename(dataset_path("train"), dataset_path("val"));
    expect_refused(folder, ERR_INVALID, "there are no train images in");
}

/* ---- names of classes */

/* Of FOLDER/train and FOLDER/eval; "": the same. */
static void expect_comparison(const char *words, const char *unknown)
{
    struct job_spec spec = {.mode = JOB_MODE_TRAIN};
    struct job_classes classes;
    struct error e = {0};
    const char *key;

    spec.data.train = strdup(dataset_path("train"));
    spec.data.eval = strdup(dataset_path("eval"));
    cr_expect_eq(
        job_classes_compare(&spec, (struct dataset_part){0, 1}, NULL, false, &classes, &key, &e),
        *words ? -ERR_INVALID : 0, "%s", e.text);
    cr_expect_str_eq(key, "data.eval");
    cr_expect_not_null(strstr(e.text, words), "%s: %s", words, e.text);
    cr_expect_not_null(strstr(classes.unknown, unknown), "%s: %s", unknown, classes.unknown);
    cr_expect(*unknown || !*classes.unknown, "%s", classes.unknown);
    job_classes_clear(&classes);
    free(spec.data.train);
    free(spec.data.eval);
}

/* A set of shards whose manifest lists these classes, JSON; NULL: without one. */
static void make_shards(const char *name, const char *classes)
{
    const char *inside =
        strcmp(name, "train") == 0 ? "train-00000-of-00001" : "validation-00000-of-00001";
    char *top = folder;
    struct stat st;

    folder = strdup(dataset_path(name));
    mkdir(folder, 0755);
    fixture_shard(dataset_path(inside), 0, 3, 3);
    stat(dataset_path(inside), &st);
    if (classes)
        write_manifest_of(inside, st.st_size, 3, classes);
    else
        unlink(dataset_path("manifest.json"));
    free(folder);
    folder = top;
}

static void make_folders(const char *name, const char *const *classes)
{
    char *top = folder;

    folder = strdup(dataset_path(name));
    mkdir(folder, 0755);
    make_classes(classes);
    free(folder);
    folder = top;
}

Test(dataset, classes_of_evaluation_are_those_of_training)
{
    make_shards("train", "[\"ant\", \"bee\", \"cat\"]");
    make_shards("eval", "[\"ant\", \"bee\", \"cat\"]");
    expect_comparison("", "");
    make_shards("eval", "[\"bee\", \"cat\"]");
    expect_comparison("has no class ant, which data.train has: class number 0 is ant there and bee",
                      "");
    make_shards("eval", "[\"ant\", \"bee\"]");
    expect_comparison("class number 2 is cat there and none here", "");
    make_shards("eval", "[\"ant\", \"cat\", \"bee\"]");
    expect_comparison("in a different order: class 1 is cat here and bee there", "");
    make_shards("eval", "[\"ant\", \"bee\", \"cat\", \"dog\"]");
    expect_comparison("has a class dog, which data.train does not have: class number 3", "");
    make_shards("eval", NULL);
    expect_comparison("", "data.eval has shards without a manifest.json");
    make_shards("train", NULL);
    expect_comparison("", "data.eval, as data.train, has shards without a manifest.json");
    make_shards("eval", "[1, 2]");
    expect_comparison("", "data.eval has a manifest.json that does not name");
    make_shards("train", "[\"ant\", \"bee\", \"cat\"]");
    expect_comparison("", "data.eval has a manifest.json that does not name the classes");
}

Test(dataset, classes_of_folders_are_those_of_shards)
{
    make_shards("train", "[\"ant\", \"bee\", \"cat\"]");
    make_folders("eval", NAMES("ant", "bee"));
    expect_comparison("has no folder of class cat, which data.train has", "");
    make_folders("eval", NAMES("cat"));
    expect_comparison("", "");
    make_folders("eval", NAMES("dog"));
    expect_comparison("has a folder of class dog, which data.train does not have", "");
}

/* Of weights for these classes (JSON; NULL: they do not say); strict: they go on. */
static void fill_zeros(size_t i, void *data, void *context)
{
    const struct safetensors_tensor *tensors = context;

    memset(data, 0, safetensors_bytes(&tensors[i]));
}

static int compare_with_weights(enum job_mode mode, const char *names, bool strict,
                                struct job_classes *out, struct error *e)
{
    struct safetensors_meta meta = {CLASS_NAMES_KEY, names};
    struct safetensors_tensor classifier[] = {
        {.name = "fc.weight", .dims = 2, .shape = {2, 512}},
        {.name = "fc.bias",   .dims = 1, .shape = {2}     }
    };
    struct job_spec spec = {
        .mode = mode, .model = {.arch = (char *)"resnet18", .classes = 2}
    };
    struct safetensors *weights;
    const char *key;

    spec.data.train = mode == JOB_MODE_TRAIN ? strdup(dataset_path("train")) : NULL;
    spec.data.eval = mode == JOB_MODE_EVAL ? strdup(dataset_path("train")) : NULL;
    safetensors_write(dataset_path("w"), classifier, 2, &meta, names ? 1 : 0, fill_zeros,
                      classifier, e);
    cr_assert_eq(safetensors_open(dataset_path("w"), &weights, e), 0, "%s", e->text);
    int rc = job_classes_compare(&spec, (struct dataset_part){0, 1}, weights, strict, out, &key, e);
    safetensors_close(weights);
    free(spec.data.train);
    free(spec.data.eval);
    job_classes_clear(out);
    return rc;
}

Test(dataset, classes_are_those_of_the_weights)
{
    static const char same[] = "[\"ant\",\"bee\"]", other[] = "[\"ant\",\"wasp\"]";
    struct job_classes out;
    struct error e = {0};

    make_folders("train", NAMES("ant", "bee"));
    for (enum job_mode mode = JOB_MODE_TRAIN; mode <= JOB_MODE_EVAL; mode++) {
        cr_expect_eq(compare_with_weights(mode, same, false, &out, &e), 0, "%s", e.text);
        cr_expect_str_eq(out.unknown, "");
        cr_expect_str_eq(out.remark, "");
        cr_expect_eq(compare_with_weights(mode, NULL, false, &out, &e), 0, "%s", e.text);
        cr_expect_not_null(strstr(out.unknown, "the weights contain no class names"), "%s",
                           out.unknown);
        cr_expect_eq(compare_with_weights(mode, "nonsense", false, &out, &e), 0, "%s", e.text);
        cr_expect_not_null(strstr(out.unknown, "the weights contain no class names"), "%s",
                           out.unknown);
    }
    cr_expect_eq(compare_with_weights(JOB_MODE_EVAL, other, false, &out, &e), -ERR_INVALID);
    cr_expect_not_null(strstr(e.text, "class number 1 is wasp there and bee here"), "%s", e.text);
    cr_expect_eq(compare_with_weights(JOB_MODE_TRAIN, other, false, &out, &e), 0,
                 "training may teach other classes");
    cr_expect_not_null(strstr(out.remark, "class number 1 is wasp there"), "%s", out.remark);
    cr_expect_eq(compare_with_weights(JOB_MODE_TRAIN, other, true, &out, &e), -ERR_INVALID,
                 "a run goes on with the classes it began with");
    cr_expect_eq(compare_with_weights(JOB_MODE_TRAIN, NULL, true, &out, &e), 0);
    cr_expect_str_eq(out.unknown, "", "a run whose data have no names");
}
