#include "worker/kernels/tile_gemm.h"

#include <string.h>

#include "common/run/trace.h"
#include "worker/team/dry_run.h"
#include "worker/team/parallel.h"
#include "worker/kernels/tile_size.h"

/* Rows of B per block: 32 KiB of a panel with AVX-512. */
enum { BLOCK_K = 256, COPY_LD = BLOCK_K + 16, COPY_ROWS = 256 };

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

enum { LINE = 16, FETCHES_MAX = 2 * TILE_ROWS_MAX + BLOCK_K + 1 };

/* The micro-kernel: C (rows, TILE_COLUMNS) for k products. Element (i, k) of A is at a[i lda + k],
 * or at a[k lda + i] if by_k. */
ISA_INLINE void micro(int rows, bool by_k, const float *a, size_t lda, const float *b, size_t k,
                      float *c, size_t ldc, bool add, const struct fetch *fetch)
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
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
        float *to = c + (size_t)i * ldc;
        if (add) {
            sum[i][0] += vec_load(to);
            sum[i][1] += vec_load(to + VEC);
        }
        vec_store(to, sum[i][0]);
        vec_store(to + VEC, sum[i][1]);
    }
}

typedef void micro_kernel(const float *a, size_t lda, const float *b, size_t k, float *c,
                          size_t ldc, bool add, const struct fetch *fetch);

/* One function for each number of rows, up to TILE_ROWS; the others are empty. */
#define MICRO(count)                                                                               \
    static void rows_##count(const float *a, size_t lda, const float *b, size_t k, float *c,       \
                             size_t ldc, bool add, const struct fetch *fetch)                      \
    {                                                                                              \
        if (count <= TILE_ROWS)                                                                    \
            micro(count, false, a, lda, b, k, c, ldc, add, fetch);                                 \
    }                                                                                              \
    static void columns_##count(const float *a, size_t lda, const float *b, size_t k, float *c,    \
                                size_t ldc, bool add, const struct fetch *fetch)                   \
    {                                                                                              \
        if (count <= TILE_ROWS)                                                                    \
            micro(count, true, a, lda, b, k, c, ldc, add, fetch);                                  \
    }

#define EACH_ROWS(one)                                                                             \
    one(1) one(2) one(3) one(4) one(5) one(6) one(7) one(8) one(9) one(10) one(11) one(12) one(13) \
        one(14) one(15) one(16)
#define BY_ROWS(count)    [count] = rows_##count,
#define BY_COLUMNS(count) [count] = columns_##count,

EACH_ROWS(MICRO)

static micro_kernel *const by_rows[TILE_ROWS_MAX + 1] = {EACH_ROWS(BY_ROWS)};
static micro_kernel *const by_columns[TILE_ROWS_MAX + 1] = {EACH_ROWS(BY_COLUMNS)};

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

static void tile_gemm_make_panel(const struct tile_matrix *b, size_t k0, size_t k, size_t column,
                                 float *panel)
{
    if (b->transposed)
        tile_gemm_transpose_panel(b->data + column * b->ld + k0, b->ld, k, panel);
    else
        tile_gemm_copy_panel(b->data + k0 * b->ld + column, b->ld, k, panel);
}

void tile_pack(const struct tile_matrix *b, size_t k, size_t n, float *panels, size_t k_all)
{
    if (dry_run_moves(2 * k * n))
        return;
    for (size_t j = 0; j < n; j += TILE_COLUMNS)
        tile_gemm_make_panel(b, 0, k, j, panels + j * k_all);
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
                               const float *panel, size_t k, float *c, size_t ldc, bool add,
                               struct later later)
{
    micro_kernel *const *kernels = by_k ? by_columns : by_rows;
    size_t shares = (m + TILE_ROWS - 1) / TILE_ROWS;

    for (size_t s = 0, row = 0; s < shares; s++) {
        size_t end = m * (s + 1) / shares, next = s + 1 < shares ? m * (s + 2) / shares - end : 0;
        size_t from = later.rows * s / shares, to = later.rows * (s + 1) / shares;
        struct fetch list[FETCHES_MAX], *last = list;
        if (fetch)
            last = tile_gemm_fetch_rows(last, a + end * lda, lda, next, k);
        if (k >= FETCH_K)
            last = tile_gemm_fetch_rows(last, c + end * ldc, ldc, next, TILE_COLUMNS);
        last = tile_gemm_fetch_rows(last, later.at + from * later.ld, later.ld, to - from,
                                    later.columns);
        *last = (struct fetch){panel, k + 1};
        kernels[end - row](a + (by_k ? row : row * lda), lda, panel, k, c + row * ldc, ldc, add,
                           list);
        row = end;
    }
}

/* Copies k columns of A, whose rows a multiple of 4 KiB apart would conflict in the cache. */
static void tile_gemm_copy_rows(size_t m, const float *a, size_t lda, size_t k, float *to)
{
    for (size_t i = 0; i < m; i++)
        memcpy(to + i * COPY_LD, a + i * lda, k * sizeof *to);
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
 * about this length follows. */
ISA_INLINE void run_block(size_t m, size_t n, size_t k0, size_t k, const float *a, size_t lda,
                          bool by_k, const struct tile_matrix *b, float *c, size_t ldc, bool add,
                          bool more)
{
    float block[BLOCK_K * TILE_COLUMNS] __attribute__((aligned(64)));

    for (size_t j = 0; j < n; j += TILE_COLUMNS) {
        const float *panel = b->data + j * b->ld + k0 * TILE_COLUMNS;
        if (!b->packed) {
            tile_gemm_make_panel(b, k0, k, j, block);
            panel = block;
        }
        tile_gemm_run_rows(m, a, lda, by_k, !by_k && !j, panel, k, c + j, ldc, add,
                           tile_gemm_later(b, k0, k, n, j + TILE_COLUMNS, more));
    }
}

/* Completes C from left to right: 14 rows of A stay in the first-level cache, the packed panels in
 * the second, and the next rows are fetched meanwhile. */
static void tile_gemm_run_panels(size_t m, size_t n, const float *a, size_t lda,
                                 const float *panels, size_t panel_ld, size_t k, float *c,
                                 size_t ldc, bool add)
{
    float copy[TILE_ROWS * COPY_LD] __attribute__((aligned(64)));
    size_t shares = (m + TILE_ROWS - 1) / TILE_ROWS, columns = n / TILE_COLUMNS;
    bool collide = lda % 1024 == 0 && columns > 1;

    for (size_t s = 0, row = 0; s < shares; s++) {
        size_t end = m * (s + 1) / shares, next = s + 1 < shares ? m * (s + 2) / shares - end : 0;
        const float *rows = a + row * lda;
        if (collide)
            tile_gemm_copy_rows(end - row, rows, lda, k, copy);
        for (size_t j = 0; j < columns; j++) {
            size_t from = next * j / columns, to = next * (j + 1) / columns;
            float *block = c + row * ldc + j * TILE_COLUMNS;
            struct fetch list[FETCHES_MAX], *last = list;
            last = tile_gemm_fetch_rows(last, a + (end + from) * lda, lda, to - from, k);
            if (j + 1 < columns)
                last =
                    tile_gemm_fetch_rows(last, block + TILE_COLUMNS, ldc, end - row, TILE_COLUMNS);
            else
                last = tile_gemm_fetch_rows(last, c + end * ldc, ldc, next, TILE_COLUMNS);
            *last = (struct fetch){panels + j * panel_ld, k + 1};
            by_rows[end - row](collide ? copy : rows, collide ? COPY_LD : lda,
                               panels + j * panel_ld, k, block, ldc, add, list);
        }
        row = end;
    }
}

/* Measured best: floats of panels in the second-level cache; rows from which that pays. */
enum { PANELS_FLOATS = 96 * 1024, MANY_ROWS = 256 };

static void gemm_by_panels(size_t m, size_t n, size_t k, const float *a, size_t lda,
                           const struct tile_matrix *b, float *c, size_t ldc, bool add)
{
    for (size_t k0 = 0; k0 < k; k0 += BLOCK_K) {
        size_t length = size_min(k - k0, BLOCK_K);
        size_t step = PANELS_FLOATS / length / TILE_COLUMNS * TILE_COLUMNS;
        for (size_t j = 0; j < n; j += step)
            tile_gemm_run_panels(m, size_min(n - j, step), a + k0, lda,
                                 b->data + j * b->ld + k0 * TILE_COLUMNS, b->ld * TILE_COLUMNS,
                                 length, c + j, ldc, add || k0);
    }
}

static void gemm_by_rows(size_t m, size_t n, size_t k, const float *a, size_t lda,
                         const struct tile_matrix *b, float *c, size_t ldc, bool add)
{
    float copy[COPY_ROWS * COPY_LD] __attribute__((aligned(64)));
    bool collide = lda % 1024 == 0 && n > TILE_COLUMNS;
    size_t step = collide ? COPY_ROWS : m;

    for (size_t row = 0; row < m; row += step)
        for (size_t k0 = 0; k0 < k; k0 += BLOCK_K) {
            size_t rows = size_min(m - row, step), length = size_min(k - k0, BLOCK_K);
            const float *block = a + row * lda + k0;
            if (collide)
                tile_gemm_copy_rows(rows, block, lda, length, copy);
            run_block(rows, n, k0, length, collide ? copy : block, collide ? COPY_LD : lda, false,
                      b, c + row * ldc, ldc, add || k0, k0 + BLOCK_K < k);
        }
}

void tile_gemm(size_t m, size_t n, size_t k, const float *a, size_t lda,
               const struct tile_matrix *b, float *c, size_t ldc, bool add)
{
    double piece = trace_begin();

    if (dry_run_products(m, n, k))
        return;
    if (b->packed && m >= MANY_ROWS)
        gemm_by_panels(m, n, k, a, lda, b, c, ldc, add);
    else
        gemm_by_rows(m, n, k, a, lda, b, c, ldc, add);
    trace_part(piece, TRACE_GEMM);
}

void tile_gemm_transposed(size_t m, size_t n, size_t k, const float *a, size_t lda,
                          const struct tile_matrix *b, float *c, size_t ldc, bool add)
{
    double piece = trace_begin();

    if (dry_run_products(m, n, k))
        return;
    for (size_t k0 = 0; m && (k0 < k || (!k0 && !add)); k0 += BLOCK_K)
        run_block(m, n, k0, size_min(k - k0, BLOCK_K), a + k0 * lda, lda, true, b, c, ldc,
                  add || k0, k0 + BLOCK_K < k);
    trace_part(piece, TRACE_GEMM);
}
