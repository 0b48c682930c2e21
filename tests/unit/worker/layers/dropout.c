#include "tests/unit/worker/compare.h"
#include "worker/layers/linear.h"

enum { COUNT = 100000 };

static float *dropped(double rate, int64_t seed, int64_t epoch, int64_t image)
{
    float *x = malloc(COUNT * sizeof *x);

    for (int i = 0; i < COUNT; i++)
        x[i] = 1;
    dropout_apply(x, COUNT, rate, rng_stream(seed, epoch, image, RNG_DROPOUT));
    return x;
}

/* Six deviations of a binomial number; the mean stays. */
Test(dropout, drops_its_rate_and_divides_the_others)
{
    static const double rates[] = {0, 0.1, 0.4, 0.5, 0.9};

    for (int k = 0; k < 5; k++) {
        double rate = rates[k];
        float *x = dropped(rate, 1, 2, 3);
        int zeros = 0;
        for (int i = 0; i < COUNT; i++) {
            zeros += x[i] == 0;
            cr_assert(x[i] == 0 || x[i] == (float)(1 / (1 - rate)), "%g", x[i]);
        }
        double deviation = sqrt(COUNT * rate * (1 - rate));
        cr_assert(fabs(zeros - COUNT * rate) <= 6 * deviation, "%d of %d at %g", zeros, COUNT,
                  rate);
        free(x);
    }
}

Test(dropout, depends_on_seed_epoch_and_image)
{
    float *a = dropped(0.5, 1, 2, 3), *same = dropped(0.5, 1, 2, 3),
          *others[] = {dropped(0.5, 2, 2, 3), dropped(0.5, 1, 3, 3), dropped(0.5, 1, 2, 4)};

    cr_assert(!memcmp(a, same, COUNT * sizeof *a));
    for (int i = 0; i < 3; i++) {
        cr_assert(memcmp(a, others[i], COUNT * sizeof *a));
        free(others[i]);
    }
    free(a);
    free(same);
}
