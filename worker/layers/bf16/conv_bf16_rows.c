#include "worker/layers/bf16/conv_bf16_rows.h"

#include "worker/kernels/bf16_vec.h"
#include "worker/team/dry_run.h"

BF16_INLINE void store_rows(const struct bf16_rows *r, const float *block, size_t q, size_t rows,
                            size_t j, bool native)
{
    for (size_t i = 0; i < rows; i++, block += BF16_COLUMNS) {
        int64_t pixel = r->pixel ? r->pixel[q + i] : (int64_t)(q + i);
        if (pixel < 0)
            continue;
        bf16 *to = r->to + (size_t)pixel * r->columns + j * BF16_COLUMNS;
        for (size_t k = 0; k < BF16_COLUMNS; k += VEC) {
            vec v = vec_load(block + k);
            if (r->add)
                v += vec_load_bf16(to + k);
            vec_store_bf16(to + k, v, native);
        }
    }
}

/* What is filled in part takes as long as a full one. */
enum { HALF_TILE = BF16_ROWS / 2 };

/* A panel stays in the first-level cache while the positions pass. */
void bf16_multiply_rows(const struct bf16_rows *r)
{
    float block[BF16_ROWS * BF16_COLUMNS] __attribute__((aligned(64)));
    struct bf16_product p = r->p;

    if (dry_run_products(bf16_round_up(r->positions, HALF_TILE), r->columns, p.chunks * BF16_CHUNK))
        return;
    for (size_t j = 0; j < r->columns / BF16_COLUMNS; j++) {
        const bf16 *a = r->p.a + r->base(r->g, j);
        p.panel = r->p.panel + j * r->panel;
        for (size_t q = 0; q < r->positions; q += BF16_ROWS) {
            size_t left = r->exact ? r->positions - q : bf16_round_up(r->positions - q, HALF_TILE);
            size_t rows = size_min(left, BF16_ROWS);
            p.a = a + q * p.row;
            bf16_multiply(&p, rows, block, BF16_COLUMNS, false);
            if (bf16_converts())
                store_rows(r, block, q, rows, j, true);
            else
                store_rows(r, block, q, rows, j, false);
        }
    }
}
