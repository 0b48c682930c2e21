/* The order of the backward pass. A template for both precisions: the includer defines `number`,
 * TENSORS(owner) of a model, block or unit, and the team bodies below. */
#pragma once

#include "common/run/trace.h"
#include "worker/team/parallel.h"
#include "worker/model/units.h"

/* Destination of a gradient: its activation and the batch norms that made it */
struct target {
    const number *y;         /* NULL: the mask is scale z + shift > 0 */
    struct unit *unit;       /* NULL: no mask and no sums */
    struct unit *downsample; /* or NULL */
};

struct pass {
    struct model *m;
    struct unit *u;
    const void *x;            /* input of the convolution; of the first one float or bf16 */
    const number *g;          /* gradient of its normalised output */
    const struct unit *below; /* unit whose activation x is, to be recomputed; NULL: x exists */
    bool below_by_rows;       /* recompute with the rows of dz, instead of before the convolution */
    number *dz, *dx;          /* dz may share g's memory */
    double scale;             /* of the loss */
    bool add_dx, accumulate;
    struct target target; /* of dx */
};

struct run {
    struct model *m;
    int first, end; /* blocks */
};

static parallel_team_body walk_convolve;       /* a thread's part of both gradients of pass->u */
static parallel_team_body walk_derive;         /* recomputes the outputs of a run of blocks */
static parallel_team_body walk_spread_average; /* gradient of the last block's output */
static parallel_team_body
    walk_spread_maxima; /* gradient of the stem's activation from the pool's */

/* After a barrier, computes the gradients of the target's batch norms. */
static void walk_finish_target(const struct pass *p, struct parallel_share share)
{
    struct model *m = p->m;

    if (!p->target.unit)
        return;
    parallel_barrier(share);
    unit_finish_gradients(m, p->target.unit, m->n, false, p->accumulate, share);
    if (p->target.downsample)
        unit_finish_gradients(m, p->target.downsample, m->n, true, p->accumulate, share);
    unit_clear_sums(m, p->target.unit, share);
}

static const number *walk_block_input(const struct model *m, int i)
{
    return i ? TENSORS(&m->layout->blocks[i - 1])->out_again : TENSORS(m->layout)->in_again;
}

/* Both gradients of one unit, then those of the batch norms before it. */
static void walk_unit(struct pass *p, const struct announcement *a)
{
    double span = trace_begin();

    parallel_team(p->m->config.threads, walk_convolve, p);
    trace_end_layer(span, "backward", p->u->name, unit_flops(p->u, p->m->n) * (p->dx ? 2 : 1));
    model_announce(a, p->u->weight, p->u->grads_end);
}

/* Recomputes the outputs of blocks [first, end). */
static void walk_derive_run(struct model *m, int first, int end)
{
    struct run r = {m, first, end};
    double span = trace_begin();
    parallel_team(m->config.threads, walk_derive, &r);
    trace_end(span, "backward", "recompute", 0);
}

static struct target walk_target_of_block(const struct model *m, int i)
{
    const struct block *b = &m->layout->blocks[i];

    if (i < 0)
        return (struct target){.unit = m->pools ? NULL : &m->layout->units[0]};
    return (struct target){TENSORS(b)->out_again, block_last(m, b),
                           b->downsample >= 0 ? &m->layout->units[b->downsample] : NULL};
}

/* From the gradient of the block's output to that of its input. */
static void walk_block(struct model *m, int i, bool accumulate, const struct announcement *a)
{
    const struct block *b = &m->layout->blocks[i];
    number *g_in = i ? TENSORS(&m->layout->blocks[i - 1])->g : TENSORS(m->layout)->g_in;
    struct pass p = {.m = m, .g = TENSORS(b)->g, .accumulate = accumulate};

    if (b->derive >= 0)
        walk_derive_run(m, b->derive, i);
    if (b->downsample >= 0) {
        struct pass d = p;
        d.u = &m->layout->units[b->downsample];
        d.x = walk_block_input(m, i);
        d.dz = TENSORS(d.u)->dz;
        d.dx = g_in;
        walk_unit(&d, a);
    }
    for (int k = b->units - 1; k > 0; k--) {
        struct unit *below = &m->layout->units[b->first + k - 1];
        p.u = &m->layout->units[b->first + k];
        p.dz = TENSORS(p.u)->dz;
        p.below = below;
        p.x = TENSORS(below)->y_again;
        p.dx = TENSORS(below)->g;
        p.target = (struct target){NULL, below, NULL};
        walk_unit(&p, a);
        p.g = p.dx;
    }
    p.u = &m->layout->units[b->first];
    p.dz = TENSORS(p.u)->dz;
    p.below = NULL;
    p.x = walk_block_input(m, i);
    p.dx = g_in;
    p.add_dx = true; /* to the shortcut's gradient */
    p.target = walk_target_of_block(m, i - 1);
    walk_unit(&p, a);
}

static void walk_start_target(struct pass *p, parallel_team_body *body)
{
    double span = trace_begin();

    parallel_team(p->m->config.threads, body, p);
    trace_end(span, "backward", body == walk_spread_maxima ? "maxpool" : "avgpool, fc", 0);
}

static void walk_stem(struct model *m, bool accumulate, const struct announcement *a)
{
    struct unit *stem = &m->layout->units[0];
    struct pass p = {.m = m, .accumulate = accumulate};

    if (m->pools) {
        p.g = TENSORS(m->layout)->g_in;
        p.dx = TENSORS(stem)->g;
        p.target.unit = stem;
        walk_start_target(&p, walk_spread_maxima);
    }
    struct pass last = {.m = m,
                        .u = stem,
                        .x = m->images,
                        .g = TENSORS(stem)->g,
                        .dz = TENSORS(stem)->dz,
                        .accumulate = accumulate};
    walk_unit(&last, a);
}

/* From m->d_head, the gradient of the averages, to the stem's weights. */
static void walk_back(struct model *m, bool accumulate, const struct announcement *a)
{
    int last = m->block_count - 1;

    walk_start_target(&(struct pass){.m = m,
                                     .accumulate = accumulate,
                                     .dx = TENSORS(&m->layout->blocks[last])->g,
                                     .target = walk_target_of_block(m, last)},
                      walk_spread_average);
    for (int i = last; i >= 0; i--)
        walk_block(m, i, accumulate, a);
    walk_stem(m, accumulate, a);
}
