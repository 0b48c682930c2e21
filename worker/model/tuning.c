#include "worker/model/tuning.h"

#include <stdio.h>
#include <string.h>

#include "worker/layers/conv_winograd.h"

static bool tuning_is_shape_of(const struct tuned_shape *s, const struct conv *c)
{
    return s->size == c->window.in && s->in_channels == c->window.channels &&
           s->out_channels == c->out_channels;
}

void model_tuning_apply(const struct model_tuning *tuning, struct conv *c)
{
    for (int i = 0; tuning && i < tuning->count; i++)
        if (tuning_is_shape_of(&tuning->shapes[i], c) && conv_winograd_takes(c))
            memcpy(c->winograd, tuning->shapes[i].winograd, sizeof c->winograd);
}

static void tuning_add_shape(const struct arch_conv *a, void *context)
{
    struct model_tuning *t = context;
    struct conv c = conv_make(a->in_size, a->in_channels, a->out_channels, a->kernel, a->stride,
                              a->padding, a->groups);

    if (!conv_winograd_takes(&c) || t->count == TUNED_SHAPES_MAX)
        return;
    for (int i = 0; i < t->count; i++)
        if (tuning_is_shape_of(&t->shapes[i], &c))
            return;
    t->shapes[t->count++] =
        (struct tuned_shape){a->in_size, a->in_channels, a->out_channels, a->groups, {0}};
}

void model_tuning_list(const struct model_config *c, struct model_tuning *t)
{
    struct arch_shape shape = model_shape(c);

    *t = (struct model_tuning){0};
    arch_each_conv(&shape, tuning_add_shape, t);
    for (int i = 0; i < MODEL_SIZES_MAX && c->more_sizes[i]; i++) {
        shape.image_size = c->more_sizes[i];
        arch_each_conv(&shape, tuning_add_shape, t);
    }
    shape.image_size = c->eval_size;
    if (c->eval_size)
        arch_each_conv(&shape, tuning_add_shape, t);
}

void model_tuning_to_text(const struct model_tuning *tuning, char text[TUNING_TEXT_BYTES])
{
    text[0] = '\0';
    for (int i = 0; i < tuning->count; i++) {
        const struct tuned_shape *s = &tuning->shapes[i];
        size_t used = strlen(text);
        snprintf(text + used, TUNING_TEXT_BYTES - used, "%s%dx%d-%d:%d/%d/%d", i ? " " : "",
                 s->size, s->in_channels, s->out_channels, (int)s->winograd[CONV_FORWARD],
                 (int)s->winograd[CONV_DATA], (int)s->winograd[CONV_WEIGHTS]);
    }
}

static bool tuning_has_shape(const struct model_tuning *tuning, const struct tuned_shape *s)
{
    for (int i = 0; i < tuning->count; i++) {
        const struct tuned_shape *t = &tuning->shapes[i];
        if (t->size == s->size && t->in_channels == s->in_channels &&
            t->out_channels == s->out_channels)
            return true;
    }
    return false;
}

int model_tuning_take(const struct model_config *config, const char *text,
                      struct model_tuning *tuning, struct error *e)
{
    struct model_tuning self;

    model_tuning_list(config, &self);
    if (model_tuning_from_text(text, tuning))
        return error_set(e, ERR_INVALID, "model.winograd_tiles cannot be read");
    for (int i = 0; i < self.count; i++) {
        const struct tuned_shape *s = &self.shapes[i];
        if (!tuning_has_shape(tuning, s))
            return error_set(e, ERR_INVALID,
                             "model.winograd_tiles does not name the convolution %dx%d-%d of this "
                             "network: take the words from the provenance of a run of it",
                             s->size, s->in_channels, s->out_channels);
    }
    for (int i = 0; i < tuning->count; i++) {
        const struct tuned_shape *s = &tuning->shapes[i];
        if (!tuning_has_shape(&self, s))
            return error_set(e, ERR_INVALID,
                             "model.winograd_tiles names the convolution %dx%d-%d, which this "
                             "network does not compute so",
                             s->size, s->in_channels, s->out_channels);
    }
    return 0;
}

int model_tuning_from_text(const char *text, struct model_tuning *tuning)
{
    struct model_tuning t = {0};
    int m[CONV_DIRECTIONS], length;

    while (*text) {
        struct tuned_shape *s = &t.shapes[t.count];
        if (t.count == TUNED_SHAPES_MAX ||
            sscanf(text, "%dx%d-%d:%d/%d/%d%n", &s->size, &s->in_channels, &s->out_channels,
                   &m[CONV_FORWARD], &m[CONV_DATA], &m[CONV_WEIGHTS], &length) != 6)
            return -1;
        for (int i = 0; i < CONV_DIRECTIONS; i++) {
            if (m[i] != CONV_NO_WINOGRAD && m[i] != CONV_WINOGRAD_2 && m[i] != CONV_WINOGRAD_4)
                return -1;
            s->winograd[i] = (enum conv_winograd)m[i];
        }
        s->groups = 1;
        t.count++;
        text += length;
        if (*text && *text++ != ' ')
            return -1;
    }
    *tuning = t;
    return 0;
}
