#include <criterion/criterion.h>
#include <dlfcn.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jpeglib.h>

#include "common/log.h"
#include "common/run/stall_report.h"
#include "tests/unit/data_fixture.h"
#include "worker/data/loader.h"
#include "worker/data/augment.h"

#define IMAGES 130
#define SIZE   16
#define FLOATS (SIZE * SIZE * 3)

static char *folder;
static struct dataset *data;

static void open_loader_data(void)
{
    struct error e;
    cr_assert_eq(dataset_open(folder, DATASET_TRAIN, &data, &e), 0, "%s", e.text);
}

static void make_loader_data(void)
{
    log_set_level(LOG_LEVEL_ERROR); /* bad images are named by warnings */
    folder = fixture_folder();
    fixture_shard(fixture_path(folder, "train-00000-of-00002"), 0, 50, 10);
    fixture_shard(fixture_path(folder, "train-00001-of-00002"), 50, IMAGES - 50, 10);
    open_loader_data();
}

static void remove_loader_data(void)
{
    dataset_close(data);
    fixture_remove(folder);
}

TestSuite(loader, .init = make_loader_data, .fini = remove_loader_data);

static atomic_int failing; /* so many threads find no memory for their decoder */

/* Instead of libjpeg's. */
void jpeg_CreateDecompress(j_decompress_ptr jpeg, int version, size_t bytes)
{
    void (*create)(j_decompress_ptr, int, size_t) =
        (void (*)(j_decompress_ptr, int, size_t))dlsym(RTLD_NEXT, "jpeg_CreateDecompress");

    if (failing > 0 && failing-- > 0)
        jpeg->err->error_exit((j_common_ptr)jpeg);
    create(jpeg, version, bytes);
}

/* Two epochs on one rank, all the data that makes whole batches. */
static struct loader_config training(int world, int rank, int batch)
{
    int64_t steps = IMAGES / (world * batch);
    return (struct loader_config){
        .dataset = data,
        .role = DATASET_TRAIN,
        .preprocess = JOB_PREPROCESS_TORCHVISION,
        .augment = true,
        .random_crop = true,
        .random_flip = true,
        .shuffle = true,
        .images = IMAGES,
        .image_size = SIZE,
        .classes = 10,
        .batch = batch,
        .rank = rank,
        .world = world,
        .seed = 5,
        .steps = 2 * steps,
        .steps_per_epoch = steps,
        .threads = 1,
        .depth = 2,
    };
}

static struct loader_config evaluation(int world, int rank, int batch)
{
    struct loader_config c = training(world, rank, batch);
    c.role = DATASET_EVAL;
    return c;
}

static struct loader *create_loader(const struct loader_config *c)
{
    struct loader *l;
    struct error e;
    cr_assert_eq(loader_create(c, &l, &e), 0, "%s", e.text);
    return l;
}

static bool next_batch(struct loader *l, struct loader_batch *b)
{
    struct error e;
    cr_assert_eq(loader_next(l, b, &e), 0, "%s", e.text);
    return b->n > 0;
}

/* All that a loader gives, one after the other. */
struct record {
    int count; /* images */
    int64_t indices[2 * IMAGES], steps[2 * IMAGES], epochs[2 * IMAGES];
    int32_t labels[2 * IMAGES];
    float images[2 * IMAGES][FLOATS];
};

static struct record *record_batches(const struct loader_config *c)
{
    struct record *r = calloc(1, sizeof *r);
    struct loader *l = create_loader(c);
    struct loader_batch b;
    while (next_batch(l, &b))
        for (int i = 0; i < b.n; i++) {
            cr_assert_lt(r->count, 2 * IMAGES);
            r->indices[r->count] = b.indices[i];
            r->labels[r->count] = b.labels[i];
            r->steps[r->count] = b.step;
            r->epochs[r->count] = b.epoch;
            memcpy(r->images[r->count++], b.images + i * FLOATS, sizeof r->images[0]);
        }
    cr_assert(!next_batch(l, &b), "the end stays the end");
    loader_destroy(l);
    return r;
}

static void expect_same(const struct record *a, const struct record *b)
{
    cr_assert_eq(a->count, b->count);
    cr_assert_arr_eq(a->indices, b->indices, sizeof a->indices);
    cr_assert_arr_eq(a->labels, b->labels, sizeof a->labels);
    cr_assert_arr_eq(a->images, b->images, sizeof a->images);
}

/* Step by step the images are those of a loader of that size alone, also of one that begins late.
 */
Test(loader, sizes_by_step)
{
    enum { SMALL = SIZE / 2 };
    struct loader_config small = training(1, 0, 4), large = small, both = small;
    struct loader_batch a, b;

    small.image_size = SMALL;
    both.size_count = 2;
    both.sizes[0] = (struct loader_size){0, SMALL};
    both.sizes[1] = (struct loader_size){3, SIZE};
    for (int64_t first = 0; first < 5; first += 2) {
        small.first_step = large.first_step = both.first_step = first;
        struct loader *l = create_loader(&both), *s = create_loader(&small),
                      *w = create_loader(&large);
        for (int64_t step = first; step < both.steps; step++) {
            cr_assert(next_batch(l, &a));
            struct loader *other = step < 3 ? s : w;
            next_batch(s, &b);
            if (other == w)
                next_batch(w, &b);
            else {
                struct loader_batch skipped;
                next_batch(w, &skipped);
            }
            cr_assert_eq(a.image_size, step < 3 ? SMALL : SIZE);
            cr_assert_eq(b.image_size, a.image_size);
            size_t floats = 4 * (size_t)a.image_size * (size_t)a.image_size * 3;
            cr_assert_arr_eq(a.images, b.images, floats * sizeof(float), "step %d", (int)step);
            cr_assert_arr_eq(a.labels, b.labels, 4 * sizeof *a.labels);
        }
        loader_destroy(l);
        loader_destroy(s);
        loader_destroy(w);
    }
}

/* The caller works on nothing, so it waits for the data alone. */
Test(loader, a_caller_that_waits_gets_more_threads_up_to_the_most)
{
    struct loader_config c = training(1, 0, IMAGES), same = c;
    struct loader_batch b;

    c.threads = 0;
    c.max_threads = 3;
    c.steps = 100;
    struct loader *l = create_loader(&c);
    cr_assert(next_batch(l, &b));
    cr_assert_eq(b.threads, 1);
    while (next_batch(l, &b))
        ;
    cr_assert_eq(b.threads, 3);
    loader_destroy(l);

    c.steps = same.steps;
    struct record *automatic = record_batches(&c), *one = record_batches(&same);
    expect_same(automatic, one);
    free(automatic);
    free(one);
}

Test(loader, a_caller_that_never_waits_keeps_one_thread)
{
    struct loader_config c = training(1, 0, 2);
    uint64_t decoded = stall_progress();
    struct loader_batch b;

    c.threads = 0;
    c.max_threads = 8;
    c.depth = (int)c.steps; /* all batches fit, and are there before the second is wanted */
    for (int tries = 0; tries < 1000; tries++) {
        struct loader *l = create_loader(&c);
        double longest = 0;

        cr_assert(next_batch(l, &b));
        while (stall_progress() < decoded + (uint64_t)(c.steps * c.batch))
            usleep(1000);
        decoded = stall_progress();
        for (int64_t i = 1; i < c.steps; i++) {
            cr_assert(next_batch(l, &b));
            longest = fmax(longest, b.wait_seconds);
        }
        int threads = b.threads;
        loader_destroy(l);
        /* Else it was taken off its processor in there, which counts as a wait. */
        if (longest < 1e-3) {
            cr_assert_eq(threads, 1);
            return;
        }
    }
    cr_assert_fail("it always waited");
}

Test(loader, batches_do_not_depend_on_threads_or_depth)
{
    struct loader_config c = training(1, 0, 13);
    struct record *one = record_batches(&c);
    cr_assert_eq(one->count, 2 * IMAGES);
    static const int others[][2] = {
        {2, 1},
        {3, 4},
        {7, 2},
        {1, 1}
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        c.threads = others[i][0];
        c.depth = others[i][1];
        struct record *other = record_batches(&c);
        expect_same(one, other);
        free(other);
    }
    free(one);
}

/* Whatever the number of ranks, step s takes the same images, and with the same crops. */
Test(loader, ranks_share_a_step_disjointly)
{
    static const int worlds[] = {1, 2, 3, 5};
    struct loader_config c = training(1, 0, 30);
    struct record *whole = record_batches(&c);
    for (size_t w = 0; w < sizeof worlds / sizeof *worlds; w++) {
        int world = worlds[w], batch = 30 / world;
        for (int rank = 0; rank < world; rank++) {
            c = training(world, rank, batch);
            struct record *part = record_batches(&c);
            cr_assert_eq(part->count * world, whole->count);
            for (int i = 0; i < part->count; i++) {
                int at = i / batch * 30 + rank * batch + i % batch;
                cr_assert_eq(part->indices[i], whole->indices[at]);
                cr_assert_eq(part->steps[i], whole->steps[at]);
                cr_assert_arr_eq(part->images[i], whole->images[at], sizeof part->images[0]);
            }
            free(part);
        }
    }
    free(whole);
}

Test(loader, an_epoch_visits_all_once_and_epochs_differ)
{
    struct loader_config c = training(1, 0, 13);
    struct record *r = record_batches(&c);
    int seen[IMAGES] = {0}, same = 0;
    for (int i = 0; i < 2 * IMAGES; i++) {
        seen[r->indices[i]]++;
        cr_assert_eq(r->labels[i], r->indices[i] % 10);
        cr_assert_eq(r->epochs[i], i / IMAGES);
        cr_assert_eq(r->steps[i], i / 13);
        same += i < IMAGES && r->indices[i] == r->indices[i + IMAGES];
    }
    for (int i = 0; i < IMAGES; i++)
        cr_assert_eq(seen[i], 2);
    cr_expect_lt(same, 10);
    free(r);
}

Test(loader, starts_again_at_any_step)
{
    struct loader_config c = training(1, 0, 13);
    struct record *whole = record_batches(&c);
    c.first_step = 12; /* in the second epoch */
    struct record *rest = record_batches(&c);
    cr_assert_eq(rest->count, whole->count - 12 * 13);
    cr_assert_arr_eq(rest->indices, whole->indices + 12 * 13, (size_t)rest->count * 8);
    cr_assert_arr_eq(rest->images, whole->images + 12 * 13,
                     (size_t)rest->count * sizeof rest->images[0]);
    free(whole);
    free(rest);
}

Test(loader, several_batches_a_step_are_the_images_of_one_large_batch)
{
    struct loader_config c = training(1, 0, 26);
    struct record *large = record_batches(&c);
    c.batch = 13;
    c.batches_per_step = 2;
    struct record *halves = record_batches(&c);
    cr_assert_eq(halves->count, large->count);
    cr_assert_arr_eq(halves->indices, large->indices, (size_t)large->count * 8);
    cr_assert_arr_eq(halves->steps, large->steps, (size_t)large->count * 8);
    cr_assert_arr_eq(halves->images, large->images, (size_t)large->count * sizeof large->images[0]);
    c.world = 2; /* image i of a step goes to rank i / (2 x 13) */
    c.rank = 1;
    c.steps_per_epoch = 2;
    c.steps = 4;
    struct record *second = record_batches(&c);
    cr_assert_eq(second->count, 4 * 26);
    for (int i = 0; i < second->count; i++) {
        int step = i / 26, run = 2 * (step % 2) + 1;
        cr_assert_eq(second->indices[i], large->indices[step / 2 * IMAGES + run * 26 + i % 26]);
    }
    free(large);
    free(halves);
    free(second);
}

/* An epoch of one step of 18 images, then one of steps of 4: each in its own order, and every step
 * as if the run had begun at it. */
Test(loader, batches_change_between_epochs)
{
    struct loader_config small = training(1, 0, 4), large = small, both = small;
    int64_t steps = IMAGES / 4;

    large.batch = 18;
    large.steps = large.steps_per_epoch = IMAGES / 18;
    both.steps = 2 + steps;
    both.phase_count = 2;
    both.phases[0] = (struct loader_phase){0, 18, 0, 0, 1};
    both.phases[1] = (struct loader_phase){1, 4, 1, IMAGES, steps};
    struct record *all = record_batches(&both), *a = record_batches(&large),
                  *b = record_batches(&small);
    cr_assert_arr_eq(all->indices, a->indices, 18 * 8);
    cr_assert_arr_eq(all->images, a->images, 18 * sizeof a->images[0]);
    int second = (int)steps * 4; /* in b, which has no more of the first epoch */
    cr_assert_arr_eq(all->indices + 18, b->indices + second, (size_t)second * 8);
    cr_assert_arr_eq(all->images + 18, b->images + second, (size_t)second * sizeof b->images[0]);
    cr_assert_eq(all->epochs[18], 1);
    cr_assert_eq(all->epochs[18 + second], 2);
    both.first_step = 1;
    struct record *rest = record_batches(&both);
    cr_assert_eq(rest->count, all->count - 18);
    cr_assert_arr_eq(rest->indices, all->indices + 18, (size_t)rest->count * 8);
    cr_assert_arr_eq(rest->images, all->images + 18, (size_t)rest->count * sizeof rest->images[0]);
    free(all);
    free(a);
    free(b);
    free(rest);
}

/* With exact epochs the change may be anywhere: no image is left out, and none comes twice. */
Test(loader, batches_change_within_an_epoch)
{
    struct loader_config c = training(1, 0, 4);

    c.epoch_images = IMAGES;
    c.phase_count = 2;
    c.phases[0] = (struct loader_phase){0, 18, 0, 0, IMAGES / 18};
    c.phases[1] = (struct loader_phase){3, 4, 0, 3 * 18, IMAGES / 4};
    c.steps = 3 + (2 * IMAGES - 3 * 18) / 4;
    struct record *all = record_batches(&c);
    int seen[IMAGES] = {0};
    for (int i = 0; i < IMAGES; i++)
        seen[all->indices[i]]++;
    for (int i = 0; i < IMAGES; i++)
        cr_assert_eq(seen[i], 1);
    c.first_step = 2;
    struct record *rest = record_batches(&c);
    cr_assert_arr_eq(rest->indices, all->indices + 36, (size_t)rest->count * 8);
    cr_assert_arr_eq(rest->images, all->images + 36, (size_t)rest->count * sizeof rest->images[0]);
    free(all);
    free(rest);
}

Test(loader, goes_on_inside_a_step_of_another_batch)
{
    struct loader_config c = training(1, 0, 13);
    struct record *whole = record_batches(&c);
    c.batch = 20; /* 39 images were seen; the second step of 20 would begin at 40 */
    c.steps_per_epoch = 6;
    c.steps = 12;
    c.first_step = 2;
    c.first_epoch_shift = -1;
    struct record *rest = record_batches(&c);
    cr_assert_eq(rest->count, 4 * 20 + 6 * 20);
    cr_assert_arr_eq(rest->indices, whole->indices + 39, 80 * 8);
    cr_assert_arr_eq(rest->indices + 80, whole->indices + IMAGES, 120 * 8);
    free(whole);
    free(rest);
}

Test(loader, mixup_mixes_a_batch_by_the_weight_of_its_step)
{
    struct loader_config c = training(2, 1, 13);
    struct record *plain = record_batches(&c);
    c.mixup = 0.5;
    c.threads = 3;
    struct loader *l = create_loader(&c);
    struct loader_batch b;
    float want[13 * FLOATS];
    for (int i = 0; next_batch(l, &b); i += b.n) {
        cr_assert_eq(b.lambda, mixup_lambda(0.5, c.seed, b.epoch, b.step));
        mixup_images(want, plain->images[i], b.n, FLOATS, b.lambda);
        cr_assert_arr_eq(b.images, want, sizeof want);
        cr_assert_arr_eq(b.labels, plain->labels + i, (size_t)b.n * sizeof *b.labels);
    }
    loader_destroy(l);
    free(plain);
}

Test(loader, cutmix_swaps_a_box_of_its_step)
{
    struct loader_config c = training(2, 1, 13);
    struct record *plain = record_batches(&c);
    c.cutmix = 1;
    c.threads = 3;
    struct loader *l = create_loader(&c);
    struct loader_batch b;
    float want[13 * FLOATS];
    double least = 1;
    for (int i = 0; next_batch(l, &b); i += b.n) {
        struct cutmix_box box;
        cr_assert_eq(b.lambda, cutmix_draw(1, c.seed, b.epoch, b.step, SIZE, &box));
        int inside = 0;
        for (int k = 0; k < b.n; k++)
            for (int y = 0; y < SIZE; y++)
                for (int x = 0; x < SIZE; x++) {
                    bool in = x >= box.left && x < box.right && y >= box.top && y < box.bottom;
                    size_t at = (size_t)(3 * (y * SIZE + x));
                    memcpy(want + k * FLOATS + at, plain->images[i + (in ? b.n - 1 - k : k)] + at,
                           3 * sizeof *want);
                    inside += in;
                }
        cr_assert_float_eq(b.lambda, 1 - inside / (double)(b.n * SIZE * SIZE), 1e-12);
        cr_assert_arr_eq(b.images, want, sizeof want);
        least = b.lambda < least ? b.lambda : least;
    }
    cr_assert_lt(least, 0.9);
    loader_destroy(l);
    free(plain);
}

Test(loader, with_both_a_step_has_mixup_or_cutmix)
{
    struct loader_config c = training(1, 0, 13);
    struct loader_batch b;
    int kinds[2] = {0};

    c.mixup = 0.5;
    c.cutmix = 1;
    struct loader *l = create_loader(&c);
    while (next_batch(l, &b)) {
        struct cutmix_box box;
        bool mixes = b.lambda == mixup_lambda(0.5, c.seed, b.epoch, b.step);
        cr_assert(mixes || b.lambda == cutmix_draw(1, c.seed, b.epoch, b.step, SIZE, &box));
        kinds[mixes]++;
    }
    cr_expect(kinds[0] > 0 && kinds[1] > 0, "%d and %d steps", kinds[0], kinds[1]);
    loader_destroy(l);
}

/* By seed, epoch and image alone; with each preprocess, grey images, and in bf16. */
Test(loader, distortions_do_not_depend_on_threads_or_batches)
{
    static const struct distort_config kinds[] = {
        {.auto_augment = JOB_AUTO_AUGMENT_TRIVIAL    },
        {.auto_augment = JOB_AUTO_AUGMENT_RANDAUGMENT, .ops = 2, .magnitude = 9},
        {.color_jitter = 0.4,                              .hue_jitter = 0.1},
        {.erasing = 0.7                         },
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct loader_config c = training(1, 0, 13);
        c.preprocess = (enum job_preprocess)i;
        struct record *plain = record_batches(&c);
        c.distort = kinds[i];
        struct record *one = record_batches(&c);
        c.threads = 3;
        struct record *other = record_batches(&c);
        expect_same(one, other);
        int changed = 0;
        for (int k = 0; k < one->count; k++)
            changed += memcmp(one->images[k], plain->images[k], sizeof plain->images[k]) != 0;
        cr_expect(changed > one->count / 3 && changed <= one->count, "%zu: %d of %d", i, changed,
                  one->count);
        free(plain);
        free(one);
        free(other);
    }
}

Test(loader, images_in_bf16_are_the_same_ones_rounded)
{
    struct loader_config c = training(1, 0, 13);
    static const char *const kinds[] = {"photographs", "synthetic"};
    bf16 want[13 * FLOATS];

    for (int kind = 0; kind < 2; kind++) {
        struct loader_batch b, half;
        c.dataset = kind ? NULL : c.dataset;
        c.bf16 = false;
        struct loader *l = create_loader(&c);
        c.bf16 = true;
        struct loader *rounded = create_loader(&c);
        for (int i = 0; i < 3; i++) {
            cr_assert(next_batch(l, &b) && next_batch(rounded, &half));
            cr_assert(b.images && !b.images_bf16 && half.images_bf16 && !half.images);
            bf16_from_floats(b.images, (size_t)b.n * FLOATS, want);
            cr_assert_arr_eq(half.images_bf16, want, sizeof want, "%s", kinds[kind]);
            cr_assert_arr_eq(half.labels, b.labels, (size_t)b.n * sizeof *b.labels);
        }
        loader_destroy(rounded);
        loader_destroy(l);
    }
}

Test(loader, file_order_without_shuffle_and_the_same_image_without_augment)
{
    struct loader_config c = training(1, 0, 13);
    c.shuffle = c.augment = false;
    struct record *r = record_batches(&c);
    for (int i = 0; i < 2 * IMAGES; i++)
        cr_assert_eq(r->indices[i], i % IMAGES);
    cr_assert_arr_eq(r->images[0], r->images[IMAGES], IMAGES * sizeof r->images[0]);
    c.augment = true;
    struct record *augmented = record_batches(&c);
    cr_assert_neq(memcmp(augmented->images[0], augmented->images[IMAGES], sizeof r->images[0]), 0);
    free(augmented);
    free(r);
}

static bool is_mirror_of(const float *a, const float *b)
{
    for (int y = 0; y < SIZE; y++)
        for (int x = 0; x < SIZE; x++)
            if (memcmp(a + 3 * (y * SIZE + x), b + 3 * (y * SIZE + SIZE - 1 - x), 3 * sizeof *a))
                return false;
    return true;
}

/* Without crops only the flip differs between epochs. Other ranks and batches change nothing. */
Test(loader, alternating_flips_mirror_each_image_in_every_second_epoch)
{
    struct loader_config c = training(1, 0, 13);
    int mirrored = 0;

    c.shuffle = c.random_flip = c.random_crop = false;
    struct record *plain = record_batches(&c);
    c.random_flip = true;
    struct record *random = record_batches(&c);
    c.flip = JOB_FLIP_ALTERNATING;
    struct record *r = record_batches(&c);
    for (int i = 0; i < IMAGES; i++) {
        bool first = is_mirror_of(r->images[i], plain->images[i]);
        mirrored += first;
        cr_assert(is_mirror_of(r->images[IMAGES + i], r->images[i]), "image %d", i);
        cr_assert(first || !memcmp(r->images[i], plain->images[i], sizeof r->images[i]));
        cr_assert_arr_eq(r->images[i], random->images[i], sizeof r->images[i]);
    }
    cr_expect(mirrored > IMAGES / 4 && mirrored < IMAGES * 3 / 4, "%d", mirrored);
    for (int rank = 0; rank < 2; rank++) {
        struct loader_config other = training(2, rank, 5);
        other.random_crop = false;
        other.flip = JOB_FLIP_ALTERNATING;
        struct record *o = record_batches(&other);
        for (int i = 0; i < o->count; i++)
            cr_assert_arr_eq(o->images[i], r->images[o->epochs[i] * IMAGES + o->indices[i]],
                             sizeof o->images[i]);
        free(o);
    }
    free(plain);
    free(random);
    free(r);
}

Test(loader, evaluation_counts_every_image_once)
{
    static const int worlds[] = {1, 2, 3, 5};
    for (size_t w = 0; w < sizeof worlds / sizeof *worlds; w++)
        for (int batch = 7; batch <= 200; batch += 193) {
            int seen[IMAGES] = {0};
            for (int rank = 0; rank < worlds[w]; rank++) {
                struct loader_config c = evaluation(worlds[w], rank, batch);
                struct record *r = record_batches(&c);
                for (int i = 0; i < r->count; i++)
                    seen[r->indices[i]]++;
                free(r);
            }
            for (int i = 0; i < IMAGES; i++)
                cr_assert_eq(seen[i], 1, "world %d, batch %d, image %d", worlds[w], batch, i);
        }
}

/* Puts a broken JPEG, in a record that is whole, at the end of another shard. */
static void spoil(int count, int64_t label)
{
    FILE *file;
    dataset_close(data);
    file = fopen(fixture_path(folder, "train-00001-of-00002"), "ab");
    for (int i = 0; i < count; i++) {
        size_t jpeg_bytes, bytes;
        uint8_t *jpeg = fixture_jpeg(28, 28, 1, i, &jpeg_bytes);
        uint8_t *record = fixture_record(jpeg, jpeg_bytes / 2, label, "broken.jpg", &bytes);
        fwrite(record, 1, bytes, file);
        free(record);
        free(jpeg);
    }
    fclose(file);
    open_loader_data();
}

Test(loader, a_bad_jpeg_is_replaced_in_training_and_wrong_in_evaluation)
{
    spoil(1, 1);
    for (int threads = 1; threads <= 3; threads++) {
        struct loader_config c = training(1, 0, 131);
        struct loader_batch b;
        c.images = 131;
        c.steps_per_epoch = c.steps = 1;
        c.shuffle = c.augment = false;
        c.threads = threads;
        struct loader *l = create_loader(&c);
        cr_assert(next_batch(l, &b));
        cr_expect_eq(b.indices[130], 0);
        cr_expect_eq(b.labels[130], b.labels[0]);
        cr_expect_arr_eq(b.images + 130 * FLOATS, b.images, FLOATS * sizeof(float));
        cr_expect_eq(loader_bad_images(l), 1);
        loader_destroy(l);
    }
    struct loader_config c = evaluation(1, 0, 131);
    struct loader_batch b;
    c.images = 131;
    struct loader *l = create_loader(&c);
    cr_assert(next_batch(l, &b));
    cr_expect_eq(b.indices[130], 130);
    cr_expect_eq(b.labels[130], -1);
    for (int i = 0; i < FLOATS; i++)
        cr_assert_eq(b.images[130 * FLOATS + i], 0);
    cr_assert(!next_batch(l, &b));
    loader_destroy(l);
}

Test(loader, a_batch_of_one_bad_jpeg_takes_another)
{
    spoil(1, 1);
    struct loader_config c = training(1, 0, 1);
    struct loader_batch b;
    c.images = c.steps = c.steps_per_epoch = 131;
    c.first_step = 130;
    c.shuffle = false;
    struct loader *l = create_loader(&c);
    cr_assert(next_batch(l, &b));
    cr_expect_eq(b.indices[0], 0);
    loader_destroy(l);
}

/* Reads until an error or the end; returns what loader_next returned. */
static int read_all_batches(const struct loader_config *c, struct error *e)
{
    struct loader *l = create_loader(c);
    struct loader_batch b;
    int rc;
    while ((rc = loader_next(l, &b, e)) == 0 && b.n > 0)
        ;
    if (rc)
        cr_expect_eq(loader_next(l, &b, e), rc, "an error stays");
    loader_destroy(l);
    return rc;
}

Test(loader, bad_jpegs_are_counted_and_judged_over_all)
{
    struct error e = {0};
    struct loader_batch b;
    spoil(2, 1);
    struct loader_config c = evaluation(1, 0, 66);
    c.images = 132;
    struct loader *l = create_loader(&c);
    cr_assert(next_batch(l, &b));
    cr_expect_eq(loader_bad_images(l), 0);
    while (next_batch(l, &b))
        ;
    cr_expect_eq(loader_bad_images(l), 2);
    loader_destroy(l);
    cr_expect_eq(loader_judge_bad(2, 132, false, &e), -ERR_INVALID);
    cr_expect_not_null(strstr(e.text, "2 of the 132 images"), "%s", e.text);
    cr_expect_not_null(strstr(e.text, "(1.5 %, the limit is 1 %)"), "%s", e.text);
    cr_expect_eq(loader_judge_bad(120, 120, true, &e), -ERR_INVALID);
    cr_expect_not_null(strstr(e.text, "(100 %,"), "%s", e.text);
    cr_expect_eq(loader_judge_bad(99999, 100000, true, &e), -ERR_INVALID);
    cr_expect_not_null(strstr(e.text, "(99 %,"), "not all: %s", e.text);
    cr_expect_eq(loader_judge_bad(2, 200, true, &e), 0);
    cr_expect_eq(loader_judge_bad(2, 99, false, &e), 0, "few are judged at the end");
    cr_expect_eq(loader_judge_bad(2, 99, true, &e), -ERR_INVALID);
    cr_expect_eq(loader_judge_bad(0, 0, true, &e), 0);
}

Test(loader, a_label_outside_the_classes_is_named)
{
    struct error e = {0};
    struct loader_config c = training(1, 0, 13);
    c.classes = 9;
    c.shuffle = false;
    for (c.threads = 1; c.threads <= 3; c.threads++) {
        cr_assert_eq(read_all_batches(&c, &e), -ERR_INVALID);
        cr_assert(strstr(e.text, "train-00000-of-00002, record at byte ") &&
                      strstr(e.text, "(9.jpg)") &&
                      strstr(e.text, "the label is 9, stored as 10; with 9 classes"),
                  "%s", e.text);
    }
    spoil(1, 0);
    c = evaluation(1, 0, 200);
    c.images = 131;
    cr_assert_eq(read_all_batches(&c, &e), -ERR_INVALID);
    cr_assert_not_null(strstr(e.text, "the label is -1, stored as 0"), "%s", e.text);
}

Test(loader, a_corrupt_record_ends_it)
{
    struct error e = {0};
    size_t bytes;
    const char *path = fixture_path(folder, "train-00000-of-00002");
    uint8_t *shard = fixture_read(path, &bytes);
    shard[200] ^= 1;
    dataset_close(data);
    fixture_write(path, shard, bytes);
    open_loader_data();
    struct loader_config c = training(1, 0, 13);
    cr_assert_eq(read_all_batches(&c, &e), -ERR_CORRUPT);
    cr_assert(strstr(e.text, "train-00000-of-00002") && strstr(e.text, "byte 0"), "%s", e.text);
    free(shard);
}

Test(loader, refuses_unsupported_configurations)
{
    struct loader_config c = training(1, 0, 13);
    struct loader *l;
    struct error e;
    c.images++;
    cr_expect_eq(loader_create(&c, &l, &e), -ERR_INVALID);
    c = training(1, 0, 13);
    c.steps_per_epoch++;
    cr_expect_eq(loader_create(&c, &l, &e), -ERR_INVALID);
    cr_expect_null(l);
}

Test(loader, is_destroyed_at_any_moment)
{
    struct loader_config c = training(1, 0, 13);
    struct loader_batch b;
    c.threads = 3;
    for (int taken = 0; taken < 6; taken++) {
        struct loader *l = create_loader(&c);
        for (int i = 0; i < taken; i++)
            next_batch(l, &b);
        loader_destroy(l);
    }
    loader_destroy(NULL);
}

Test(loader, synthetic_batches_look_normalised_and_repeat)
{
    struct loader_config c = training(2, 1, 13);
    struct loader_batch b;
    double sum = 0, squares = 0;
    c.dataset = NULL;
    c.images = 1000;
    c.steps_per_epoch = c.steps = 38;
    struct loader *l = create_loader(&c);
    int steps = 0;
    while (next_batch(l, &b)) {
        cr_assert_eq(b.n, 13);
        cr_assert_eq(b.step, steps++);
        for (int i = 0; i < 13; i++)
            cr_assert(b.labels[i] >= 0 && b.labels[i] < 10);
        for (int i = 0; i < 13 * FLOATS; i++) {
            sum += b.images[i];
            squares += b.images[i] * b.images[i];
        }
    }
    cr_expect_eq(steps, 38);
    double n = 38.0 * 13 * FLOATS;
    cr_expect_float_eq(sum / n, 0, 0.03);
    cr_expect_float_eq(squares / n, 1, 0.03);
    loader_destroy(l);
    c = evaluation(2, 1, 13);
    c.dataset = NULL;
    c.images = 20;
    l = create_loader(&c);
    cr_assert(next_batch(l, &b));
    cr_expect_eq(b.n, 7);
    cr_expect(!next_batch(l, &b));
    loader_destroy(l);
}

Test(loader, a_thread_without_memory_leaves_the_work_to_the_others)
{
    struct loader_config c = training(1, 0, 4);
    struct record *whole = record_batches(&c);

    c.threads = 3;
    failing = 2;
    struct record *r = record_batches(&c);
    cr_expect_eq(failing, 0);
    expect_same(whole, r);
    free(whole);
    free(r);
}

Test(loader, threads_that_are_all_without_memory_end_it)
{
    struct loader_config c = training(1, 0, 4);
    struct loader_batch b;
    struct error e;

    failing = 3;
    c.threads = 3;
    struct loader *l = create_loader(&c);
    cr_expect_eq(loader_next(l, &b, &e), -ERR_NO_MEMORY);
    loader_destroy(l);
}
