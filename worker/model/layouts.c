/* A model for several sizes of images: which there are, and the change from one to another. */
#include "worker/model/internal.h"

void model_use_size(struct model *m, int image_size)
{
    for (int i = 0; i < m->layout_count; i++)
        if (m->layouts[i].image_size == image_size) {
            m->layout = &m->layouts[i];
            return;
        }
}

static void layouts_list(struct model *m, int size, int batch, bool predicts)
{
    for (int i = 0; i < m->layout_count; i++)
        if (m->layouts[i].image_size == size)
            return;
    m->layouts[m->layout_count++] =
        (struct layout){.image_size = size, .batch = batch, .predicts = predicts};
    m->most_images = batch > m->most_images ? batch : m->most_images;
}

void model_list_layouts(struct model *m)
{
    const struct model_config *c = &m->config;

    layouts_list(m, c->image_size, c->batch, c->inference);
    for (int i = 0; i < MODEL_SIZES_MAX && c->more_sizes[i]; i++)
        layouts_list(m, c->more_sizes[i], c->more_batches[i] ? c->more_batches[i] : c->batch,
                     c->inference);
    if (c->eval_size)
        layouts_list(m, c->eval_size, c->batch, true);
    m->layout = &m->layouts[0];
}
