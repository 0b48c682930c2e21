/* A model for several sizes of images: which there are, and the change from one to another. */
#include "worker/model/internal.h"

static void keep_layout(struct model *m)
{
    struct layout *l = &m->layouts[m->layout];

    l->units = m->units;
    l->blocks = m->blocks;
    l->pool = m->pool;
    l->in = m->in;
    l->in_again = m->in_again;
    l->g_in = m->g_in;
    l->half.in = m->half.in;
    l->half.in_again = m->half.in_again;
    l->half.g_in = m->half.g_in;
    l->tap = m->tap;
}

void model_use_layout(struct model *m, int i)
{
    const struct layout *l = &m->layouts[i];

    if (i == m->layout)
        return;
    keep_layout(m);
    m->layout = i;
    m->units = l->units;
    m->blocks = l->blocks;
    m->pool = l->pool;
    m->in = l->in;
    m->in_again = l->in_again;
    m->g_in = l->g_in;
    m->half.in = l->half.in;
    m->half.in_again = l->half.in_again;
    m->half.g_in = l->half.g_in;
    m->tap = l->tap;
}

void model_use_size(struct model *m, int image_size)
{
    for (int i = 0; i < m->layout_count; i++)
        if (m->layouts[i].image_size == image_size) {
            model_use_layout(m, i);
            return;
        }
}

int model_size(const struct model *m)
{
    return m->layouts[m->layout].image_size;
}

static void list_layout(struct model *m, int size, bool predicts)
{
    for (int i = 0; i < m->layout_count; i++)
        if (m->layouts[i].image_size == size)
            return;
    m->layouts[m->layout_count++] = (struct layout){.image_size = size, .predicts = predicts};
}

void model_list_layouts(struct model *m)
{
    const struct model_config *c = &m->config;

    list_layout(m, c->image_size, c->inference);
    for (int i = 0; i < MODEL_SIZES_MAX && c->more_sizes[i]; i++)
        list_layout(m, c->more_sizes[i], c->inference);
    if (c->eval_size)
        list_layout(m, c->eval_size, true);
}
