#include "common/net/activations.h"

#include <stdbool.h>
#include <stdlib.h>

#include "common/assert_always.h"

enum { MOST_IN_RUN = 4, ALIGNMENT = 64 /* in bytes: a cache line */ };

struct walk {
    const struct network *n;
    struct activations *a;
    size_t number_bytes;
    int now;
};

static int activations_walk_add(struct walk *w, size_t numbers)
{
    struct activations *a = w->a;
    size_t line = ALIGNMENT / w->number_bytes;

    assert_always(a->count < ARENA_BUFFERS);
    numbers = (numbers + line - 1) / line * line;
    a->buffers[a->count] = (struct arena_buffer){.size = numbers, .first = -1};
    return a->count++;
}

static int activations_add_like(struct walk *w, int unit)
{
    return activations_walk_add(w, network_floats(&w->n->convs[unit]));
}

static int activations_add_filtered(struct walk *w, int unit)
{
    const struct arch_conv *c = &w->n->convs[unit];
    return activations_walk_add(w, (size_t)(c->in_size * c->in_size * c->in_channels));
}

static void activations_walk_use(struct walk *w, int buffer)
{
    if (buffer < 0)
        return;
    struct arena_buffer *b = &w->a->buffers[buffer];
    if (b->first < 0)
        b->first = w->now;
    b->last = w->now;
}

static bool activations_is_inner(const struct network *n, int unit)
{
    for (int i = 0; i < n->block_count; i++)
        if (unit == network_block_last(&n->blocks[i]) || unit == n->blocks[i].downsample)
            return false;
    return true;
}

static void activations_add_units(struct walk *w, bool inference)
{
    for (int i = 0; i < w->n->conv_count; i++) {
        struct activation_unit *u = &w->a->units[i];
        *u = (struct activation_unit){activations_add_like(w, i), -1, -1, -1, -1, -1, -1, -1};
        if (w->n->convs[i].blur_size)
            u->x = activations_add_filtered(w, i);
        if (inference || i < w->n->frozen_convs)
            continue;
        if (u->x >= 0) {
            u->x_again = activations_add_filtered(w, i);
            u->g_x = activations_add_filtered(w, i);
        }
        if (!activations_is_inner(w->n, i)) {
            u->dz = activations_add_like(w, i);
            continue;
        }
        u->y = activations_add_like(w, i);
        u->g = u->dz = activations_add_like(w, i);
        u->y_again = i == 0 && w->n->pools ? -1 : activations_add_like(w, i);
    }
}

static int activations_stage_end(const struct network *n, int i)
{
    for (i++; i < n->block_count && n->blocks[i].downsample < 0; i++)
        ;
    return i;
}

/* Divides a stage's outputs into runs of similar length; the end of each but the last is kept. */
static void activations_cut_stage(struct walk *w, int first, int end)
{
    struct activation_block *b = w->a->blocks;
    int blocks = end - first, runs = (blocks + MOST_IN_RUN - 1) / MOST_IN_RUN;

    for (int r = 0, from = first; r < runs; r++) {
        int behind = first + blocks * (r + 1) / runs;
        bool kept = r < runs - 1;
        for (int i = from; i < behind; i++)
            b[i].out_again = kept && i == behind - 1
                                 ? b[i].out
                                 : activations_add_like(w, network_block_last(&w->n->blocks[i]));
        if (!kept || behind - 1 > from)
            b[kept ? behind - 1 : behind].derive = from;
        from = behind;
    }
}

static void activations_add_outputs(struct walk *w)
{
    const struct network *n = w->n;
    struct activation_block *b = w->a->blocks;

    if (n->frozen_blocks)
        b[n->frozen_blocks - 1].out_again =
            w->a->units[network_block_last(&n->blocks[n->frozen_blocks - 1])].z;
    for (int i = n->frozen_blocks; i < n->block_count; i++)
        b[i].out = activations_add_like(w, network_block_last(&n->blocks[i]));
    for (int i = n->frozen_blocks, end; i < n->block_count; i = end) {
        end = activations_stage_end(n, i);
        if (end < n->block_count)
            activations_cut_stage(w, i, end);
        else
            for (; i < end; i++)
                b[i].out_again = b[i].out;
    }
}

/* The gradient of an output becomes that of the input, in place, unless a shortcut changes the
 * shape. Such a block needs the gradient until its last unit, which may overwrite it. */
static void activations_add_gradients(struct walk *w)
{
    const struct network *n = w->n;
    struct activations *a = w->a;

    for (int i = n->block_count - 1; i >= n->frozen_blocks; i--) {
        const struct network_block *b = &n->blocks[i];
        bool goes_on = i + 1 < n->block_count && n->blocks[i + 1].downsample < 0;
        int last = network_block_last(b);
        a->blocks[i].g = goes_on ? a->blocks[i + 1].g : activations_add_like(w, last);
        if (b->downsample >= 0)
            a->units[last].dz = a->blocks[i].g;
    }
}

/* evaluates: the stem needs no backward. */
static void activations_add_input(struct walk *w, bool evaluates)
{
    const struct network *n = w->n;
    struct activations *a = w->a;
    size_t numbers =
        (size_t)n->pooled_size * (size_t)n->pooled_size * (size_t)n->convs[0].out_channels;
    size_t maxima = n->blurs ? network_floats(&n->convs[0]) : numbers;

    bool goes_on = n->blocks[0].downsample <
                   0; /* whether the gradient continues, as in activations_add_gradients */

    if (!n->pools) {
        a->in = evaluates ? a->units[0].z : a->units[0].y;
        a->in_again = evaluates ? a->in : a->units[0].y_again;
        if (!evaluates && goes_on)
            a->units[0].g = a->units[0].dz = a->blocks[0].g;
        a->g_in = a->units[0].g;
        return;
    }
    a->in = a->in_again = activations_walk_add(w, numbers);
    a->maxima = n->blurs ? activations_walk_add(w, maxima) : -1;
    if (evaluates)
        return;
    a->g_maxima = n->blurs ? activations_walk_add(w, maxima) : -1;
    a->tap = activations_walk_add(w, (maxima + w->number_bytes - 1) / w->number_bytes);
    a->g_in = goes_on ? a->blocks[0].g : activations_walk_add(w, numbers);
}

/* Marks the use of a unit's z, and in training of its y in a later pass. */
static void activations_forward_unit(struct walk *w, int unit, int in)
{
    w->now++;
    activations_walk_use(w, in);
    if (w->a->units[unit].x >= 0) {
        activations_walk_use(w, w->a->units[unit].x);
        w->now++;
        activations_walk_use(w, w->a->units[unit].x);
    }
    activations_walk_use(w, w->a->units[unit].z);
    if (w->a->units[unit].y < 0)
        return;
    w->now++;
    activations_walk_use(w, w->a->units[unit].z);
    activations_walk_use(w, w->a->units[unit].y);
}

static int activations_forward_block(struct walk *w, int i, int in)
{
    const struct network_block *b = &w->n->blocks[i];
    const struct activations *a = w->a;
    int last = network_block_last(b), out = a->blocks[i].out, x = in;

    if (b->downsample >= 0)
        activations_forward_unit(w, b->downsample, in);
    for (int u = b->first; u <= last; u++) {
        activations_forward_unit(w, u, x);
        x = a->units[u].y >= 0 ? a->units[u].y : a->units[u].z;
    }
    if (out >= 0)
        w->now++; /* otherwise normalised in the convolution's tiles */
    activations_walk_use(w, a->units[last].z);
    activations_walk_use(w, b->downsample >= 0 ? a->units[b->downsample].z : in);
    activations_walk_use(w, out);
    return out >= 0 ? out : a->units[last].z;
}

static void activations_walk_forward(struct walk *w)
{
    const struct activations *a = w->a;
    int in = a->in;

    activations_forward_unit(w, 0, -1);
    if (w->n->pools) {
        w->now++;
        activations_walk_use(w, a->units[0].y >= 0 ? a->units[0].y : a->units[0].z);
        activations_walk_use(w, a->tap);
        activations_walk_use(w, a->maxima);
        w->now += w->n->blurs;
        activations_walk_use(w, a->maxima);
        activations_walk_use(w, a->in);
    }
    for (int i = 0; i < w->n->block_count; i++)
        in = activations_forward_block(w, i, in);
    w->now++;
    activations_walk_use(w, in);
}

/* Marks the use of the tensor that masks the gradient of a block's output and receives its sums. */
static void activations_use_target(struct walk *w, int block)
{
    const struct network_block *b = &w->n->blocks[block];

    activations_walk_use(w, w->a->blocks[block].out_again);
    activations_walk_use(w, w->a->units[network_block_last(b)].z);
    if (b->downsample >= 0)
        activations_walk_use(w, w->a->units[b->downsample].z);
}

static void activations_walk_derive(struct walk *w, int first, int end)
{
    const struct activations *a = w->a;

    w->now++;
    if (first == 0 && !w->n->pools)
        activations_walk_use(w, a->units[0].z);
    activations_walk_use(w, first ? a->blocks[first - 1].out_again : a->in_again);
    for (int i = first; i < end; i++)
        activations_use_target(w, i);
}

static void activations_backward_unit(struct walk *w, int unit, int g, int x, int dx)
{
    const struct activation_unit *u = &w->a->units[unit];
    bool filters = u->x_again >= 0, filters_back = filters && dx >= 0;

    w->now++;
    activations_walk_use(w, x);
    if (filters) {
        activations_walk_use(w, u->x_again);
        w->now++;
    }
    activations_walk_use(w, g);
    activations_walk_use(w, u->z);
    activations_walk_use(w, u->dz);
    activations_walk_use(w, u->x_again);
    activations_walk_use(w, filters_back ? u->g_x : dx);
    if (!filters_back)
        return;
    w->now++;
    activations_walk_use(w, u->g_x);
    activations_walk_use(w, dx);
}

static void activations_backward_block(struct walk *w, int i)
{
    const struct network_block *b = &w->n->blocks[i];
    const struct activations *a = w->a;
    int in = i ? a->blocks[i - 1].out_again : a->in_again, g_in = i ? a->blocks[i - 1].g : a->g_in;
    int g = a->blocks[i].g;

    if (a->blocks[i].derive >= 0)
        activations_walk_derive(w, a->blocks[i].derive, i);
    if (b->downsample >= 0)
        activations_backward_unit(w, b->downsample, g, in, g_in);
    for (int u = network_block_last(b); u > b->first; u--) {
        activations_backward_unit(w, u, g, a->units[u - 1].y_again, a->units[u - 1].g);
        activations_walk_use(w, a->units[u - 1].z);
        g = a->units[u - 1].g;
    }
    activations_backward_unit(w, b->first, g, in, g_in);
    if (i > w->n->frozen_blocks)
        activations_use_target(w, i - 1);
    else if (!w->n->pools && !w->n->frozen_convs)
        activations_walk_use(w, a->units[0].z);
}

static void activations_walk_backward(struct walk *w)
{
    const struct activations *a = w->a;
    int blocks = w->n->block_count;

    if (w->n->frozen_blocks == blocks)
        return;
    w->now++;
    activations_walk_use(w, a->blocks[blocks - 1].g);
    activations_use_target(w, blocks - 1);
    for (int i = blocks - 1; i >= w->n->frozen_blocks; i--)
        activations_backward_block(w, i);
    if (w->n->frozen_convs)
        return;
    if (w->n->pools) {
        w->now++;
        activations_walk_use(w, a->g_in);
        activations_walk_use(w, a->g_maxima);
        w->now += w->n->blurs;
        activations_walk_use(w, a->g_maxima);
        activations_walk_use(w, a->tap);
        activations_walk_use(w, a->units[0].z);
        activations_walk_use(w, a->units[0].g);
    }
    activations_backward_unit(w, 0, a->units[0].g, -1, -1);
}

static void activations_drop_unused(struct activations *a)
{
    for (int i = 0; i < a->count; i++)
        if (a->buffers[i].first < 0)
            a->buffers[i].size = 0;
}

void activations_plan(const struct network *network, bool inference, size_t number_bytes,
                      struct activations *out)
{
    struct walk w = {.n = network, .a = out, .number_bytes = number_bytes};

    out->count = 0;
    out->tap = out->g_in = out->maxima = out->g_maxima = -1;
    for (int i = 0; i < network->block_count; i++)
        out->blocks[i] = (struct activation_block){-1, -1, -1, -1};
    activations_add_units(&w, inference);
    if (!inference) {
        activations_add_outputs(&w);
        activations_add_gradients(&w);
    }
    activations_add_input(&w, inference || network->frozen_convs);
    activations_walk_forward(&w);
    if (!inference)
        activations_walk_backward(&w);
    activations_drop_unused(out);
    out->numbers = arena_place(out->buffers, out->count);
}

static int activations_arena_compare_size(const void *x, const void *y)
{
    const struct arena_buffer *a = *(struct arena_buffer *const *)x,
                              *b = *(struct arena_buffer *const *)y;
    if (a->size != b->size)
        return a->size > b->size ? -1 : 1;
    return (a->first > b->first) - (a->first < b->first);
}

static bool activations_arena_live_together(const struct arena_buffer *a,
                                            const struct arena_buffer *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* Returns the offset of the lowest gap between buffers that are alive. `placed` is sorted. */
static size_t activations_arena_lowest_gap(const struct arena_buffer *b,
                                           struct arena_buffer *const *placed, int count)
{
    size_t at = 0;

    for (int i = 0; i < count; i++) {
        const struct arena_buffer *p = placed[i];
        if (!activations_arena_live_together(b, p))
            continue;
        if (p->offset >= at + b->size)
            break;
        if (p->offset + p->size > at)
            at = p->offset + p->size;
    }
    return at;
}

size_t arena_place(struct arena_buffer *buffers, int count)
{
    struct arena_buffer *order[ARENA_BUFFERS], *placed[ARENA_BUFFERS];
    size_t end = 0;

    assert_always(count <= ARENA_BUFFERS);
    for (int i = 0; i < count; i++)
        order[i] = &buffers[i];
    qsort(order, (size_t)count, sizeof order[0], activations_arena_compare_size);
    for (int i = 0; i < count; i++) {
        struct arena_buffer *b = order[i];
        int at = i;
        b->offset = activations_arena_lowest_gap(b, placed, i);
        for (; at > 0 && placed[at - 1]->offset > b->offset; at--)
            placed[at] = placed[at - 1];
        placed[at] = b;
        if (b->offset + b->size > end)
            end = b->offset + b->size;
    }
    return end;
}
