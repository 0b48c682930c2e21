/* Networks of a few blocks, for tests that go through whole models. */
#pragma once

#include <criterion/criterion.h>

#include "worker/model/init.h"
#include "worker/model/model.h"

#define TINY_ARCH(...)                                                                             \
    {                                                                                              \
        .name = "tiny", .groups = 1, .width_per_group = 64, __VA_ARGS__                            \
    }

/* A basic block a stage, the smallest of the family; a bottleneck a stage. */
static const struct arch tiny_basic = TINY_ARCH(.blocks = {1, 1, 1, 1});
static const struct arch tiny = TINY_ARCH(.bottleneck = true, .blocks = {1, 1, 1, 1});

/* Its first two stages, a tenth of its weights: for what no other layer changes. */
static const struct arch tiny_short = TINY_ARCH(.bottleneck = true, .blocks = {1, 1});

enum { TINY_SIZE = 64, TINY_BATCH = 6, TINY_CLASSES = 5 };
static const int32_t tiny_labels[TINY_BATCH] = {0, 1, 2, 3, 4, 0};

static inline struct model_config tiny_config(const struct arch *arch, int threads)
{
    return (struct model_config){.arch = arch,
                                 .stem = JOB_STEM_IMAGENET,
                                 .classes = TINY_CLASSES,
                                 .image_size = TINY_SIZE,
                                 .batch = TINY_BATCH,
                                 .threads = threads,
                                 .bn_momentum = 0.1};
}

static inline struct model *tiny_model(const struct model_config *c)
{
    struct error e;
    struct model *m;

    cr_assert_eq(model_create(c, &m, &e), 0, "%s", e.text);
    model_init(m, 1);
    return m;
}
