#include "worker/data/sampler.h"

#include "common/rng.h"

static struct sampler_batch train_batch(const struct loader_config *c, int64_t k, int64_t *indices)
{
    int64_t per_step = c->batches_per_step ? c->batches_per_step : 1;
    int64_t step = c->first_step + k / per_step;
    struct sampler_batch b = {c->batch, step / c->steps_per_epoch, step};

    if (step >= c->steps)
        return (struct sampler_batch){0, b.epoch, step};
    struct rng_permutation order =
        rng_permutation(c->images, rng_stream(c->seed, b.epoch, 0, RNG_SHUFFLE));
    int64_t run = (step % c->steps_per_epoch * c->world + c->rank) * per_step + k % per_step;
    int64_t first = run * c->batch;
    if (b.epoch == c->first_step / c->steps_per_epoch)
        first += c->first_epoch_shift;
    for (int i = 0; i < c->batch; i++)
        indices[i] = c->shuffle ? rng_permutation_at(&order, first + i) : first + i;
    return b;
}

static struct sampler_batch eval_batch(const struct loader_config *c, int64_t k, int64_t *indices)
{
    int64_t run = k * c->world + c->rank, first = run * c->batch, left = c->images - first;
    struct sampler_batch b = {left < 0 ? 0 : left < c->batch ? (int)left : c->batch, 0, run};

    for (int i = 0; i < b.n; i++)
        indices[i] = first + i;
    return b;
}

struct sampler_batch sampler_batch(const struct loader_config *config, int64_t k, int64_t *indices)
{
    return config->role == DATASET_TRAIN ? train_batch(config, k, indices)
                                         : eval_batch(config, k, indices);
}
