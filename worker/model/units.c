/* The memory of a model, counted, and its units: for models with blocks and cnn. */
#include <stdlib.h>
#include <string.h>

#include "worker/layers/conv_grouped.h"
#include "worker/model/internal.h"
#include "worker/model/tune.h"
#include "worker/team/memory.h"

void *model_count_memory(struct model *m, void *p, size_t bytes, struct error *e)
{
    if (!p) {
        error_set(e, ERR_NO_MEMORY,
                  "no memory for the model: %zu MiB more are needed beside %zu MiB", bytes >> 20,
                  m->memory_bytes >> 20);
        return NULL;
    }
    m->memory_bytes += bytes;
    return p;
}

void *model_allocate(struct model *m, size_t bytes, struct error *e)
{
    return model_count_memory(m, memory_allocate(bytes), bytes, e);
}

void *model_allocate_shared(struct model *m, size_t bytes, struct error *e)
{
    struct memory_extent all = {0, bytes};

    return model_count_memory(m, memory_allocate_shared(bytes, &all, 1, m->config.threads), bytes,
                              e);
}

struct unit model_make_unit(const struct arch_conv *c, const struct model_config *config)
{
    struct unit u = {.conv = conv_make(c->in_size, c->in_channels, c->out_channels, c->kernel,
                                       c->stride, c->padding, c->groups)};
    memcpy(u.name, c->name, sizeof u.name);
    memcpy(u.bn_name, c->bn_name, sizeof u.bn_name);
    model_tuning_apply(config->tuning, &u.conv);
    conv_choose_gemm(&u.conv, config->gemm);
    return u;
}

int model_make_units(struct model *m, const struct arch_conv *convs, int count, struct error *e)
{
    m->layout->units = calloc((size_t)count, sizeof *m->layout->units);
    m->lanes = calloc((size_t)parallel_lanes(m->config.threads), sizeof *m->lanes);
    m->dw = calloc((size_t)m->config.threads, sizeof *m->dw);
    m->own = calloc((size_t)m->config.threads, sizeof *m->own);
    if (!m->layout->units || !m->lanes || !m->dw || !m->own)
        return error_set(e, ERR_NO_MEMORY, "no memory for a model's layers");
    for (m->unit_count = 0; m->unit_count < count; m->unit_count++)
        m->layout->units[m->unit_count] = model_make_unit(&convs[m->unit_count], &m->config);
    return 0;
}
