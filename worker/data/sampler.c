#include "worker/data/sampler.h"

#include "common/rng.h"

static struct rng_permutation order_of(const struct loader_config *c, int64_t epoch)
{
    return rng_permutation(c->images, rng_stream(c->seed, epoch, 0, RNG_SHUFFLE));
}

/* The first of the batch's positions, counted over this rank's steps from `step` on as if that were
 * the first of an epoch. */
static int64_t first_position(const struct loader_config *c, int64_t k, int64_t step)
{
    int64_t per_step = c->batches_per_step ? c->batches_per_step : 1;

    return ((step * c->world + c->rank) * per_step + k % per_step) * c->batch;
}

/* Epochs of whole steps. */
static void take_within_epoch(const struct loader_config *c, int64_t k, struct sampler_batch *b,
                              int64_t *indices)
{
    b->epoch = b->step / c->steps_per_epoch;
    struct rng_permutation order = order_of(c, b->epoch);
    int64_t first = first_position(c, k, b->step % c->steps_per_epoch);

    if (b->epoch == c->first_step / c->steps_per_epoch)
        first += c->first_epoch_shift;
    for (int i = 0; i < b->n; i++)
        indices[i] = c->shuffle ? rng_permutation_at(&order, first + i) : first + i;
}

/* Epochs of epoch_images images each, wherever in a batch they end. */
static void take_across_epochs(const struct loader_config *c, int64_t k, struct sampler_batch *b,
                               int64_t *indices)
{
    int64_t first = first_position(c, k, b->step) + c->first_epoch_shift;

    b->epoch = first / c->epoch_images;
    struct rng_permutation order = order_of(c, b->epoch);
    for (int i = 0; i < b->n; i++) {
        int64_t at = first + i - b->epoch * c->epoch_images;
        if (at >= c->epoch_images) {
            if (b->next_epoch_at == b->n) {
                b->next_epoch_at = i;
                order = order_of(c, b->epoch + 1);
            }
            at -= c->epoch_images;
        }
        indices[i] = c->shuffle ? rng_permutation_at(&order, at) : at;
    }
}

static struct sampler_batch train_batch(const struct loader_config *c, int64_t k, int64_t *indices)
{
    int64_t per_step = c->batches_per_step ? c->batches_per_step : 1;
    struct sampler_batch b = {
        .n = c->batch, .step = c->first_step + k / per_step, .next_epoch_at = c->batch};

    if (b.step >= c->steps)
        b.n = 0;
    else if (c->epoch_images)
        take_across_epochs(c, k, &b, indices);
    else
        take_within_epoch(c, k, &b, indices);
    return b;
}

static struct sampler_batch eval_batch(const struct loader_config *c, int64_t k, int64_t *indices)
{
    int64_t run = k * c->world + c->rank, first = run * c->batch, left = c->images - first;
    int n = left < 0 ? 0 : left < c->batch ? (int)left : c->batch;
    struct sampler_batch b = {.n = n, .step = run, .next_epoch_at = n};

    for (int i = 0; i < b.n; i++)
        indices[i] = first + i;
    return b;
}

struct sampler_batch sampler_batch(const struct loader_config *config, int64_t k, int64_t *indices)
{
    return config->role == DATASET_TRAIN ? train_batch(config, k, indices)
                                         : eval_batch(config, k, indices);
}
