#include "worker/comm/narrow.h"

#include <string.h>

enum { FLOATS = 16 }; /* at once, so that the passes are of vectors though they work in place */

static uint32_t rounded(uint32_t bits)
{
    uint32_t nearest = bits + 0x7fff + (bits >> 16 & 1);
    return (bits & 0x7fffffff) > 0x7f800000 ? bits | 0x400000 : nearest;
}

static void narrow_floats(const float *from, narrow_bf16 *to, size_t n)
{
    uint32_t bits[FLOATS] = {0};

    memcpy(bits, from, n * sizeof *bits);
    for (size_t i = 0; i < FLOATS; i++)
        bits[i] = rounded(bits[i]) >> 16;
    for (size_t i = 0; i < n; i++)
        to[i] = (narrow_bf16)bits[i];
}

void narrow_copy(const float *from, narrow_bf16 *to, size_t n)
{
    size_t i = 0;

    for (; i + FLOATS <= n; i += FLOATS)
        narrow_floats(from + i, to + i, FLOATS);
    narrow_floats(from + i, to + i, n - i);
}

void narrow(float *at, size_t n)
{
    narrow_copy(at, narrow_sent(at), n);
}

void narrow_add(const narrow_bf16 *from, float *sum, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)from[i] << 16;
        float x;
        memcpy(&x, &bits, sizeof x);
        sum[i] += x;
    }
}

void narrow_sum(float *at, size_t n, int rank, int ranks)
{
    size_t part = n / (size_t)ranks, step;
    const narrow_bf16 *from = narrow_received(at, n);
    narrow_bf16 *to = narrow_sent(at) + (size_t)rank * part;

    for (size_t i = 0; i < part; i += step) {
        float sum[FLOATS] = {0};
        step = part - i < FLOATS ? part - i : FLOATS;
        for (int r = 0; r < ranks; r++)
            narrow_add(from + (size_t)r * part + i, sum, step);
        narrow_floats(sum, to + i, step);
    }
}

/* From the end, as a number takes twice the room of what it is made of. */
void narrow_widen(float *at, size_t n)
{
    const narrow_bf16 *from = narrow_sent(at);
    uint32_t bits[FLOATS];

    for (size_t end = n, step; end > 0; end -= step) {
        step = end < FLOATS ? end : FLOATS;
        for (size_t i = 0; i < step; i++)
            bits[i] = (uint32_t)from[end - step + i] << 16;
        memcpy(at + end - step, bits, step * sizeof *bits);
    }
}

void narrow_widen_copy(const narrow_bf16 *from, float *to, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)from[i] << 16;
        memcpy(to + i, &bits, sizeof bits);
    }
}

void narrow_round(float *at, size_t n)
{
    uint32_t bits;

    for (size_t i = 0; i < n; i++) {
        memcpy(&bits, at + i, sizeof bits);
        bits = rounded(bits) & 0xffff0000;
        memcpy(at + i, &bits, sizeof bits);
    }
}
