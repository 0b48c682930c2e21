/* Who gets which images in jobs of 512 ranks, on paper: real rules, fabricated shards. */
#include <stdio.h>

#include "common/dataset/file_list.h"
#include "common/job/job_document.h"
#include "common/plan/plan_build.h"
#include "common/plan/replan.h"
#include "tests/unit/common/job.h"
#include "worker/data/sampler.h"

#define IMAGENET 1281167
#define BATCH    48

TestSuite(shares, .init = use_source_presets);

/* Images of each of count shards that hold ImageNet: sizes differ by one. */
static int64_t images_of_shard(int shards, int i)
{
    return IMAGENET / shards + (i < IMAGENET % shards);
}

/* images (nodes): what each node owns, by the shards' names. */
static void share_shards(int shards, int nodes, int64_t *images)
{
    struct dataset_list list = {.format = DATASET_TFRECORD, .count = (size_t)shards};

    list.files = calloc((size_t)shards, sizeof *list.files);
    for (int i = 0; i < shards; i++)
        cr_assert(asprintf(&list.files[i], "/data/train-%05d-of-%05d", i, shards) > 0);
    for (int i = 0; i < shards; i++) {
        int node = dataset_list_node(&list, nodes, (uint32_t)i);
        cr_assert(node >= 0 && node < nodes);
        images[node] += images_of_shard(shards, i);
    }
    for (int i = 0; i < shards; i++)
        free(list.files[i]);
    free(list.files);
}

static struct plan *plan_for(int nodes, int workers, int64_t least, int64_t most)
{
    char text[256];
    struct problems problems = {0};
    struct plan_inputs in = {
        .train_images = IMAGENET, .node_images_least = least, .node_images_most = most};

    snprintf(text, sizeof text,
             "{\"preset\": \"surfsara-24k\", \"data\": {\"train\": \"x\", \"locality\": \"%s\"}, "
             "\"cluster\": {\"nodes\": %d, \"workers_per_node\": %d}}",
             least ? "node" : "global", nodes, workers);
    struct job_spec *spec = job_of(text);
    struct plan *plan = plan_make(spec, &in, &problems);
    cr_assert_not_null(plan);
    cr_assert_eq(plan->global_batch, BATCH * nodes * workers);
    job_spec_destroy(spec);
    return plan;
}

/* One epoch of `world` ranks that share `images`. seen (images) counts; every rank must get as many
 * as the others, and no image may be met twice. */
static void visit_epoch(int64_t images, int world, int64_t steps, int64_t epoch, uint8_t *seen)
{
    int64_t indices[BATCH];
    uint8_t *now = calloc((size_t)images, 1);

    for (int rank = 0; rank < world; rank++) {
        struct loader_config c = {.role = DATASET_TRAIN,
                                  .shuffle = true,
                                  .images = images,
                                  .batch = BATCH,
                                  .rank = rank,
                                  .world = world,
                                  .seed = 3,
                                  .first_step = epoch * steps,
                                  .steps = (epoch + 1) * steps,
                                  .steps_per_epoch = steps};
        int64_t k = 0;
        while (sampler_batch(&c, k, indices).n == BATCH) {
            for (int i = 0; i < BATCH; i++) {
                cr_assert(indices[i] >= 0 && indices[i] < images && !now[indices[i]]++);
                seen[indices[i]] = 1;
            }
            k++;
        }
        cr_assert_eq(k, steps, "rank %d has %lld of %lld steps", rank, (long long)k,
                     (long long)steps);
    }
    free(now);
}

static int64_t count_seen(const uint8_t *seen, int64_t images)
{
    int64_t n = 0;
    for (int64_t i = 0; i < images; i++)
        n += seen[i];
    return n;
}

/* 52 steps of 24,576 images; 3,215 are left out, others in each epoch. */
Test(shares, of_512_ranks_on_common_data_are_equal_and_disjoint)
{
    struct plan *plan = plan_for(256, 2, 0, 0);
    uint8_t *seen = calloc(IMAGENET, 1);

    visit_epoch(IMAGENET, 512, plan->steps_per_epoch, 0, seen);
    cr_assert_eq(count_seen(seen, IMAGENET), IMAGENET - plan->dropped_images_per_epoch);
    cr_assert_lt(plan->dropped_images_per_epoch, plan->global_batch);
    visit_epoch(IMAGENET, 512, plan->steps_per_epoch, 1, seen);
    cr_assert_gt(count_seen(seen, IMAGENET), IMAGENET - plan->dropped_images_per_epoch / 50);
    plan_destroy(plan);
    free(seen);
}

/* Nodes with the fewest and the most images go through an epoch: all ranks of all nodes do as many
 * steps; what a node leaves out is less than a step beyond what it has more than the others. */
static void check_node_shares(int shards, int nodes, int workers, int64_t owned_least,
                              int64_t owned_most)
{
    int64_t *images = calloc((size_t)nodes, sizeof *images), least = IMAGENET, most = 0, sum = 0;

    share_shards(shards, nodes, images);
    for (int i = 0; i < nodes; i++) {
        least = images[i] < least ? images[i] : least;
        most = images[i] > most ? images[i] : most;
        sum += images[i];
    }
    cr_assert_eq(sum, IMAGENET, "each shard has one owner");
    cr_assert(least >= owned_least * (IMAGENET / shards) &&
              most <= owned_most * (IMAGENET / shards + 1));
    struct plan *plan = plan_for(nodes, workers, least, most);
    cr_assert_eq(plan->steps_per_epoch, least / (workers * BATCH));
    for (int i = 0; i < nodes; i++) {
        uint8_t *seen = calloc((size_t)images[i], 1);
        visit_epoch(images[i], workers, plan->steps_per_epoch, 0, seen);
        int64_t left = images[i] - count_seen(seen, images[i]);
        cr_assert(left < workers * BATCH + images[i] - least);
        for (int64_t epoch = 1; epoch < 30 && i % 64 == 0; epoch++)
            visit_epoch(images[i], workers, plan->steps_per_epoch, epoch, seen);
        cr_assert(i % 64 || count_seen(seen, images[i]) == images[i], "node %d: some are never met",
                  i);
        free(seen);
    }
    plan_destroy(plan);
    free(images);
}

Test(shares, of_256_nodes_with_4_of_1024_shards_each)
{
    check_node_shares(1024, 256, 2, 4, 4);
}

Test(shares, of_64_nodes_with_16_of_1024_shards_each)
{
    check_node_shares(1024, 64, 8, 16, 16);
}

/* 232 nodes own 4 shards and 24 own 3: all do the steps of the 24. */
Test(shares, of_256_nodes_with_3_or_4_of_1000_shards)
{
    check_node_shares(1000, 256, 2, 3, 4);
}

/* Ranks differ by at most one batch, and the last one may be short. */
Test(shares, of_512_ranks_in_an_evaluation_are_all_images_once)
{
    enum { IMAGES = 50000, EVAL_BATCH = 20, WORLD = 512 };
    int64_t indices[EVAL_BATCH], least = IMAGES, most = 0;
    uint8_t *seen = calloc(IMAGES, 1);

    for (int rank = 0; rank < WORLD; rank++) {
        struct loader_config c = {.role = DATASET_EVAL,
                                  .images = IMAGES,
                                  .batch = EVAL_BATCH,
                                  .rank = rank,
                                  .world = WORLD};
        int64_t own = 0;
        for (int64_t k = 0;; k++) {
            struct sampler_batch b = sampler_batch(&c, k, indices);
            for (int i = 0; i < b.n; i++)
                cr_assert(!seen[indices[i]]++);
            if (b.n == 0)
                break;
            own += b.n;
        }
        least = own < least ? own : least;
        most = own > most ? own : most;
    }
    cr_assert_eq(count_seen(seen, IMAGES), IMAGES);
    cr_assert_leq(most - least, EVAL_BATCH);
    free(seen);
}

/* Steps [first, end) of `world` ranks with exact epochs of images images; seen (images) counts. */
static void visit_steps(int64_t images, int world, int batch, int64_t first, int64_t end,
                        int64_t shift, uint8_t *seen, int64_t *last_epoch)
{
    int64_t indices[64];

    for (int rank = 0; rank < world; rank++) {
        struct loader_config c = {.role = DATASET_TRAIN,
                                  .shuffle = true,
                                  .images = images,
                                  .epoch_images = images,
                                  .batch = batch,
                                  .rank = rank,
                                  .world = world,
                                  .seed = 3,
                                  .first_step = first,
                                  .steps = end,
                                  .steps_per_epoch = images / batch / world,
                                  .first_epoch_shift = shift};
        for (int64_t k = 0;; k++) {
            struct sampler_batch b = sampler_batch(&c, k, indices);
            if (!b.n)
                break;
            for (int i = 0; i < b.n; i++)
                seen[(b.epoch + (i >= b.next_epoch_at)) * images + indices[i]]++;
            *last_epoch = b.epoch;
        }
    }
}

/* 7 epochs of 101 images in steps of 12, then, from within an epoch, in steps of 15. */
Test(shares, exact_epochs_show_every_image_once_also_with_other_workers)
{
    enum { IMAGES = 101, EPOCHS = 7 };
    uint8_t seen[IMAGES * (EPOCHS + 1)] = {0};
    struct plan plan = {
        .exact = true, .train_images = IMAGES, .phases = {{.global_batch = 15}}, .phase_count = 1};
    int64_t last, step, shift, done = 20 * 12;

    visit_steps(IMAGES, 3, 4, 0, 20, 0, seen, &last);
    cr_assert_eq(last, 2);
    replan_place(done / IMAGES, done % IMAGES, &plan, &step, &shift);
    cr_assert(shift <= 0 && shift > -15 && step * 15 + shift == done);
    visit_steps(IMAGES, 5, 3, step, (EPOCHS * IMAGES + 14) / 15, shift, seen, &last);
    for (int i = 0; i < (EPOCHS - 1) * IMAGES; i++)
        cr_assert_eq(seen[i], 1, "epoch %d, image %d: %d times", i / IMAGES, i % IMAGES, seen[i]);
}
