#include "worker/kernels/bf16/bf16.h"

#ifdef __AVX512BW__
#include <immintrin.h>
#endif

#include "worker/kernels/bf16/bf16_vec.h"

BF16_INLINE void from_floats(const float *from, size_t n, bf16 *to, bool native)
{
    size_t i = 0;
    for (; i + VEC <= n; i += VEC)
        vec_store_bf16(to + i, vec_load(from + i), native);
    for (; i < n; i++)
        to[i] = bf16_from_float(from[i]);
}

void bf16_from_floats(const float *from, size_t n, bf16 *to)
{
    bf16_converts() ? from_floats(from, n, to, true) : from_floats(from, n, to, false);
}

void bf16_to_floats(const bf16 *from, size_t n, float *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = bf16_to_float(from[i]);
}

void bf16_pack(const bf16 *from, size_t ld, bf16 *chunk)
{
    for (size_t tile = 0; tile < 2; tile++)
        for (size_t pair = 0; pair < 16; pair++, chunk += 32) {
            const bf16 *even = from + 2 * pair * ld + 16 * tile, *odd = even + ld;
            for (size_t j = 0; j < 16; j++) {
                uint32_t both = even[j] | (uint32_t)odd[j] << 16;
                memcpy(chunk + 2 * j, &both, sizeof both);
            }
        }
}

#ifdef __AVX512BW__
/* Rows of 16 dwords become columns. */
static void bf16_pack_transpose_dwords(__m512i r[16])
{
    __m512i t[16];

    for (int i = 0; i < 8; i++) {
        t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
    }
    for (int i = 0; i < 4; i++) {
        r[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
        r[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
        r[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
        r[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
    }
    for (int i = 0; i < 4; i++) {
        t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
        t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
        t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
        t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
    }
    for (int i = 0; i < 8; i++) {
        r[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
        r[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
    }
}

/* 32 rows of 32: pairs of neighbouring rows first, then their transpose. */
static void bf16_transpose_block(const bf16 *from, size_t ld, bf16 *to, size_t to_ld)
{
    __m512i low[16], high[16];

    for (int i = 0; i < 16; i++) {
        __m512i a = _mm512_loadu_si512(from + (size_t)(2 * i) * ld);
        __m512i b = _mm512_loadu_si512(from + (size_t)(2 * i + 1) * ld);
        low[i] = _mm512_unpacklo_epi16(a, b); /* channels 8 l + 0 to 3 of each lane l */
        high[i] = _mm512_unpackhi_epi16(a, b);
    }
    bf16_pack_transpose_dwords(low);
    bf16_pack_transpose_dwords(high);
    for (int i = 0; i < 16; i++) {
        size_t channel = (size_t)(i / 4 * 8 + i % 4);
        _mm512_storeu_si512(to + channel * to_ld, low[i]);
        _mm512_storeu_si512(to + (channel + 4) * to_ld, high[i]);
    }
}
#else
static void bf16_transpose_block(const bf16 *from, size_t ld, bf16 *to, size_t to_ld)
{
    for (size_t i = 0; i < 32; i++)
        for (size_t j = 0; j < 32; j++)
            to[j * to_ld + i] = from[i * ld + j];
}
#endif

void bf16_transpose(const bf16 *from, size_t from_ld, size_t rows, size_t c, bf16 *to, size_t to_ld)
{
    for (size_t j = 0; j < c; j += 32)
        for (size_t i = 0; i < rows; i += 32)
            bf16_transpose_block(from + i * from_ld + j, from_ld, to + j * to_ld + i, to_ld);
}

static void pack_rows(const float *from, size_t ld, size_t rows, bf16 *chunk)
{
    bf16 block[32 * 32];

    for (size_t i = 0; i < 32; i++)
        if (i < rows)
            bf16_from_floats(from + i * ld, 32, block + i * 32);
        else
            memset(block + i * 32, 0, 32 * sizeof *block);
    bf16_pack(block, 32, chunk);
}

#ifndef __AVX512BW__
/* Where element (i, j) of a chunk lies. */
static size_t bf16_pack_place(size_t i, size_t j)
{
    return (j / 16 * 16 + i / 2) * 32 + j % 16 * 2 + i % 2;
}
#endif

static void pack_columns(const float *from, size_t ld, size_t rows, bf16 *chunk)
{
    bf16 block[32 * 32];

    for (size_t j = 0; j < 32; j++) {
        bf16_from_floats(from + j * ld, rows, block + j * 32);
        memset(block + j * 32 + rows, 0, (32 - rows) * sizeof *block);
    }
#ifdef __AVX512BW__
    for (size_t tile = 0; tile < 2; tile++) {
        __m512i r[16];
        for (size_t i = 0; i < 16; i++)
            r[i] = _mm512_loadu_si512(block + (tile * 16 + i) * 32);
        bf16_pack_transpose_dwords(r);
        for (size_t i = 0; i < 16; i++)
            _mm512_storeu_si512(chunk + tile * 512 + i * 32, r[i]);
    }
#else
    for (size_t j = 0; j < 32; j++)
        for (size_t i = 0; i < 32; i++)
            chunk[bf16_pack_place(i, j)] = block[j * 32 + i];
#endif
}

void bf16_pack_floats(const float *from, size_t ld, bool transposed, size_t rows, bf16 *chunk)
{
    if (transposed)
        pack_columns(from, ld, rows, chunk);
    else
        pack_rows(from, ld, rows, chunk);
}
