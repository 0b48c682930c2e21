#include <math.h>

#include "tests/reference/reference.h"

static float flush(float x)
{
    return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

/* Whether a result is a denormal is decided after rounding to 24 bits, which fmaf does only where
 * it is none: a small one is looked at 2^64 times as large. */
static float multiply_add(bf16 a, bf16 b, float c)
{
    float x = flush(bf16_to_float(a)), y = flush(bf16_to_float(b)), z = flush(c);
    float sum = fmaf(x, y, z);

    if (fabsf(sum) > 0x1p-120f || isnan(sum) || fabsf(x) > 0x1p60f)
        return flush(sum);
    return fmaf(x * 0x1p64f, y, z * 0x1p64f) >= 0x1p-62f ||
                   fmaf(x * 0x1p64f, y, z * 0x1p64f) <= -0x1p-62f
               ? sum
               : copysignf(0, sum);
}

/* Chunk q of row i with column j, onto c. */
static float add_chunk(bool tiles, const bf16 *a, const bf16 *b, float c)
{
    float even = 0, odd = 0;

    for (size_t k = 0; k < 16; k++, a += 2, b += 32) {
        if (tiles) {
            even = multiply_add(a[0], b[0], even);
            odd = multiply_add(a[1], b[1], odd);
        } else {
            c = multiply_add(a[1], b[1], c);
            c = multiply_add(a[0], b[0], c);
        }
    }
    return tiles ? flush(flush(c) + flush(even + odd)) : c;
}

void bf16_multiply_reference(enum bf16_kind kind, const struct bf16_product *p, size_t rows,
                             float *c, size_t ldc, bool add)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < BF16_COLUMNS; j++) {
            float *to = c + i * ldc + j, sum = add ? *to : 0;
            for (size_t q = 0; q < p->chunks; q++)
                sum = add_chunk(kind != BF16_DOT, p->a + i * p->row + p->chunk[q],
                                p->panel + q * BF16_CHUNK_SIZE + j / 16 * 512 + j % 16 * 2, sum);
            *to = sum;
        }
}
