#include <criterion/criterion.h>
#include <stdlib.h>

#include "common/net/activations.h"
#include "common/rng.h"

static bool overlap(const struct arena_buffer *a, const struct arena_buffer *b)
{
    return a->size && b->size && a->first <= b->last && b->first <= a->last &&
           a->offset < b->offset + b->size && b->offset < a->offset + a->size;
}

/* The most that lives at one time. */
static size_t most_at_once(const struct arena_buffer *buffers, int count)
{
    size_t most = 0;

    for (int i = 0; i < count; i++) { /* the maximum lies where a life begins */
        size_t sum = 0;
        for (int k = 0; k < count; k++)
            if (buffers[k].first <= buffers[i].first && buffers[i].first <= buffers[k].last)
                sum += buffers[k].size;
        most = sum > most ? sum : most;
    }
    return most;
}

/* No two that live together share memory, all lie inside, and little is wasted. */
static void check_placement(const struct arena_buffer *b, int count, size_t size, double waste,
                            const char *what)
{
    size_t least = most_at_once(b, count);

    for (int i = 0; i < count; i++) {
        cr_assert(b[i].offset + b[i].size <= size, "%s: buffer %d ends behind the arena", what, i);
        for (int k = 0; k < i; k++)
            cr_assert(!overlap(&b[i], &b[k]), "%s: buffers %d and %d overlap", what, i, k);
    }
    cr_assert(size >= least && (double)size <= waste * (double)least, "%s: %zu, at least %zu", what,
              size, least);
}

Test(arena, buffers_of_one_time_lie_side_by_side)
{
    struct arena_buffer b[] = {
        {10, 0, 4, 0},
        {20, 2, 6, 0},
        {30, 4, 9, 0}
    };
    size_t size = arena_place(b, 3);
    cr_assert_eq(size, 60);
    check_placement(b, 3, size, 1, "three at once");
}

Test(arena, buffers_one_after_the_other_take_the_same_place)
{
    struct arena_buffer b[] = {
        {10, 0, 1, 0},
        {20, 2, 3, 0},
        {30, 4, 4, 0},
        {5,  5, 5, 0}
    };
    cr_assert_eq(arena_place(b, 4), 30);
    for (int i = 0; i < 4; i++)
        cr_assert_eq(b[i].offset, 0);
}

Test(arena, a_gap_between_two_is_used)
{
    struct arena_buffer b[] = {
        {40, 0, 9, 0},
        {30, 0, 3, 0},
        {20, 0, 9, 0},
        {25, 5, 9, 0}
    };
    cr_assert_eq(arena_place(b, 4), 90);
    cr_assert_eq(b[3].offset, 40, "where the second was");
}

Test(arena, without_buffers_is_empty)
{
    cr_assert_eq(arena_place(NULL, 0), 0);
    cr_assert_eq(most_at_once(NULL, 0), 0);
}

Test(arena, never_overlaps_buffers_of_random_lifetimes)
{
    struct arena_buffer b[200];

    for (int seed = 0; seed < 20; seed++) {
        struct rng r = rng_stream(seed, 0, 0, RNG_SYNTHETIC);
        for (int i = 0; i < 200; i++) {
            int first = (int)rng_below(&r, 100);
            b[i] = (struct arena_buffer){16 * (1 + rng_below(&r, 64)), first,
                                         first + (int)rng_below(&r, 20), 0};
        }
        check_placement(b, 200, arena_place(b, 200), 1.25, "random lives");
    }
}

/* Of the table's first networks; cnn, which has another memory, is its last. */
static const struct arch *residual_at(size_t i)
{
    const struct arch *arch = arch_at(i);
    return arch && arch->family == ARCH_RESIDUAL ? arch : NULL;
}

static struct activations arena_plan(const struct arch *arch, enum job_stem stem, int size,
                                     bool inference, bool blur_pool, struct network *n)
{
    struct arch_shape shape = {
        .arch = arch, .stem = stem, .image_size = size, .blur_pool = blur_pool};
    struct activations a;

    network_make(&shape, n);
    activations_plan(n, inference, sizeof(float), &a);
    return a;
}

static size_t floats_of_z(const struct network *n)
{
    size_t sum = 0;
    for (int i = 0; i < n->conv_count; i++)
        sum += network_floats(&n->convs[i]);
    return sum;
}

Test(activations, of_the_family_lie_close_together)
{
    static const int sizes[] = {32, 75, 224};
    struct network n;

    for (size_t i = 0; residual_at(i); i++)
        for (int k = 0; k < 24; k++) {
            bool inference = k % 2;
            struct activations a =
                arena_plan(arch_at(i), k / 2 % 2 ? JOB_STEM_SMALL : JOB_STEM_IMAGENET,
                           sizes[k / 4 % 3], inference, k >= 12, &n);
            check_placement(a.buffers, a.count, a.numbers,
                            inference ? 1.15
                            : k < 12  ? 1.05
                                      : 1.1,
                            arch_at(i)->name);
        }
}

/* The point of it: outputs of convolutions, and little besides. */
Test(activations, of_a_resnet50_are_an_eighth_more_than_the_outputs_of_its_convolutions)
{
    struct network n;
    struct activations a =
        arena_plan(arch_find("resnet50"), JOB_STEM_IMAGENET, 224, false, false, &n);
    double z = (double)floats_of_z(&n);

    cr_assert(a.numbers > z && a.numbers < 1.13 * z, "%zu floats an image, %g of them z", a.numbers,
              z);
    /* of the low-pass filters, only the taps of the pooling are kept for backward */
    struct activations blurred =
        arena_plan(arch_find("resnet50"), JOB_STEM_IMAGENET, 224, false, true, &n);
    cr_assert(blurred.numbers > a.numbers &&
                  (double)blurred.numbers < (double)a.numbers + 112 * 112 * 64 / 4,
              "%zu floats an image, %zu without filters", blurred.numbers, a.numbers);
}

static void check_lives(const struct activations *a, const struct network *n)
{
    for (int i = 0; i < n->conv_count; i++) /* evaluation uses them all at any time */
        for (int k = 0; k < i; k++)
            cr_assert(a->buffers[a->units[i].z].first <= a->buffers[a->units[k].z].last &&
                      a->buffers[a->units[k].z].first <= a->buffers[a->units[i].z].last);
    for (int i = 0; i + 1 < n->block_count; i++)
        cr_assert(a->blocks[i].out_again >= 0, "output of block %d is there in backward", i);
}

Test(activations, of_training_serve_evaluation_too)
{
    struct network n;

    for (size_t i = 0; residual_at(i); i++) {
        struct activations a = arena_plan(arch_at(i), JOB_STEM_SMALL, 32, false, false, &n);
        check_lives(&a, &n);
    }
}

/* Each output that was not kept is derived exactly once, before the block behind it needs it. */
Test(activations, derive_every_output_once)
{
    struct network n;

    for (size_t i = 0; residual_at(i); i++) {
        struct activations a = arena_plan(arch_at(i), JOB_STEM_IMAGENET, 64, false, true, &n);
        int derived[NETWORK_BLOCKS] = {0};
        for (int b = n.block_count - 1; b >= 0; b--) {
            int from = a.blocks[b].derive;
            for (int k = from; from >= 0 && k < b; k++)
                derived[k]++;
            if (b)
                cr_assert(derived[b - 1] || a.blocks[b - 1].out_again == a.blocks[b - 1].out,
                          "%s: output of block %d", arch_at(i)->name, b - 1);
        }
        for (int b = 0; b < n.block_count; b++)
            cr_assert_eq(derived[b], a.blocks[b].out_again != a.blocks[b].out, "%s: block %d",
                         arch_at(i)->name, b);
    }
}
