#include <criterion/criterion.h>
#include <stdlib.h>

#include "common/rng.h"
#include "prep/audit/audit_mixing.h"

#define SHARDS  8
#define CLASSES 20
#define IMAGES  4000 /* of a shard */

/* Shards whose image i has the class that a test gives it. */
static void fill_shards(struct audit_shard shards[SHARDS],
                        int (*class_of)(int shard, struct rng *r))
{
    struct rng r = rng_stream(3, 0, 0, RNG_CONVERT);

    for (int s = 0; s < SHARDS; s++) {
        shards[s] = (struct audit_shard){.records = calloc(IMAGES, sizeof(struct audit_record)),
                                         .count = IMAGES};
        cr_assert_not_null(shards[s].records);
        for (int i = 0; i < IMAGES; i++)
            shards[s].records[i].label = class_of(s, &r);
    }
}

static struct mixing measure_mixing(int (*class_of)(int shard, struct rng *r))
{
    struct audit_shard shards[SHARDS];
    struct mixing m;
    struct error e;

    fill_shards(shards, class_of);
    cr_assert_eq(mixing_measure(shards, SHARDS, CLASSES, &m, &e), 0);
    for (int s = 0; s < SHARDS; s++)
        free(shards[s].records);
    return m;
}

static int any_class_of(int shard, struct rng *r)
{
    (void)shard;
    return (int)rng_below(r, CLASSES);
}

/* Classes of very different sizes are no fault of the mixing. */
static int mostly_one(int shard, struct rng *r)
{
    (void)shard;
    return rng_below(r, 10) ? 0 : (int)rng_below(r, CLASSES);
}

static int half(int shard, struct rng *r)
{
    return (int)rng_below(r, CLASSES / 2) * 2 + shard % 2;
}

static int a_quarter(int shard, struct rng *r)
{
    return (int)rng_below(r, CLASSES / 4) * 4 + shard % 4;
}

/* In the last shard only, half of the classes. */
static int one_bad_shard(int shard, struct rng *r)
{
    return shard == SHARDS - 1 ? half(0, r) : any_class_of(shard, r);
}

Test(mixing, a_random_deal_scores_1)
{
    struct mixing m = measure_mixing(any_class_of);
    cr_assert(m.score > 0.99 && m.z > -4 && m.z < 4, "score %g, z %g", m.score, m.z);
    m = measure_mixing(mostly_one);
    cr_assert(m.score > 0.99 && m.z > -4 && m.z < 4, "score %g, z %g", m.score, m.z);
}

Test(mixing, shards_of_a_part_of_the_classes_score_that_part)
{
    struct mixing m = measure_mixing(half);
    cr_assert_float_eq(m.score, 0.5, 0.01, "score %g", m.score);
    cr_assert_gt(m.z, 1000);
    m = measure_mixing(a_quarter);
    cr_assert_float_eq(m.score, 0.25, 0.01, "score %g", m.score);
}

Test(mixing, the_worst_shard_is_named)
{
    struct mixing m = measure_mixing(one_bad_shard);
    cr_assert_eq(m.worst, SHARDS - 1);
    cr_assert_lt(m.worst_score, 0.6);
    cr_assert(m.score > 0.8 && m.score < 0.95 && m.z > 6, "score %g, z %g", m.score, m.z);
}

Test(mixing, one_shard_or_one_class_cannot_be_mixed_badly)
{
    struct audit_record records[4] = {{.label = 0}, {.label = 1}, {.label = 1}, {.label = -1}};
    struct audit_shard shards[2] = {
        {.records = records, .count = 4},
        {.count = 0                 }
    };
    struct mixing m;
    struct error e;

    cr_assert_eq(mixing_measure(shards, 1, 2, &m, &e), 0);
    cr_assert(m.score == 1 && m.z == 0);
    cr_assert_eq(mixing_measure(shards, 2, 2, &m, &e), 0);
    cr_assert(m.score == 1 && m.z == 0);
    cr_assert_eq(mixing_measure(shards, 0, 0, &m, &e), 0);
    cr_assert_eq(m.score, 1);
}
