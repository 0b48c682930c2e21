#include "tests/reference/reference.h"
#include "worker/kernels/bf16.h"

#include "tests/unit/worker/compare.h"

static const uint32_t specials[] = {0,          0x80000000, 1,          0x807fffff, 0x00800000,
                                    0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7f800001,
                                    0x7fc00000, 0xffffffff, 0x3f808000, 0x3f818000, 0x3f807fff,
                                    0x3f808001, 0x7f7f8000, 0x7f7f7fff, 0x007fffff, 0x00808000};
enum { SPECIALS = sizeof specials / sizeof specials[0] };

static uint32_t bits_of(float f)
{
    uint32_t x;
    memcpy(&x, &f, sizeof x);
    return x;
}

static float float_of(uint32_t x)
{
    float f;
    memcpy(&f, &x, sizeof f);
    return f;
}

/* Every normal number's neighbours in bf16 are further away, or as far and odd. */
static void check_rounding(float f, bf16 y)
{
    double x = f, near = bf16_to_float(y);
    double up = bf16_to_float((bf16)(y + 1)), down = bf16_to_float((bf16)(y - 1));

    if ((y & 0x7fff) == 0x7f80)
        cr_assert(fabs(x) >= 0x1.ffp127, "%a", x); /* half way beyond the largest */
    else {
        cr_assert(fabs(x - near) <= fabs(x - up) && fabs(x - near) <= fabs(x - down), "%a", x);
        if (fabs(x - near) == fabs(x - up) || fabs(x - near) == fabs(x - down))
            cr_assert(!(y & 1), "%a", x);
    }
}

Test(bf16, rounds_to_the_nearest_even)
{
    struct rng r = rng_stream(1, 0, 0, RNG_SYNTHETIC);

    for (int i = 0; i < 200000; i++) {
        uint32_t x = i < SPECIALS ? specials[i] : rng_u32(&r);
        if (i % 4 == 3)
            x = (x & ~0xffffu) | 0x8000; /* half way */
        float f = float_of(x);
        bf16 y = bf16_from_float(f);
        if (isnan(f))
            cr_assert((y & 0x7f80) == 0x7f80 && y & 0x40 && (y & 0x3f) == (x >> 16 & 0x3f));
        else if (fabsf(f) < 0x1p-126f)
            cr_assert_eq(y, x >> 16 & 0x8000);
        else if (isinf(f))
            cr_assert_eq(y, x >> 16);
        else
            check_rounding(f, y);
    }
}

Test(bf16, arrays_are_converted_as_single_numbers)
{
    enum { N = 4096 + 5 };
    struct rng r = rng_stream(2, 0, 0, RNG_SYNTHETIC);
    float from[N], back[N];
    bf16 to[N];

    for (int i = 0; i < N; i++)
        from[i] = float_of(i < SPECIALS ? specials[i] : rng_u32(&r));
    bf16_from_floats(from, N, to);
    bf16_to_floats(to, N, back);
    for (int i = 0; i < N; i++) {
        cr_assert_eq(to[i], bf16_from_float(from[i]), "%a gives %x", (double)from[i], to[i]);
        cr_assert_eq(bits_of(back[i]), (uint32_t)to[i] << 16);
    }
}

/* Row i, column j of a chunk. */
static bf16 element(const bf16 *chunk, size_t i, size_t j)
{
    return chunk[j / 16 * 512 + i / 2 * 32 + j % 16 * 2 + i % 2];
}

Test(bf16, chunks_hold_pairs_of_rows)
{
    enum { LD = 41 };
    float *from = noise(32 * LD, 1);
    bf16 chunk[BF16_CHUNK_SIZE], small[32 * LD];

    for (size_t rows = 21; rows <= 32; rows += 11)
        for (int transposed = 0; transposed < 2; transposed++) {
            bf16_pack_floats(from, LD, transposed, rows, chunk);
            for (size_t i = 0; i < 32; i++)
                for (size_t j = 0; j < 32; j++) {
                    float want = i < rows ? from[transposed ? j * LD + i : i * LD + j] : 0;
                    cr_assert_eq(element(chunk, i, j), bf16_from_float(want));
                }
        }
    bf16_from_floats(from, sizeof small / sizeof *small, small);
    bf16_pack(small, LD, chunk);
    for (size_t i = 0; i < 32; i++)
        for (size_t j = 0; j < 32; j++)
            cr_assert_eq(element(chunk, i, j), small[i * LD + j]);
    free(from);
}

Test(bf16, transposes)
{
    enum { ROWS = 64, COLUMNS = 96, LD = COLUMNS + 3, TO_LD = ROWS + 7 };
    static bf16 from[ROWS * LD], to[COLUMNS * TO_LD];

    for (size_t i = 0; i < ROWS * LD; i++)
        from[i] = (bf16)i;
    bf16_transpose(from, LD, ROWS, COLUMNS, to, TO_LD);
    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j < COLUMNS; j++)
            cr_assert_eq(to[j * TO_LD + i], from[i * LD + j]);
}

/* ---------------------------------------------------------------- products */

enum { ROW = 5 * 32 + 7, CHUNKS = 5, LDC = 37, TARGETS = 80 };
enum { FAR_ROW = 2048, FAR_ROWS = 32 }; /* of 4096 bytes */

struct numbers {
    bf16 a[FAR_ROWS * FAR_ROW], panel[CHUNKS * BF16_CHUNK_SIZE];
    float c[BF16_ROWS * LDC];
};

/* Exponents in [low, low + range): what a sum of products under- or overflows with. */
static uint32_t number(struct rng *r, uint32_t low, uint32_t range)
{
    uint32_t x = rng_u32(r);
    return (x & 0x807fffff) | (low + (uint32_t)(rng_u32(r) % range)) << 23;
}

static const struct range {
    const char *name;
    uint32_t low, range, low_c, range_c;
} ranges[] = {
    {"about one",                              120, 12,  120, 16 },
    {"all from denormals to large",            0,   140, 0,   130},
    {"products about the least normal number", 55,  16,  0,   10 },
    {"sums that overflow",                     185, 10,  240, 15 },
};

static void bf16_fill(struct numbers *n, const struct range *range, int64_t seed, bool specials_too)
{
    struct rng r = rng_stream(seed, 0, 0, RNG_SYNTHETIC);

    for (size_t i = 0; i < sizeof n->a / sizeof *n->a; i++)
        n->a[i] = (bf16)(number(&r, range->low, range->range) >> 16);
    for (size_t i = 0; i < sizeof n->panel / sizeof *n->panel; i++)
        n->panel[i] = (bf16)(number(&r, range->low, range->range) >> 16);
    for (size_t i = 0; i < sizeof n->c / sizeof *n->c; i++)
        n->c[i] = float_of(number(&r, range->low_c, range->range_c));
    for (size_t i = 0; specials_too && i < SPECIALS; i++) {
        n->a[rng_u32(&r) % (FAR_ROWS * FAR_ROW)] = (bf16)(specials[i] >> 16);
        n->panel[rng_u32(&r) % (CHUNKS * BF16_CHUNK_SIZE)] = (bf16)(specials[i] >> 16);
        n->c[rng_u32(&r) % (BF16_ROWS * LDC)] = float_of(specials[i]);
    }
}

static void check_product(enum bf16_kind kind, const struct numbers *n, size_t rows, bool add,
                          const char *what)
{
    static const size_t chunk[CHUNKS] = {96, 0, 128, 64, 32};
    struct bf16_product p = {n->a, ROW, chunk, CHUNKS, n->panel, 0};
    static float have[BF16_ROWS * LDC], want[BF16_ROWS * LDC];

    memcpy(have, n->c, sizeof have);
    memcpy(want, n->c, sizeof want);
    bf16_begin();
    bf16_multiply(&p, rows, have, LDC, add);
    bf16_end();
    bf16_multiply_reference(kind, &p, rows, want, LDC, add);
    for (size_t i = 0; i < BF16_ROWS * LDC; i++)
        cr_assert(bits_of(have[i]) == bits_of(want[i]) || (isnan(have[i]) && isnan(want[i])),
                  "%s, %s, %zu rows: element %zu is %a instead of %a", bf16_kind_name(kind), what,
                  rows, i, (double)have[i], (double)want[i]);
}

static float flushed(float x)
{
    return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

/* Every fifth row goes nowhere, the others to the targets in reverse if `mapped`. */
static void check_rounded(enum bf16_kind kind, const struct numbers *n, size_t row, size_t rows,
                          bool mapped, bool add)
{
    static const size_t chunk[CHUNKS] = {96, 0, 128, 64, 32};
    struct bf16_product p = {n->a, row, chunk, CHUNKS, n->panel, 0};
    static float sum[TARGETS * BF16_COLUMNS];
    static bf16 have[TARGETS * LDC], want[TARGETS * LDC];
    int32_t pixel[TARGETS];

    bf16_multiply_reference(kind, &p, rows, sum, BF16_COLUMNS, false);
    for (size_t i = 0; i < TARGETS * LDC; i++)
        have[i] = want[i] = n->a[i];
    for (size_t i = 0; i < TARGETS; i++) {
        pixel[i] = i >= rows || (mapped && i % 5 == 3) ? -1 : (int32_t)(mapped ? rows - 1 - i : i);
        for (size_t j = 0; j < BF16_COLUMNS && pixel[i] >= 0; j++) {
            bf16 *to = want + (size_t)pixel[i] * LDC + j;
            float y = add ? flushed(bf16_to_float(*to)) : 0, x = sum[i * BF16_COLUMNS + j];
            *to = bf16_from_float(add ? x + y : x);
        }
    }
    bf16_begin();
    bf16_multiply_rounded(&p, rows,
                          &(struct bf16_target){have, LDC, mapped ? pixel : NULL, add, !mapped});
    bf16_end();
    for (size_t i = 0; i < TARGETS * LDC; i++)
        cr_assert(have[i] == want[i] ||
                      (isnan(bf16_to_float(have[i])) && isnan(bf16_to_float(want[i]))),
                  "%s, %zu rows: element %zu is %x instead of %x", bf16_kind_name(kind), rows, i,
                  have[i], want[i]);
}

static void check_kind(enum bf16_kind kind)
{
    static const size_t rows[] = {32, 31, 17, 16, 15, 1}, rounded[] = {80, 47, 33, 14, 8, 7, 1};
    static struct numbers n;

    if (!bf16_use(kind))
        cr_skip_test("this processor has no %s", bf16_kind_name(kind));
    cr_assert_eq(bf16_kind(), kind);
    for (size_t k = 0; k < sizeof ranges / sizeof ranges[0]; k++)
        for (int i = 0; i < 24; i++) {
            bf16_fill(&n, &ranges[k], i, i % 3 == 0);
            check_product(kind, &n, rows[i % 6], i % 2, ranges[k].name);
            check_rounded(kind, &n, ROW, rounded[i % 7], i / 7 % 2, i % 2);
            check_rounded(kind, &n, FAR_ROW, 19, i / 2 % 2, i % 2);
        }
}

Test(bf16, emulated_products_equal_the_reference_bit_by_bit)
{
    check_kind(BF16_EMULATED);
}

Test(bf16, avx512_bf16_products_equal_the_reference_bit_by_bit)
{
    check_kind(BF16_DOT);
}

Test(bf16, amx_products_equal_the_reference_bit_by_bit)
{
    check_kind(BF16_AMX);
}
