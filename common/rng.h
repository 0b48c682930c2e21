/*
 * Counter-based random numbers: Philox-4x32-10 (Salmon et al., "Parallel random numbers: as easy as
 * 1, 2, 3", SC 2011). A stream is identified by (seed, epoch, image, purpose) and has no other
 * state, so the numbers of an image do not depend on threads, ranks or other images.
 *
 * Also a keyed permutation of [0, n): a Feistel network with cycle walking instead of a
 * Fisher-Yates array, because each position can be computed independently. It needs no memory per
 * rank and epoch, a resumed run can start at any position, and prefetch threads may be in two
 * epochs at a time.
 */
#pragma once

#include <math.h>
#include <stdint.h>

enum rng_purpose {
    RNG_AUGMENT = 1,
    RNG_SHUFFLE,        /* order of the images in an epoch; image is 0 */
    RNG_SYNTHETIC,      /* content of synthetic batches */
    RNG_CONVERT,        /* order of the records in shards; epoch is the role */
    RNG_MODEL,          /* initial weights; image is the number of the tensor */
    RNG_MIXUP,          /* weight of a mixed batch; image is the step */
    RNG_SWEEP = 8,      /* random points of a sweep; image is the point */
    RNG_DROPOUT,        /* dropout before the classifier */
    RNG_DISTORT,        /* distortions and erasing of a training image */
    RNG_CUTMIX,         /* box of a mixed batch; image is the step */
    RNG_MIXUP_OR_CUTMIX /* image is the step */
};

struct rng {
    uint32_t key[2];
    uint32_t counter[4]; /* block, epoch, image low, image high (24 bits) and purpose */
    uint32_t words[4];
    int used;
};

static inline void rng_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4])
{
    uint32_t k0 = key[0], k1 = key[1];
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];

    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

static inline struct rng rng_stream(int64_t seed, int64_t epoch, int64_t image,
                                    enum rng_purpose purpose)
{
    uint64_t s = (uint64_t)seed, i = (uint64_t)image;
    return (struct rng){
        .key = {(uint32_t)s,  (uint32_t)(s >> 32)                       },
        .counter = { 0, (uint32_t)epoch, (uint32_t)i,
                (uint32_t)(i >> 32 & 0xffffff) | (uint32_t)purpose << 24},
        .used = 4,
    };
}

static inline uint32_t rng_u32(struct rng *r)
{
    if (r->used == 4) {
        rng_philox(r->key, r->counter, r->words);
        r->counter[0]++;
        r->used = 0;
    }
    return r->words[r->used++];
}

/* Converts to 53 bits in [0, 1). Both halves are exact, and so is their sum. AVX2 has no vector
 * conversion of 64-bit integers, hence the halves. */
static inline double rng_unit_of(uint32_t high, uint32_t low)
{
    return (double)high * 0x1p-32 + (double)(low >> 11) * 0x1p-53;
}

static inline double rng_unit(struct rng *r)
{
    uint32_t high = rng_u32(r), low = rng_u32(r);
    return rng_unit_of(high, low);
}

static inline double rng_range(struct rng *r, double from, double to)
{
    return from + (to - from) * rng_unit(r);
}

/* Box and Muller 1958. */
static inline double rng_normal(struct rng *r)
{
    double radius = sqrt(-2 * log(1 - rng_unit(r)));
    return radius * cos(2 * M_PI * rng_unit(r));
}

/* Uniform in [0, n), n >= 1, without the bias of a remainder (Lemire, 2019). */
static inline uint32_t rng_below(struct rng *r, uint32_t n)
{
    uint64_t product = (uint64_t)rng_u32(r) * n;
    if ((uint32_t)product < n) {
        uint32_t threshold = -n % n;
        while ((uint32_t)product < threshold)
            product = (uint64_t)rng_u32(r) * n;
    }
    return (uint32_t)(product >> 32);
}

#define RNG_PERMUTATION_ROUNDS 8

struct rng_permutation {
    uint64_t n;
    int half_bits; /* the network permutes [0, 4^half_bits), which has at most 4 n numbers (n > 1)
                    */
    uint64_t keys[RNG_PERMUTATION_ROUNDS];
};

static inline struct rng_permutation rng_permutation(int64_t n, struct rng stream)
{
    struct rng_permutation p = {.n = (uint64_t)n, .half_bits = 1};
    while (p.n >> (2 * p.half_bits) && (uint64_t)1 << (2 * p.half_bits) < p.n)
        p.half_bits++;
    for (int round = 0; round < RNG_PERMUTATION_ROUNDS; round++) {
        uint64_t high = rng_u32(&stream);
        p.keys[round] = high << 32 | rng_u32(&stream);
    }
    return p;
}

static inline int64_t rng_permutation_at(const struct rng_permutation *p, int64_t position)
{
    uint64_t mask = ((uint64_t)1 << p->half_bits) - 1, x = (uint64_t)position;

    do {
        uint64_t left = x >> p->half_bits, right = x & mask;
        for (int round = 0; round < RNG_PERMUTATION_ROUNDS; round++) {
            /* The finaliser of SplitMix64 mixes the half with the round's key. */
            uint64_t z = right + p->keys[round];
            z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
            z = (z ^ z >> 27) * 0x94D049BB133111EBu;
            z ^= z >> 31;
            uint64_t next = left ^ (z & mask);
            left = right;
            right = next;
        }
        x = left << p->half_bits | right;
    } while (x >= p->n);
    return (int64_t)x;
}
