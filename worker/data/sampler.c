#include "worker/data/sampler.h"

#include "common/rng.h"

static struct rng_permutation sampler_order_of(const struct loader_config *c, int64_t epoch)
{
    return rng_permutation(c->images, rng_stream(c->seed, epoch, 0, RNG_SHUFFLE));
}

/* Position, among this rank's steps, of the batch's first image if `step` started an epoch. */
static int64_t sampler_first_position(const struct loader_config *c, int64_t k, int64_t step,
                                      int images)
{
    int64_t per_step = c->batches_per_step ? c->batches_per_step : 1;

    return ((step * c->world + c->rank) * per_step + k % per_step) * images;
}

static int64_t sampler_epoch_of_step(const struct loader_config *c, int64_t step)
{
    struct loader_phase p = loader_phase_at(c, step);

    return p.first_epoch + (step - p.step) / p.steps_per_epoch;
}

static void sampler_take_within_epoch(const struct loader_config *c, int64_t k,
                                      struct sampler_batch *b, int64_t *indices)
{
    struct loader_phase p = loader_phase_at(c, b->step);

    b->epoch = sampler_epoch_of_step(c, b->step);
    struct rng_permutation order = sampler_order_of(c, b->epoch);
    int64_t first = sampler_first_position(c, k, (b->step - p.step) % p.steps_per_epoch, p.batch);

    if (b->epoch == sampler_epoch_of_step(c, c->first_step))
        first += c->first_epoch_shift;
    for (int i = 0; i < b->n; i++)
        indices[i] = c->shuffle ? rng_permutation_at(&order, first + i) : first + i;
}

static void sampler_take_across_epochs(const struct loader_config *c, int64_t k,
                                       struct sampler_batch *b, int64_t *indices)
{
    struct loader_phase p = loader_phase_at(c, b->step);
    int64_t first = p.first_image + sampler_first_position(c, k, b->step - p.step, p.batch) +
                    c->first_epoch_shift;

    b->epoch = first / c->epoch_images;
    struct rng_permutation order = sampler_order_of(c, b->epoch);
    for (int i = 0; i < b->n; i++) {
        int64_t at = first + i - b->epoch * c->epoch_images;
        if (at >= c->epoch_images) {
            if (b->next_epoch_at == b->n) {
                b->next_epoch_at = i;
                order = sampler_order_of(c, b->epoch + 1);
            }
            at -= c->epoch_images;
        }
        indices[i] = c->shuffle ? rng_permutation_at(&order, at) : at;
    }
}

static struct sampler_batch sampler_train_batch(const struct loader_config *c, int64_t k,
                                                int64_t *indices)
{
    int64_t per_step = c->batches_per_step ? c->batches_per_step : 1;
    struct sampler_batch b = {.step = c->first_step + k / per_step};

    if (b.step >= c->steps)
        return b;
    b.n = b.next_epoch_at = loader_phase_at(c, b.step).batch;
    if (c->epoch_images)
        sampler_take_across_epochs(c, k, &b, indices);
    else
        sampler_take_within_epoch(c, k, &b, indices);
    return b;
}

static struct sampler_batch sampler_eval_batch(const struct loader_config *c, int64_t k,
                                               int64_t *indices)
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
    return config->role == DATASET_TRAIN ? sampler_train_batch(config, k, indices)
                                         : sampler_eval_batch(config, k, indices);
}
