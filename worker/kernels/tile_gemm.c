#include "worker/kernels/tile_gemm.h"

#include <string.h>

#include "common/run/trace.h"
#include "worker/team/dry_run.h"
#include "worker/team/parallel.h"
#include "worker/kernels/tile_size.h"

/* Rows of B per block: 32 KiB of a panel with AVX-512. */
enum { BLOCK_K = 256, COPY_LD = BLOCK_K + 16, COPY_ROWS = 256 };

/* With second terms, which cost more for each block: reading both C, and adding both A. */
enum { LONG_K = 512, LONG_LD = LONG_K + 16 };

size_t tile_columns(void)
{
    return 2 * tile_vec();
}

bool tile_gemm_takes(size_t n)
{
    return n % tile_columns() == 0;
}

enum { TILE_ROWS_MAX = 16 };
_Static_assert((int)TILE_ROWS <= (int)TILE_ROWS_MAX, "add rows to EACH_ROWS");

/* Cache lines to fetch into the second-level cache during a product, one a step of k, because many
 * at once would stall it. The last entry of a list has more lines than there are steps. */
struct fetch {
    const float *at;
    size_t lines;
};

enum { LINE = 16, LATER_MAX = 128, FETCHES_MAX = 4 * TILE_ROWS_MAX + 2 * LATER_MAX + 1 };

/* Where a product goes: C, overwritten or added to, and perhaps a second matrix. */
struct target {
    bool add;
    const struct tile_second *second;
};

/* The micro-kernel: C (rows, TILE_COLUMNS) for k products. Element (i, k) of A is at a[i lda + k],
 * or at a[k lda + i] if by_k. */
ISA_INLINE void micro(int rows, bool by_k, const float *a, size_t lda, const float *b, size_t k,
                      float *c, size_t ldc, struct target to, const struct fetch *fetch)
{
    vec sum[TILE_ROWS_MAX][2];
    const float *lower = a + 7 * lda; /* spares the compiler most multiples of lda */
    const float *next = fetch->at;
    size_t left = fetch->lines;

#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
        sum[i][0] = sum[i][1] = (vec){0};
    for (size_t l = 0; l < k; l++, b += TILE_COLUMNS) {
        vec b0 = vec_load(b), b1 = vec_load(b + VEC);
        __builtin_prefetch(next, 0, 2);
        if (by_k) /* the columns of the next tile: strides defeat the hardware prefetcher */
            __builtin_prefetch(a + LINE, 0, 2);
        next += LINE;
        if (--left == 0) {
            fetch++;
            next = fetch->at;
            left = fetch->lines;
        }
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) {
            vec x = vec_all(by_k    ? a[i]
                            : i < 7 ? a[(size_t)i * lda]
                                    : lower[(size_t)(i - 7) * lda]);
            sum[i][0] += x * b0;
            sum[i][1] += x * b1;
        }
        a += by_k ? lda : 1;
        lower++;
    }
    if (to.second->c) {
        const struct tile_second *s = to.second;
        vec sign = vec_all(s->c_sign);
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) {
            float *at = c + s->c + (size_t)i * ldc;
            vec_store(at, sign * sum[i][0] + (s->add_c ? vec_load(at) : (vec){0}));
            vec_store(at + VEC, sign * sum[i][1] + (s->add_c ? vec_load(at + VEC) : (vec){0}));
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
        float *at = c + (size_t)i * ldc;
        if (to.add) {
            sum[i][0] += vec_load(at);
            sum[i][1] += vec_load(at + VEC);
        }
        vec_store(at, sum[i][0]);
        vec_store(at + VEC, sum[i][1]);
    }
}

typedef void micro_kernel(const float *a, size_t lda, const float *b, size_t k, float *c,
                          size_t ldc, struct target to, const struct fetch *fetch);

/* One function for each number of rows, up to TILE_ROWS; the others are empty. */
#define MICRO(count)                                                                               \
    static void rows_##count(const float *a, size_t lda, const float *b, size_t k, float *c,       \
                             size_t ldc, struct target to, const struct fetch *fetch)              \
    {                                                                                              \
        if (count <= TILE_ROWS)                                                                    \
            micro(count, false, a, lda, b, k, c, ldc, to, fetch);                                  \
    }                                                                                              \
    static void columns_##count(const float *a, size_t lda, const float *b, size_t k, float *c,    \
                                size_t ldc, struct target to, const struct fetch *fetch)           \
    {                                                                                              \
        if (count <= TILE_ROWS)                                                                    \
            micro(count, true, a, lda, b, k, c, ldc, to, fetch);                                   \
    }

#define EACH_ROWS(one)                                                                             \
    one(1) one(2) one(3) one(4) one(5) one(6) one(7) one(8) one(9) one(10) one(11) one(12) one(13) \
        one(14) one(15) one(16)
#define BY_ROWS(count)    [count] = rows_##count,
#define BY_COLUMNS(count) [count] = columns_##count,

EACH_ROWS(MICRO)

static micro_kernel *const by_rows[TILE_ROWS_MAX + 1] = {EACH_ROWS(BY_ROWS)};
static micro_kernel *const by_columns[TILE_ROWS_MAX + 1] = {EACH_ROWS(BY_COLUMNS)};

static const struct tile_second no_second;

static void tile_gemm_copy_panel(const float *b, size_t ld, size_t k, float *panel)
{
    for (size_t l = 0; l < k; l++, b += ld, panel += TILE_COLUMNS) {
        vec_store(panel, vec_load(b));
        vec_store(panel + VEC, vec_load(b + VEC));
    }
}

#ifdef ISA_TRANSPOSES
/* Not inline: in the loops of a panel gcc 12 spills the vectors. */
static __attribute__((noinline)) void tile_gemm_transpose_block(const float *from, size_t ld,
                                                                float *to)
{
    vec r[VEC];

    for (size_t i = 0; i < VEC; i++)
        r[i] = vec_load(from + i * ld);
    vec_transpose(r);
    for (size_t i = 0; i < VEC; i++)
        vec_store(to + i * TILE_COLUMNS, r[i]);
}
#endif

static void tile_gemm_transpose_panel(const float *b, size_t ld, size_t k, float *panel)
{
    size_t l = 0;
#ifdef ISA_TRANSPOSES
    for (; l + VEC <= k; l += VEC) {
        tile_gemm_transpose_block(b + l, ld, panel + l * TILE_COLUMNS);
        tile_gemm_transpose_block(b + VEC * ld + l, ld, panel + l * TILE_COLUMNS + VEC);
    }
#endif
    for (; l < k; l++)
        for (size_t j = 0; j < TILE_COLUMNS; j++)
            panel[l * TILE_COLUMNS + j] = b[j * ld + l];
}

/* Rows of a + sign a[second]; columns are a multiple of VEC. */
static void tile_gemm_copy_sums(size_t rows, size_t columns, const float *a, size_t lda,
                                ptrdiff_t second, float sign, float *to, size_t ld)
{
    for (size_t i = 0; i < rows; i++, a += lda, to += ld)
        for (size_t j = 0; j < columns; j += VEC)
            vec_store(to + j, vec_load(a + j) + vec_all(sign) * vec_load(a + second + j));
}

static void tile_gemm_make_panel(const struct tile_matrix *b, size_t k0, size_t k, size_t column,
                                 const struct tile_second *second, float *panel)
{
    if (second->b)
        tile_gemm_copy_sums(k, TILE_COLUMNS, b->data + k0 * b->ld + column, b->ld, second->b,
                            second->b_sign, panel, TILE_COLUMNS);
    else if (b->transposed)
        tile_gemm_transpose_panel(b->data + column * b->ld + k0, b->ld, k, panel);
    else
        tile_gemm_copy_panel(b->data + k0 * b->ld + column, b->ld, k, panel);
}

void tile_pack(const struct tile_matrix *b, size_t k, size_t n, float *panels, size_t k_all)
{
    if (dry_run_moves(2 * k * n))
        return;
    for (size_t j = 0; j < n; j += TILE_COLUMNS)
        tile_gemm_make_panel(b, 0, k, j, &no_second, panels + j * k_all);
}

/* Adds rows of a matrix, which the hardware prefetcher does not follow 14 at a time, and returns
 * the end of the list. */
static struct fetch *tile_gemm_fetch_rows(struct fetch *to, const float *a, size_t lda, size_t rows,
                                          size_t columns)
{
    for (size_t i = 0; i < rows; i++)
        *to++ = (struct fetch){a + i * lda, (columns + LINE - 1) / LINE};
    return to;
}

/* Steps from which fetching C pays: a product of fewer takes no longer than the list. */
enum { FETCH_K = 64 };

/* Rows of B that the next panel is made of. */
struct later {
    const float *at;
    size_t ld, rows, columns;
};

/* All rows of C for one block of a panel, in groups of nearly equal size so that none is tiny.
 * Meanwhile fetches the next rows of C (and of A, if fetch), and `later`. */
static void tile_gemm_run_rows(size_t m, const float *a, size_t lda, bool by_k, bool fetch,
                               const float *panel, size_t k, float *c, size_t ldc,
                               struct target target, struct later later)
{
    micro_kernel *const *kernels = by_k ? by_columns : by_rows;
    const struct tile_second *second = target.second;
    size_t shares = (m + TILE_ROWS - 1) / TILE_ROWS;

    for (size_t s = 0, row = 0; s < shares; s++) {
        size_t end = m * (s + 1) / shares, next = s + 1 < shares ? m * (s + 2) / shares - end : 0;
        size_t from = later.rows * s / shares,
               to = size_min(later.rows * (s + 1) / shares, from + LATER_MAX);
        struct fetch list[FETCHES_MAX], *last = list;
        if (fetch)
            last = tile_gemm_fetch_rows(last, a + end * lda, lda, next, k);
        if (k >= FETCH_K)
            last = tile_gemm_fetch_rows(last, c + end * ldc, ldc, next, TILE_COLUMNS);
        if (second->c)
            last = tile_gemm_fetch_rows(last, c + second->c + end * ldc, ldc, next, TILE_COLUMNS);
        last = tile_gemm_fetch_rows(last, later.at + from * later.ld, later.ld, to - from,
                                    later.columns);
        if (second->b)
            last = tile_gemm_fetch_rows(last, later.at + second->b + from * later.ld, later.ld,
                                        to - from, later.columns);
        *last = (struct fetch){panel, k + 1};
        kernels[end - row](a + (by_k ? row : row * lda), lda, panel, k, c + row * ldc, ldc, target,
                           list);
        row = end;
    }
}

/* Copies k columns of A, whose rows a multiple of 4 KiB apart would conflict in the cache. */
static void tile_gemm_copy_rows(size_t m, const float *a, size_t lda, size_t k, float *to,
                                size_t ld)
{
    for (size_t i = 0; i < m; i++)
        memcpy(to + i * ld, a + i * lda, k * sizeof *to);
}

/* For columns j, or for the first columns of the next block of k; no rows if there is none. */
static struct later tile_gemm_later(const struct tile_matrix *b, size_t k0, size_t k, size_t n,
                                    size_t j, bool more)
{
    size_t row = j < n ? k0 : k0 + k, column = j < n ? j : 0;

    if (b->packed || (j >= n && !more))
        return (struct later){.at = b->data};
    if (b->transposed)
        return (struct later){b->data + column * b->ld + row, b->ld, TILE_COLUMNS, k};
    return (struct later){b->data + row * b->ld + column, b->ld, k, TILE_COLUMNS};
}

/* One block of k for all columns of C; A at its first column (or row, by_k). more: another block of
 * about this length follows. block: for a panel, if B is not packed. */
ISA_INLINE void run_block(size_t m, size_t n, size_t k0, size_t k, const float *a, size_t lda,
                          bool by_k, const struct tile_matrix *b, float *c, size_t ldc,
                          struct target to, bool more, float *block)
{
    for (size_t j = 0; j < n; j += TILE_COLUMNS) {
        const float *panel = b->data + j * b->ld + k0 * TILE_COLUMNS;
        if (!b->packed) {
            tile_gemm_make_panel(b, k0, k, j, to.second, block);
            panel = block;
        }
        tile_gemm_run_rows(m, a, lda, by_k, !by_k && !j, panel, k, c + j, ldc, to,
                           tile_gemm_later(b, k0, k, n, j + TILE_COLUMNS, more));
    }
}

/* Completes C from left to right: 14 rows of A stay in the first-level cache, the packed panels in
 * the second, and the next rows are fetched meanwhile. */
static void tile_gemm_run_panels(size_t m, size_t n, const float *a, size_t lda,
                                 const float *panels, size_t panel_ld, size_t k, float *c,
                                 size_t ldc, struct target target)
{
    float copy[TILE_ROWS * LONG_LD] __attribute__((aligned(64)));
    size_t shares = (m + TILE_ROWS - 1) / TILE_ROWS, columns = n / TILE_COLUMNS;
    const struct tile_second *second = target.second;
    bool copies = second->a || (lda % 1024 == 0 && columns > 1);

    for (size_t s = 0, row = 0; s < shares; s++) {
        size_t end = m * (s + 1) / shares, next = s + 1 < shares ? m * (s + 2) / shares - end : 0;
        const float *rows = a + row * lda;
        if (second->a)
            tile_gemm_copy_sums(end - row, k, rows, lda, second->a, second->a_sign, copy, LONG_LD);
        else if (copies)
            tile_gemm_copy_rows(end - row, rows, lda, k, copy, LONG_LD);
        for (size_t j = 0; j < columns; j++) {
            size_t from = next * j / columns, to = next * (j + 1) / columns;
            float *block = c + row * ldc + j * TILE_COLUMNS;
            struct fetch list[FETCHES_MAX], *last = list;
            const float *after = j + 1 < columns ? block + TILE_COLUMNS : c + end * ldc;
            size_t rows_after = j + 1 < columns ? end - row : next;
            last = tile_gemm_fetch_rows(last, a + (end + from) * lda, lda, to - from, k);
            if (second->a)
                last = tile_gemm_fetch_rows(last, a + second->a + (end + from) * lda, lda,
                                            to - from, k);
            last = tile_gemm_fetch_rows(last, after, ldc, rows_after, TILE_COLUMNS);
            if (second->c)
                last = tile_gemm_fetch_rows(last, after + second->c, ldc, rows_after, TILE_COLUMNS);
            *last = (struct fetch){panels + j * panel_ld, k + 1};
            by_rows[end - row](copies ? copy : rows, copies ? LONG_LD : lda, panels + j * panel_ld,
                               k, block, ldc, target, list);
        }
        row = end;
    }
}

/* Measured best: floats of panels in the second-level cache; rows from which that pays. */
enum { PANELS_FLOATS = 96 * 1024, MANY_ROWS = 256 };

/* Of another block of k than the first. */
static struct target tile_gemm_later_target(struct target to, struct tile_second *second, size_t k0)
{
    *second = *to.second;
    second->add_c |= k0 > 0;
    return (struct target){to.add || k0, second};
}

static void gemm_by_panels(size_t m, size_t n, size_t k, const float *a, size_t lda,
                           const struct tile_matrix *b, float *c, size_t ldc, struct target to)
{
    size_t block = to.second == &no_second ? BLOCK_K : LONG_K;

    for (size_t k0 = 0; k0 < k; k0 += block) {
        struct tile_second second;
        struct target target = tile_gemm_later_target(to, &second, k0);
        size_t length = size_min(k - k0, block);
        size_t step = PANELS_FLOATS / length / TILE_COLUMNS * TILE_COLUMNS;
        for (size_t j = 0; j < n; j += step)
            tile_gemm_run_panels(m, size_min(n - j, step), a + k0, lda,
                                 b->data + j * b->ld + k0 * TILE_COLUMNS, b->ld * TILE_COLUMNS,
                                 length, c + j, ldc, target);
    }
}

/* Not inline: each page of a large frame is touched when it is entered (-fstack-clash-protection),
 * which takes longer than one of Winograd's products. */
static __attribute__((noinline)) void gemm_by_copied_rows(size_t m, size_t n, size_t k,
                                                          bool collide, const float *a, size_t lda,
                                                          const struct tile_matrix *b, float *c,
                                                          size_t ldc, bool add)
{
    float copy[COPY_ROWS * COPY_LD] __attribute__((aligned(64)));
    float panel[BLOCK_K * TILE_COLUMNS] __attribute__((aligned(64)));
    size_t step = collide ? COPY_ROWS : m;

    for (size_t row = 0; row < m; row += step)
        for (size_t k0 = 0; k0 < k; k0 += BLOCK_K) {
            size_t rows = size_min(m - row, step), length = size_min(k - k0, BLOCK_K);
            const float *block = a + row * lda + k0;
            if (collide)
                tile_gemm_copy_rows(rows, block, lda, length, copy, COPY_LD);
            run_block(rows, n, k0, length, collide ? copy : block, collide ? COPY_LD : lda, false,
                      b, c + row * ldc, ldc, (struct target){add || k0, &no_second},
                      k0 + BLOCK_K < k, panel);
        }
}

static void gemm_by_rows(size_t m, size_t n, size_t k, const float *a, size_t lda,
                         const struct tile_matrix *b, float *c, size_t ldc, bool add)
{
    bool collide = lda % 1024 == 0 && n > TILE_COLUMNS;

    if (collide || !b->packed)
        gemm_by_copied_rows(m, n, k, collide, a, lda, b, c, ldc, add);
    else
        for (size_t k0 = 0; k0 < k; k0 += BLOCK_K)
            run_block(m, n, k0, size_min(k - k0, BLOCK_K), a + k0, lda, false, b, c, ldc,
                      (struct target){add || k0, &no_second}, false, NULL);
}

void tile_gemm(size_t m, size_t n, size_t k, const float *a, size_t lda,
               const struct tile_matrix *b, float *c, size_t ldc, bool add)
{
    double piece = trace_begin();

    if (dry_run_products(m, n, k))
        return;
    if (b->packed && m >= MANY_ROWS)
        gemm_by_panels(m, n, k, a, lda, b, c, ldc, (struct target){add, &no_second});
    else
        gemm_by_rows(m, n, k, a, lda, b, c, ldc, add);
    trace_part(piece, TRACE_GEMM);
}

void tile_gemm_sums(size_t m, size_t n, size_t k, const float *a, size_t lda,
                    const struct tile_matrix *b, float *c, size_t ldc, bool add,
                    const struct tile_second *second)
{
    double piece = trace_begin();

    gemm_by_panels(m, n, k, a, lda, b, c, ldc, (struct target){add, second});
    trace_part(piece, TRACE_GEMM);
}

static void tile_gemm_by_k(size_t m, size_t n, size_t k, const float *a, size_t lda,
                           const struct tile_matrix *b, float *c, size_t ldc, struct target to,
                           float *panel)
{
    size_t block = to.second == &no_second ? BLOCK_K : LONG_K;
    double piece = trace_begin();

    if (dry_run_products(m, n, k))
        return;
    for (size_t k0 = 0; m && (k0 < k || (!k0 && !to.add)); k0 += block) {
        struct tile_second second;
        struct target target = tile_gemm_later_target(to, &second, k0);
        run_block(m, n, k0, size_min(k - k0, block), a + k0 * lda, lda, true, b, c, ldc, target,
                  k0 + block < k, panel);
    }
    trace_part(piece, TRACE_GEMM);
}

void tile_gemm_transposed(size_t m, size_t n, size_t k, const float *a, size_t lda,
                          const struct tile_matrix *b, float *c, size_t ldc, bool add)
{
    float panel[BLOCK_K * TILE_COLUMNS] __attribute__((aligned(64)));

    tile_gemm_by_k(m, n, k, a, lda, b, c, ldc, (struct target){add, &no_second}, panel);
}

enum { SUMS_PAD = 16 };

size_t tile_transposed_sums_floats(size_t m, size_t k)
{
    return LONG_K * tile_columns() + k * (m + SUMS_PAD);
}

void tile_gemm_transposed_sums(size_t m, size_t n, size_t k, const float *a, size_t lda,
                               const struct tile_matrix *b, float *c, size_t ldc, bool add,
                               const struct tile_second *second, float *sums)
{
    size_t ld = m + SUMS_PAD;
    float *panel = sums;

    sums += LONG_K * TILE_COLUMNS;
    if (second->a)
        tile_gemm_copy_sums(k, m, a, lda, second->a, second->a_sign, sums, ld);
    else
        for (size_t i = 0; i < k; i++)
            memcpy(sums + i * ld, a + i * lda, m * sizeof *sums);
    tile_gemm_by_k(m, n, k, sums, ld, b, c, ldc, (struct target){add, second}, panel);
}
