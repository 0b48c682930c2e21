#include "worker/kernels/bf16_vec.h"
#include "worker/layers/bf16/conv_bf16.h"
#include "worker/layers/bf16/conv_bf16_parts.h"
#include "worker/layers/bf16/conv_bf16_rows.h"
#include "worker/team/dry_run.h"

/* A piece of images as rows of phase fy, with all columns of a row side by side: (phases,
 * positions, stride, ci). Returns the elements of a phase. */
static size_t conv_bf16_first_lay(const struct bf16_grid *g, const void *x, bool bf16_x,
                                  struct bf16_piece p, bf16 *to)
{
    size_t line = g->width * g->stride * g->ci, lead = g->pad * g->ci, pixels = g->in * g->ci;
    size_t size = bf16_grid_laid(g, p.rows * g->width) * g->stride * g->ci;
    size_t last = p.row + p.rows + bf16_rows_behind(g, p, bf16_grid_reach(g, 0));

    if (dry_run_moves_bf16(2 * g->phases * size))
        return size;
    pixels = size_min(pixels, line - lead);
    for (size_t f = 0; f < g->phases; f++) {
        bf16 *at = to + f * size;
        bf16_zero(at, size);
        for (size_t r = p.row; r < last; r++, at += line) {
            size_t y = r % g->width * g->stride + f - g->pad;
            size_t from = (r / g->width * g->in + y) * g->in * g->ci;
            if (y < g->in && bf16_x)
                memcpy(at + lead, (const bf16 *)x + from, pixels * sizeof *at);
            else if (y < g->in)
                bf16_from_floats((const float *)x + from, pixels, at + lead);
        }
    }
    return size;
}

void bf16_forward_first(const struct bf16_grid *g, const struct bf16_scratch *s, const bf16 *packed,
                        const void *x, bool bf16_x, bf16 *z, struct bf16_piece piece)
{
    size_t phase = conv_bf16_first_lay(g, x, bf16_x, piece, s->x), n = bf16_row_chunks(g);
    struct bf16_place place = {g->out, 1, 0, 0, g->out, g->out, g->width};

    for (size_t ky = 0; ky < g->kernel; ky++)
        for (size_t i = 0; i < n; i++)
            s->chunk[ky * n + i] =
                ky % g->stride * phase + ky / g->stride * g->width * g->stride * g->ci + i * 32;
    bf16_find_pixels(&place, piece, s->pixel);
    bf16_multiply_rows(&(struct bf16_rows){
        .p = {s->x, g->stride * g->ci, s->chunk, g->kernel * n, packed},
        .positions = piece.rows * g->width,
        .columns = g->co,
        .panel = g->kernel * n * BF16_CHUNK_SIZE,
        .pixel = s->pixel,
        .to = z,
        .g = g,
        .base = bf16_base_in
    });
}

/* Each column of each remainder by the stride by itself: (phases, stride, ci, ld). */
static void conv_bf16_first_turn(const struct bf16_grid *g, const struct bf16_scratch *s,
                                 size_t phase, size_t n)
{
    if (dry_run_moves_bf16(2 * g->phases * g->stride * g->ci * n))
        return;
    for (size_t f = 0; f < g->phases; f++)
        for (size_t i = 0; i < g->stride * g->ci; i++) {
            const bf16 *from = s->x + f * phase + i;
            bf16 *to = s->x_columns + (f * g->stride * g->ci + i) * s->ld;
            for (size_t q = 0; q < n; q++)
                to[q] = from[q * g->stride * g->ci];
        }
}

/* The rows of dw's left side, as im2col's columns: from position k0 on. */
static void first_rows(const struct bf16_grid *g, const struct bf16_scratch *s, size_t k0, size_t k,
                       bf16 *to, size_t ld)
{
    size_t rows = g->kernel * g->kernel * g->ci;

    if (dry_run_moves_bf16(2 * rows * k))
        return;
    for (size_t r = 0; r < bf16_first_layer_rows(g); r++, to += ld) {
        size_t c = r % g->ci, kx = r / g->ci % g->kernel, ky = r / g->ci / g->kernel;
        size_t column = (ky % g->stride * g->stride + kx % g->stride) * g->ci + c;
        if (r < rows)
            memcpy(to,
                   s->x_columns + column * s->ld + ky / g->stride * g->width + kx / g->stride + k0,
                   k * sizeof *to);
        else
            bf16_zero(to, k);
    }
}

/* Positions [k0, k0 + k) of a piece of dz, and zeros behind it. */
static void conv_bf16_first_lay_dz(const struct bf16_grid *g, const bf16 *dz, struct bf16_piece p,
                                   size_t k0, size_t k, bf16 *to)
{
    if (dry_run_moves_bf16(2 * k * g->co))
        return;
    for (size_t q = k0; q < k0 + k; q++, to += g->co) {
        size_t row = p.row + q / g->width, x = q % g->width, y = row % g->width;
        if (row < p.row + p.rows && y < g->out && x < g->out)
            memcpy(to, dz + ((row / g->width * g->out + y) * g->out + x) * g->co,
                   g->co * sizeof *to);
        else
            bf16_zero(to, g->co);
    }
}

static void conv_bf16_first_sum(const struct bf16_grid *g, const struct bf16_scratch *s,
                                const struct conv_bf16_backward *b, struct bf16_piece p, bool add)
{
    size_t phase = conv_bf16_first_lay(g, b->x, b->bf16_x, p, s->x),
           n = bf16_round_up(p.rows * g->width, 32);

    conv_bf16_first_turn(g, s, phase, bf16_grid_laid(g, n) - BF16_CHUNK);
    for (size_t i = 0; i < size_min(n, BF16_BLOCK_POSITIONS) / 32 && !dry_run; i++)
        s->block[i] = 32 * i;
    for (size_t k0 = 0; k0 < n; k0 += BF16_BLOCK_POSITIONS) {
        size_t k = size_min(n - k0, BF16_BLOCK_POSITIONS);
        first_rows(g, s, k0, k, s->left, BF16_LEFT_LD);
        conv_bf16_first_lay_dz(g, b->dz, p, k0, k, s->dz);
        bf16_pack_dz(g, s->dz, k, s->tail, s->dz_panels);
        if (dry_run_products(bf16_first_layer_rows(g), g->co, k))
            continue;
        for (size_t j = 0; j < g->co / 32; j++)
            for (size_t r = 0; r < bf16_first_layer_rows(g); r += 32)
                bf16_multiply(&(struct bf16_product){s->left + r * BF16_LEFT_LD, BF16_LEFT_LD,
                                                     s->block, k / 32,
                                                     s->dz_panels + j * k * BF16_COLUMNS},
                              32, s->dw + r * g->co + j * 32, g->co, add || k0);
    }
}

void bf16_backward_first(const struct bf16_grid *g, const struct bf16_scratch *s,
                         const struct conv_bf16_backward *b, size_t first, size_t end)
{
    size_t weights = g->kernel * g->kernel * g->ci * g->co;
    size_t start = bf16_grid_row(g, first), last = bf16_grid_row(g, end);
    struct bf16_piece p;

    for (size_t row = start; row < last; row += p.rows) {
        p = bf16_next_piece(g, row, size_min(last, (row / g->width + 1) * g->width));
        size_t line = bf16_grid_line(g, row, g->out, 1);
        size_t lines = bf16_grid_line(g, row + p.rows, g->out, 1) - line;
        if (b->ready && lines)
            b->ready(line * g->out, lines * g->out, b->context);
        conv_bf16_first_sum(g, s, b, p, row > start);
    }
    for (size_t i = 0; i < weights && !dry_run; i++)
        b->dw[i] = b->add_dw ? b->dw[i] + s->dw[i] : s->dw[i];
}
