/*
 * The passes of a model with bf16 activations: from images to head, and from the head's gradient
 * to the images. What they share with fp32 (statistics, classifier, loss) is in internal.h.
 */
#pragma once

#include "worker/layers/conv_bf16.h"
#include "worker/model/internal.h"

void model_bf16_forward(struct model *m);
void model_bf16_backward(struct model *m, bool accumulate, const struct announcement *a);

/* A thread's lines of a unit's z, counted through the batch. */
static inline struct parallel_range model_bf16_lines(const struct model *m, const struct unit *u,
                                                     struct parallel_share share)
{
    return conv_bf16_lines(&u->conv, (size_t)m->n, share);
}

static inline struct conv_bf16_scratch model_bf16_scratch(const struct model *m,
                                                          struct parallel_share share)
{
    /* a dry run counts larger batches than the memory would hold */
    int images = m->n > m->layout->batch ? m->n : m->layout->batch;
    return (struct conv_bf16_scratch){m->own[share.part], (size_t)images, m->config.threads};
}

/* A thread's part of making model->packed; then all of it is there. */
void model_bf16_pack(struct model *m, const struct unit *u, enum conv_direction direction,
                     struct parallel_share share);
