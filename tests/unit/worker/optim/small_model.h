/* Two blocks, the larger with tensors of several partial sums: what the optimisers' tests work on.
 */
#pragma once

#include "tests/unit/worker/tiny.h"

static const struct arch small_arch = TINY_ARCH(.blocks = {1, 1});

static struct model *small_model(int threads)
{
    struct model_config c = tiny_config(&small_arch, threads);

    c.width = 0.5;
    c.classes = 3;
    c.image_size = 32;
    c.batch = 1;
    return tiny_model(&c);
}
