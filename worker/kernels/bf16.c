/* In assembler, because instructions are chosen at run time and must not need compiler flags. */
#include "worker/kernels/bf16.h"

#include "worker/kernels/bf16_vec.h"

#if defined __AVX512BW__ && defined __linux__
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined __SSE3__
#include <pmmintrin.h>
#endif

/* ---- fp32 multiply-adds, of any processor */

enum { EMULATED_ROWS = 4 };

BF16_INLINE void bf16_emulate(const struct bf16_product *p, size_t first, int rows, size_t column,
                              float *c, size_t ldc, bool add)
{
    vec sum[EMULATED_ROWS];

#pragma GCC unroll 4
    for (int i = 0; i < rows; i++)
        sum[i] = add ? vec_load(c + (first + (size_t)i) * ldc + column) : (vec){0};
    for (size_t q = 0; q < p->chunks; q++) {
        const bf16 *a = p->a + first * p->row + p->chunk[q];
        const bf16 *b = p->panel + q * BF16_CHUNK_SIZE + column / 16 * 512 + column % 16 * 2;
        vec even[EMULATED_ROWS], odd[EMULATED_ROWS];
#pragma GCC unroll 4
        for (int i = 0; i < rows; i++)
            even[i] = odd[i] = (vec){0};
        for (size_t k = 0; k < BF16_CHUNK; k += 2, b += 32) {
            vec_bits y = *(const vec_bits *)b;
#pragma GCC unroll 4
            for (int i = 0; i < rows; i++) {
                vec_bits x = vec_spread_pair(a + (size_t)i * p->row + k);
                even[i] = vec_multiply_add((vec)(x << 16), (vec)(y << 16), even[i]);
                odd[i] = vec_multiply_add((vec)(x & 0xffff0000), (vec)(y & 0xffff0000), odd[i]);
            }
        }
#pragma GCC unroll 4
        for (int i = 0; i < rows; i++)
            sum[i] += even[i] + odd[i];
    }
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++)
        vec_store(c + (first + (size_t)i) * ldc + column, sum[i]);
}

static void bf16_multiply_emulated(const struct bf16_product *p, size_t rows, float *c, size_t ldc,
                                   bool add)
{
    for (size_t column = 0; column < BF16_COLUMNS; column += VEC) {
        size_t i = 0;
        for (; i + EMULATED_ROWS <= rows; i += EMULATED_ROWS)
            bf16_emulate(p, i, EMULATED_ROWS, column, c, ldc, add);
        for (; i < rows; i++)
            bf16_emulate(p, i, 1, column, c, ldc, add);
    }
}

#if defined __AVX512BW__ && defined __linux__

/* ---- AVX512_BF16: VDPBF16PS */

BF16_INLINE __m512 dot(__m512 c, __m512i a, __m512i b)
{
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
}

enum { DOT_ROWS = 14 };

/* Adds the products of the rows at a to sum. Fetches the `ahead`th next ones, unless it is 0. */
BF16_INLINE void dot_sum(const struct bf16_product *p, const bf16 *const *a, int rows, size_t ahead,
                         __m512 sum[DOT_ROWS][2])
{
    size_t length = p->length ? p->length : BF16_CHUNK;

    for (size_t q = 0; q < p->chunks; q++) {
        const bf16 *b = p->panel + q * BF16_CHUNK_SIZE;
        size_t k = p->chunk[q];
#pragma GCC unroll 14
        for (int i = 0; i < rows && ahead; i++)
            __builtin_prefetch(a[i] + ahead * p->row + k, 0, 2);
        for (size_t end = k + length; k < end; k += 2, b += 32) {
            __m512i b0 = _mm512_loadu_si512(b), b1 = _mm512_loadu_si512(b + 512);
#pragma GCC unroll 14
            for (int i = 0; i < rows; i++) {
                int pair;
                memcpy(&pair, a[i] + k, sizeof pair);
                __m512i x = _mm512_set1_epi32(pair);
                sum[i][0] = dot(sum[i][0], x, b0);
                sum[i][1] = dot(sum[i][1], x, b1);
            }
        }
    }
}

BF16_INLINE void dot_rows(const struct bf16_product *p, size_t first, int rows, float *c,
                          size_t ldc, bool add)
{
    const bf16 *a[DOT_ROWS];
    __m512 sum[DOT_ROWS][2];
    float *to = c + first * ldc;

#pragma GCC unroll 14
    for (int i = 0; i < rows; i++) {
        a[i] = p->a + (first + (size_t)i) * p->row;
        for (int j = 0; j < 2; j++) {
            __builtin_prefetch(to + (size_t)(rows + i) * ldc + 16 * j, 1);
            sum[i][j] = add ? _mm512_loadu_ps(to + (size_t)i * ldc + 16 * j) : _mm512_setzero_ps();
        }
    }
    dot_sum(p, a, rows, 0, sum);
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < 2; j++)
            _mm512_storeu_ps(to + (size_t)i * ldc + 16 * j, sum[i][j]);
}

static void bf16_multiply_dot(const struct bf16_product *p, size_t rows, float *c, size_t ldc,
                              bool add)
{
    size_t i = 0;
    for (; i + 11 <= rows; i += 11)
        dot_rows(p, i, 11, c, ldc, add);
    for (; i + 10 <= rows; i += 10)
        dot_rows(p, i, 10, c, ldc, add);
    for (; i + 5 <= rows; i += 5)
        dot_rows(p, i, 5, c, ldc, add);
    for (; i < rows; i++)
        dot_rows(p, i, 1, c, ldc, add);
}

BF16_INLINE __m512 dot_load(const bf16 *p)
{
    __m256i x = _mm256_loadu_si256((const __m256i *)p);
    return (__m512)_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16);
}

/* Stores the first `used` rows. */
BF16_INLINE void dot_round(const struct bf16_product *p, const bf16 *const *a, int rows,
                           bf16 *const *to, int used, bool add)
{
    __m512 sum[DOT_ROWS][2];

#pragma GCC unroll 14
    for (int i = 0; i < rows; i++)
        sum[i][0] = sum[i][1] = _mm512_setzero_ps();
    dot_sum(p, a, rows, DOT_ROWS, sum);
#pragma GCC unroll 14
    for (int i = 0; i < rows && i < used; i++) {
        __m512i y;
        for (int j = 0; j < 2 && add; j++)
            sum[i][j] += dot_load(to[i] + 16 * j);
        __asm__("vcvtne2ps2bf16 %1, %2, %0" : "=v"(y) : "v"(sum[i][0]), "v"(sum[i][1]));
        _mm512_storeu_si512(to[i], y);
    }
}

/* The rows of a tile need not be neighbours: those without a target are left out. More than eight
 * rows with a distance of 4096 bytes would displace each other in the L1 cache. */
static void bf16_round_dot(const struct bf16_product *p, size_t rows, const struct bf16_target *t)
{
    int most = p->row % 2048 ? DOT_ROWS : DOT_ROWS / 2;

    for (size_t i = 0; i < rows;) {
        const bf16 *a[DOT_ROWS];
        bf16 *to[DOT_ROWS];
        int n = 0;
        for (; n < most && i < rows; i++) {
            int64_t pixel = t->pixel ? t->pixel[i] : (int64_t)i;
            if (pixel < 0)
                continue;
            a[n] = p->a + i * p->row;
            to[n] = t->to + (size_t)pixel * t->ld;
            __builtin_prefetch(to[n++], 1);
        }
        for (int k = n; k < DOT_ROWS; k++)
            a[k] = p->a;
        if (n <= DOT_ROWS / 2)
            dot_round(p, a, DOT_ROWS / 2, to, n, t->add);
        else if (t->add)
            dot_round(p, a, DOT_ROWS, to, n, true);
        else
            dot_round(p, a, DOT_ROWS, to, n, false);
    }
}

/* ---- AMX: TDPBF16PS */

/* Operand of LDTILECFG (Intel SDM): palette 1, eight tiles */
struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

/* Tiles 0 to 3 are C, 4 and 5 A, 6 and 7 B. */
static void bf16_multiply_configure_tiles(size_t rows)
{
    uint8_t upper = (uint8_t)(rows < 16 ? rows : 16), lower = (uint8_t)(rows - upper);
    struct tile_config config = {.palette = 1};
    const uint8_t of[8] = {upper, upper, lower, lower, upper, lower, 16, 16};

    for (int i = 0; i < 8; i++) {
        config.rows[i] = of[i];
        config.row_bytes[i] = of[i] ? 64 : 0;
    }
    __asm__ volatile("ldtilecfg %0" : : "m"(config));
}

#define TILE_LOAD(tile, base, stride)                                                              \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile : : "r"(base), "r"(stride) : "memory")
#define TILE_STORE(tile, base, stride)                                                             \
    __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" : : "r"(base), "r"(stride) : "memory")
#define TILE_ZERO(tile)   __asm__ volatile("tilezero %%tmm" #tile : :)
#define TILE_DOT(c, a, b) __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #c : :)

static void bf16_multiply_tiles(const struct bf16_product *p, float *c, size_t ldc, bool add)
{
    size_t c_step = ldc * sizeof *c, a_step = p->row * sizeof *p->a;
    const bf16 *b = p->panel;

    if (add) {
        TILE_LOAD(0, c, c_step);
        TILE_LOAD(1, c + 16, c_step);
        TILE_LOAD(2, c + 16 * ldc, c_step);
        TILE_LOAD(3, c + 16 * ldc + 16, c_step);
    } else {
        TILE_ZERO(0);
        TILE_ZERO(1);
        TILE_ZERO(2);
        TILE_ZERO(3);
    }
    for (size_t q = 0; q < p->chunks; q++, b += BF16_CHUNK_SIZE) {
        const bf16 *a = p->a + p->chunk[q];
        TILE_LOAD(6, b, (size_t)64);
        TILE_LOAD(4, a, a_step);
        TILE_LOAD(7, b + 512, (size_t)64);
        TILE_DOT(0, 4, 6);
        TILE_LOAD(5, a + 16 * p->row, a_step);
        TILE_DOT(1, 4, 7);
        TILE_DOT(2, 5, 6);
        TILE_DOT(3, 5, 7);
    }
    TILE_STORE(0, c, c_step);
    TILE_STORE(1, c + 16, c_step);
    TILE_STORE(2, c + 16 * ldc, c_step);
    TILE_STORE(3, c + 16 * ldc + 16, c_step);
}

static void bf16_multiply_upper_tiles(const struct bf16_product *p, float *c, size_t ldc, bool add)
{
    size_t c_step = ldc * sizeof *c, a_step = p->row * sizeof *p->a;
    const bf16 *b = p->panel;

    if (add) {
        TILE_LOAD(0, c, c_step);
        TILE_LOAD(1, c + 16, c_step);
    } else {
        TILE_ZERO(0);
        TILE_ZERO(1);
    }
    for (size_t q = 0; q < p->chunks; q++, b += BF16_CHUNK_SIZE) {
        TILE_LOAD(4, p->a + p->chunk[q], a_step);
        TILE_LOAD(6, b, (size_t)64);
        TILE_LOAD(7, b + 512, (size_t)64);
        TILE_DOT(0, 4, 6);
        TILE_DOT(1, 4, 7);
    }
    TILE_STORE(0, c, c_step);
    TILE_STORE(1, c + 16, c_step);
}

static void bf16_multiply_amx(const struct bf16_product *p, size_t rows, float *c, size_t ldc,
                              bool add)
{
    if (rows < BF16_ROWS)
        bf16_multiply_configure_tiles(rows);
    if (rows > 16)
        bf16_multiply_tiles(p, c, ldc, add);
    else
        bf16_multiply_upper_tiles(p, c, ldc, add);
    if (rows < BF16_ROWS)
        bf16_multiply_configure_tiles(BF16_ROWS);
}

static void bf16_begin_tiles(void)
{
    bf16_multiply_configure_tiles(BF16_ROWS);
}

static void bf16_end_tiles(void)
{
    __asm__ volatile("tilerelease" : :);
}

static bool bf16_has_dot(void)
{
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && a & 1u << 5;
}

/* Linux grants the tile state on request (arch_prctl(2), ARCH_REQ_XCOMP_PERM). */
static bool bf16_has_tiles(void)
{
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18, AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24 };
    unsigned a, b, c, d;

    return bf16_has_dot() && __get_cpuid_count(7, 0, &a, &b, &c, &d) && d & AMX_BF16 &&
           d & AMX_TILE && !syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA);
}
#endif

/* ---- the kinds */

/* A row without functions is not in this engine, or not for this system. */
static const struct {
    const char *name;
    bool (*has)(void);
    void (*multiply)(const struct bf16_product *p, size_t rows, float *c, size_t ldc, bool add);
    /* NULL: multiplies into a block and rounds that */
    void (*round)(const struct bf16_product *p, size_t rows, const struct bf16_target *t);
    void (*begin)(void), (*end)(void); /* around a thread's products; may be NULL */
} kernels[BF16_KINDS] = {
    [BF16_EMULATED] = {"emulated",    NULL,           bf16_multiply_emulated, NULL,           NULL,             NULL},
#if defined __AVX512BW__ && defined __linux__
    [BF16_DOT] = {"avx512_bf16", bf16_has_dot,   bf16_multiply_dot,      bf16_round_dot, NULL,             NULL},
    [BF16_AMX] = {"amx_bf16",    bf16_has_tiles, bf16_multiply_amx,      NULL,           bf16_begin_tiles,
                       bf16_end_tiles                                                                               },
#else
    [BF16_DOT] = {.name = "avx512_bf16"},
    [BF16_AMX] = {.name = "amx_bf16"},
#endif
};
static bool has[BF16_KINDS] = {true};
static enum bf16_kind kind;

/* Selects the last kind that the processor has. Runs before main; threads only read the result. */
__attribute__((constructor)) static void bf16_choose_kind(void)
{
    for (int i = 1; i < BF16_KINDS; i++) {
        has[i] = kernels[i].has && kernels[i].has();
        kind = has[i] ? (enum bf16_kind)i : kind;
    }
}

bool bf16_converts(void)
{
    return has[BF16_DOT];
}

enum bf16_kind bf16_kind(void)
{
    return kind;
}

bool bf16_use(enum bf16_kind wanted)
{
    if (has[wanted])
        kind = wanted;
    return has[wanted];
}

const char *bf16_kind_name(enum bf16_kind k)
{
    return kernels[k].name;
}

void bf16_begin(void)
{
#ifdef __SSE3__
    _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
    _MM_SET_DENORMALS_ZERO_MODE(_MM_DENORMALS_ZERO_ON);
#endif
    if (kernels[kind].begin)
        kernels[kind].begin();
}

void bf16_end(void)
{
    if (kernels[kind].end)
        kernels[kind].end();
}

void bf16_multiply(const struct bf16_product *p, size_t rows, float *c, size_t ldc, bool add)
{
    kernels[kind].multiply(p, rows, c, ldc, add);
}

BF16_INLINE void bf16_store_block(const float *block, size_t first, size_t rows,
                                  const struct bf16_target *t, bool native)
{
    for (size_t i = first; i < first + rows; i++, block += BF16_COLUMNS) {
        int64_t pixel = t->pixel ? t->pixel[i] : (int64_t)i;
        if (pixel < 0)
            continue;
        bf16 *to = t->to + (size_t)pixel * t->ld;
        for (size_t k = 0; k < BF16_COLUMNS; k += VEC) {
            vec v = vec_load(block + k);
            if (t->add)
                v += vec_load_bf16(to + k);
            vec_store_bf16(to + k, v, native);
        }
    }
}

static void bf16_round_blocks(struct bf16_product p, size_t rows, const struct bf16_target *t)
{
    float block[BF16_ROWS * BF16_COLUMNS] __attribute__((aligned(64)));

    for (size_t i = 0; i < rows; i += BF16_ROWS, p.a += BF16_ROWS * p.row) {
        size_t left = t->exact ? rows - i : bf16_round_up(rows - i, BF16_HALF_TILE);
        size_t n = left < BF16_ROWS ? left : BF16_ROWS;
        kernels[kind].multiply(&p, n, block, BF16_COLUMNS, false);
        if (bf16_converts())
            bf16_store_block(block, i, n, t, true);
        else
            bf16_store_block(block, i, n, t, false);
    }
}

void bf16_multiply_rounded(const struct bf16_product *p, size_t rows, const struct bf16_target *t)
{
    if (kernels[kind].round)
        kernels[kind].round(p, rows, t);
    else
        bf16_round_blocks(*p, rows, t);
}

/* ---- conversion and packing */

BF16_INLINE void bf16_round_floats(const float *from, size_t n, bf16 *to, bool native)
{
    size_t i = 0;
    for (; i + VEC <= n; i += VEC)
        vec_store_bf16(to + i, vec_load(from + i), native);
    for (; i < n; i++)
        to[i] = bf16_from_float(from[i]);
}

void bf16_from_floats(const float *from, size_t n, bf16 *to)
{
    bf16_converts() ? bf16_round_floats(from, n, to, true) : bf16_round_floats(from, n, to, false);
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
/* Transposes 32 rows of 32: interleaves neighbouring rows, then transposes the pairs. Fetches the
 * next 32 rows. */
static void bf16_transpose_block(const bf16 *from, size_t ld, bf16 *to, size_t to_ld)
{
    vec low[16], high[16];

    for (int i = 0; i < 16; i++) {
        const bf16 *row = from + (size_t)(2 * i) * ld;
        __m512i a = _mm512_loadu_si512(row), b = _mm512_loadu_si512(row + ld);
        __builtin_prefetch(row + 32 * ld, 0, 1);
        __builtin_prefetch(row + 33 * ld, 0, 1);
        low[i] = (vec)_mm512_unpacklo_epi16(a, b); /* channels 8 l + 0 to 3 of each lane l */
        high[i] = (vec)_mm512_unpackhi_epi16(a, b);
    }
    vec_transpose(low);
    vec_transpose(high);
    for (int i = 0; i < 16; i++) {
        size_t channel = (size_t)(i / 4 * 8 + i % 4);
        _mm512_storeu_si512(to + channel * to_ld, (__m512i)low[i]);
        _mm512_storeu_si512(to + (channel + 4) * to_ld, (__m512i)high[i]);
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

BF16_INLINE void bf16_pack_rows(const float *from, size_t ld, size_t rows, bf16 *chunk, bool native)
{
    for (size_t i = 0; i < 32; i += 2)
        for (size_t j = 0; j < 32; j += VEC) {
            const float *at = from + i * ld + j;
            vec even = i < rows ? vec_load(at) : (vec){0};
            vec odd = i + 1 < rows ? vec_load(at + ld) : (vec){0};
            *(vec_bits *)(chunk + j / 16 * 512 + i * 16 + j % 16 * 2) =
                vec_bf16_pairs(even, odd, native);
        }
}

BF16_INLINE void bf16_pack_columns(const float *from, size_t ld, size_t rows, bf16 *chunk,
                                   bool native)
{
    bf16 block[32 * 32];

    for (size_t j = 0; j < 32; j++) {
        bf16_round_floats(from + j * ld, rows, block + j * 32, native);
        memset(block + j * 32 + rows, 0, (32 - rows) * sizeof *block);
    }
#ifdef __AVX512BW__
    for (size_t tile = 0; tile < 2; tile++) {
        vec r[16];
        for (size_t i = 0; i < 16; i++)
            r[i] = *(const vec *)(block + (tile * 16 + i) * 32);
        vec_transpose(r);
        for (size_t i = 0; i < 16; i++)
            *(vec *)(chunk + tile * 512 + i * 32) = r[i];
    }
#else
    for (size_t j = 0; j < 32; j++)
        for (size_t i = 0; i < 32; i++)
            chunk[(j / 16 * 16 + i / 2) * 32 + j % 16 * 2 + i % 2] = block[j * 32 + i];
#endif
}

BF16_INLINE void bf16_pack_as(const float *from, size_t ld, bool transposed, size_t rows,
                              bf16 *chunk, bool native)
{
    if (transposed)
        bf16_pack_columns(from, ld, rows, chunk, native);
    else
        bf16_pack_rows(from, ld, rows, chunk, native);
}

void bf16_pack_floats(const float *from, size_t ld, bool transposed, size_t rows, bf16 *chunk)
{
    if (bf16_converts() && rows == 32)
        bf16_pack_as(from, ld, transposed, 32, chunk, true);
    else
        bf16_pack_as(from, ld, transposed, rows, chunk, false);
}
