/* What several measured runs say together. */

#include "common/number.h"
#include "common/plan/predict/predict.h"

static bool speed_fits(const struct plan_sample *s, int64_t workers, int64_t batch)
{
    return (workers == 0 || s->workers == workers) && (batch == 0 || s->batch == batch);
}

static bool speed_any(const struct plan_sample *samples, size_t count, int64_t workers,
                      int64_t batch)
{
    for (size_t i = 0; i < count; i++)
        if (speed_fits(&samples[i], workers, batch))
            return true;
    return false;
}

struct plan_speed plan_speed_of(const struct plan_sample *samples, size_t count, int64_t workers,
                                int64_t batch)
{
    double image[PLAN_SAMPLES_MAX], update[PLAN_SAMPLES_MAX], exchange[PLAN_SAMPLES_MAX];
    struct plan_speed speed = {0};
    size_t n = 0;

    if (count == 0)
        return speed;
    if (!speed_any(samples, count, workers, 0))
        workers = samples[0].workers; /* an exchange among others would not be comparable */
    if (!speed_any(samples, count, workers, batch))
        batch = 0;
    for (size_t i = 0; i < count && n < PLAN_SAMPLES_MAX; i++) {
        if (!speed_fits(&samples[i], workers, batch))
            continue;
        if (n == 0) {
            speed.workers = samples[i].workers;
            speed.batch = samples[i].batch;
        }
        image[n] = samples[i].image_seconds;
        update[n] = samples[i].update_seconds;
        exchange[n++] = samples[i].exchange_seconds;
    }
    speed.image_seconds = number_median(image, n);
    speed.update_seconds = number_median(update, n);
    speed.exchange_seconds = number_median(exchange, n);
    speed.spread = (image[n - 1] - image[0]) / 2 / speed.image_seconds;
    speed.samples = (int64_t)n;
    return speed;
}

bool plan_speed_scatters(const struct plan_speed *speed)
{
    return speed->samples > 1 && speed->spread > 0.5;
}

double plan_speed_rate(const struct plan_speed *speed)
{
    double batch = speed->batch > 0 ? (double)speed->batch : 1;
    double workers = speed->workers > 0 ? (double)speed->workers : 1;

    if (!(speed->image_seconds > 0))
        return 0;
    return workers * batch /
           (batch * speed->image_seconds + speed->update_seconds + speed->exchange_seconds);
}
