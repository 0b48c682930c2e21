#include "worker/data/synthetic.h"

#include "common/rng.h"

void synthetic_fill(const struct loader_config *c, int number, float *images, int32_t *labels)
{
    const float half_width = 1.7320508f; /* sqrt(3): uniform with deviation 1 */
    size_t floats = loader_image_floats(c), left = loader_most_floats(c);

    for (int i = 0; i < loader_most_images(c); i++) {
        int64_t image = ((int64_t)number * c->world + c->rank) * c->batch + i;
        struct rng r = rng_stream(c->seed, c->role, image, RNG_SYNTHETIC);
        labels[i] = (int32_t)rng_below(&r, (uint32_t)c->classes);
        size_t own = floats < left ? floats : left; /* smaller images lie closer */
        for (size_t k = 0; k < own; k++)
            images[k] = half_width * (2 * 0x1p-32f * (float)rng_u32(&r) - 1);
        images += own;
        left -= own;
    }
}
