#include "daemon/sweep/tpe.h"

#include <math.h>
#include <stdlib.h>

#include "common/xalloc.h"

struct tpe_kernel {
    double mean, sigma; /* of a choice: its index, unused */
};

size_t tpe_good(size_t results, double gamma)
{
    return (size_t)fmin(ceil(gamma * (double)results), TPE_GOOD_MAX);
}

static int tpe_compare(const void *a, const void *b)
{
    const struct tpe_kernel *x = a, *y = b;
    return (x->mean > y->mean) - (x->mean < y->mean);
}

/* Returns count + 1 kernels. The caller frees them. */
static struct tpe_kernel *tpe_kernels(size_t choices, const double *values, size_t count)
{
    struct tpe_kernel *k = xcalloc(count + 1, sizeof *k);
    double least = 1 / fmin(100, (double)count + 2);

    for (size_t i = 0; i < count; i++)
        k[i].mean = values[i];
    k[count] = (struct tpe_kernel){choices ? -1 : 0.5, 1};
    if (choices)
        return k;
    qsort(k, count + 1, sizeof *k, tpe_compare);
    for (size_t i = 0; i <= count; i++) {
        double left = i > 0 ? k[i].mean - k[i - 1].mean : 0;
        double right = i < count ? k[i + 1].mean - k[i].mean : 0;
        if (k[i].sigma == 0) /* not the prior */
            k[i].sigma = fmin(1, fmax(least, fmax(left, right)));
    }
    return k;
}

static double tpe_normal_below(double z)
{
    return 0.5 * erfc(-z * M_SQRT1_2);
}

static double tpe_kernel_density(const struct tpe_kernel *k, size_t choices, double smoothing,
                                 double x)
{
    if (choices && k->mean < 0)
        return 1 / (double)choices;
    if (choices)
        return ((k->mean == x) + smoothing) / (1 + smoothing * (double)choices);
    double z = (x - k->mean) / k->sigma;
    double inside =
        tpe_normal_below((1 - k->mean) / k->sigma) - tpe_normal_below(-k->mean / k->sigma);
    return exp(-z * z / 2) / (k->sigma * sqrt(2 * M_PI) * inside);
}

double tpe_density(size_t choices, const double *values, size_t count, double x)
{
    struct tpe_kernel *k = tpe_kernels(choices, values, count);
    double sum = 0, kernels = (double)count + 1;

    for (size_t i = 0; i <= count; i++)
        sum += tpe_kernel_density(&k[i], choices, 1 / kernels, x);
    free(k);
    return sum / kernels;
}

static double tpe_draw(const struct tpe_kernel *k, size_t count, size_t choices, struct rng *r)
{
    const struct tpe_kernel *one = &k[rng_below(r, (uint32_t)count + 1)];
    double u = rng_unit(r), x, sum = 0;

    if (choices) {
        for (x = 0; x < (double)choices - 1; x++) {
            sum += tpe_kernel_density(one, choices, 1 / ((double)count + 1), x);
            if (u < sum)
                break;
        }
        return x;
    }
    do { /* Box and Muller 1958; at least a third of the kernel is inside */
        double radius = sqrt(-2 * log(1 - rng_unit(r)));
        x = one->mean + one->sigma * radius * cos(2 * M_PI * rng_unit(r));
    } while (x < 0 || x > 1);
    return x;
}

double tpe_choose(size_t choices, const double *good, size_t good_count, const double *others,
                  size_t other_count, struct rng *r)
{
    struct tpe_kernel *k = tpe_kernels(choices, good, good_count);
    double best = 0, most = -1;

    for (int i = 0; i < TPE_CANDIDATES; i++) {
        double x = tpe_draw(k, good_count, choices, r);
        double ratio = tpe_density(choices, good, good_count, x) /
                       fmax(tpe_density(choices, others, other_count, x), 1e-300);
        if (ratio > most) {
            most = ratio;
            best = x;
        }
    }
    free(k);
    return best;
}
