#include "worker/layers/dropout.h"

void dropout_apply(float *x, size_t count, double rate, struct rng stream)
{
    uint32_t below = (uint32_t)(rate * 0x1p32);
    float scale = (float)(1 / (1 - rate));

    for (size_t i = 0; i < count; i++)
        x[i] = rng_u32(&stream) < below ? 0 : x[i] * scale;
}
