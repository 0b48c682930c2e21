/* The smallest network of the family: what the optimisers' tests work on. */
#ifndef TRAIND_TESTS_UNIT_WORKER_OPTIM_SMALL_MODEL_H
#define TRAIND_TESTS_UNIT_WORKER_OPTIM_SMALL_MODEL_H

#include "tests/unit/worker/tiny.h"

static struct model *small_model(int threads)
{
    struct model_config c = tiny_config(&tiny_basic, threads);

    c.width = 0.25;
    c.classes = 3;
    c.image_size = 32;
    c.batch = 1;
    return tiny_model(&c);
}

#endif
