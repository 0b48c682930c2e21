#include "worker/model/normal.h"

#include <math.h>
#include <stdbool.h>

/* glibc has these of vectors too (libmvec), exact to 4 units in the last place; <math.h> tells the
 * compiler under -ffast-math alone, of which nothing else is wanted here. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
extern double log(double) __attribute__((simd("notinbranch")));
extern double sin(double) __attribute__((simd("notinbranch")));
extern double cos(double) __attribute__((simd("notinbranch")));
#endif

enum { PAIRS = 256 }; /* at a time */

/* Relative; libmvec's errors add up to less than 2^-48. */
#define DOUBT 0x1p-44

/* Of pairs from `first` on: 1 - u and 2 pi v. A pair takes one block of the generator. */
static void normal_draw_pairs(const struct rng *stream, size_t first, double rest[PAIRS],
                              double angle[PAIRS])
{
    const uint32_t *counter = stream->counter;

    for (int i = 0; i < PAIRS; i++) {
        uint32_t at[4] = {counter[0] + (uint32_t)first + (uint32_t)i, counter[1], counter[2],
                          counter[3]};
        uint32_t words[4];
        rng_philox(stream->key, at, words);
        rest[i] = 1 - rng_unit_of(words[0], words[1]);
        angle[i] = 2 * M_PI * rng_unit_of(words[2], words[3]);
    }
}

/* In loops of their own, or the compiler makes one call of sine and cosine, without vectors. */
static void normal_fast(const double rest[PAIRS], const double angle[PAIRS], double sd,
                        double normals[2][PAIRS])
{
    double radius[PAIRS];

    for (int i = 0; i < PAIRS; i++)
        radius[i] = sqrt(-2 * log(rest[i]));
    for (int i = 0; i < PAIRS; i++)
        normals[0][i] = sd * (radius[i] * cos(angle[i]));
    for (int i = 0; i < PAIRS; i++)
        normals[1][i] = sd * (radius[i] * sin(angle[i]));
}

/* Whether a small error of x could change what it is rounded to. */
static bool normal_has_doubtful(const double x[PAIRS])
{
    int count = 0;

    for (int i = 0; i < PAIRS; i++)
        count += (float)(x[i] * (1 - DOUBT)) != (float)(x[i] * (1 + DOUBT));
    return count > 0;
}

static void normal_exact(const double rest[PAIRS], const double angle[PAIRS], double sd,
                         double normals[2][PAIRS])
{
    for (int i = 0; i < PAIRS; i++) {
        volatile double one_rest = rest[i]; /* not several at a time */
        double radius = sqrt(-2 * log(one_rest));
        normals[0][i] = sd * (radius * cos(angle[i]));
        normals[1][i] = sd * (radius * sin(angle[i]));
    }
}

void normal_fill(float *x, size_t count, double sd, const struct rng *stream)
{
    double rest[PAIRS], angle[PAIRS], normals[2][PAIRS];

    for (size_t done = 0; done < count; done += 2 * PAIRS) {
        normal_draw_pairs(stream, done / 2, rest, angle);
        normal_fast(rest, angle, sd, normals);
        if (normal_has_doubtful(normals[0]) || normal_has_doubtful(normals[1]))
            normal_exact(rest, angle, sd, normals);
        for (size_t i = 0; i < 2 * PAIRS && done + i < count; i++)
            x[done + i] = (float)normals[i % 2][i / 2];
    }
}
