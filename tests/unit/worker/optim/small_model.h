/* The smallest network of the family: what the optimisers' tests work on. */
#ifndef TRAIND_TESTS_UNIT_WORKER_OPTIM_SMALL_MODEL_H
#define TRAIND_TESTS_UNIT_WORKER_OPTIM_SMALL_MODEL_H

#include <criterion/criterion.h>

#include "worker/model/model.h"

static const struct arch tiny = {
    .name = "tiny", .blocks = {1, 1, 1, 1},
         .groups = 1, .width_per_group = 64, .built = true
};

static struct model *small_model(int threads)
{
    struct model *m;
    struct error e;
    struct model_config c = {.arch = &tiny,
                             .width = 0.25,
                             .stem = JOB_STEM_IMAGENET,
                             .classes = 3,
                             .image_size = 32,
                             .batch = 1,
                             .threads = threads,
                             .bn_momentum = 0.1};
    cr_assert_eq(model_create(&c, &m, &e), 0, "%s", e.text);
    model_init(m, 1);
    return m;
}

#endif
