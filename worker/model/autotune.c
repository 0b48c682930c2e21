#include "worker/model/autotune.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/run/stall_report.h"
#include "common/system/file.h"
#include "common/system/host.h"
#include "config.h"
#include "worker/kernels/gemm.h"
#include "worker/layers/conv_winograd.h"
#include "worker/team/memory.h"
#include "worker/team/parallel.h"

enum { ROUNDS = 2 };

/* Flops of one direct pass: enough to amortise reading the weights, as in a batch. */
#define TRIAL_FLOPS 3e9

/* A way with larger rounding errors must be this much faster. */
#define MARGIN 0.9

static const enum conv_winograd ways[] = {CONV_NO_WINOGRAD, CONV_WINOGRAD_2, CONV_WINOGRAD_4};
enum { WAYS = sizeof ways / sizeof ways[0] };

static bool autotune_is_shape_of(const struct tuned_shape *s, const struct conv *c)
{
    return s->size == c->window.in && s->in_channels == c->window.channels &&
           s->out_channels == c->out_channels;
}

void model_tuning_apply(const struct model_tuning *tuning, struct conv *c)
{
    for (int i = 0; tuning && i < tuning->count; i++)
        if (autotune_is_shape_of(&tuning->shapes[i], c) && conv_winograd_takes(c))
            memcpy(c->winograd, tuning->shapes[i].winograd, sizeof c->winograd);
}

static void autotune_add_shape(const struct arch_conv *a, void *context)
{
    struct model_tuning *t = context;
    struct conv c = conv_make(a->in_size, a->in_channels, a->out_channels, a->kernel, a->stride,
                              a->padding, a->groups);

    if (!conv_winograd_takes(&c) || t->count == TUNED_SHAPES_MAX)
        return;
    for (int i = 0; i < t->count; i++)
        if (autotune_is_shape_of(&t->shapes[i], &c))
            return;
    t->shapes[t->count++] =
        (struct tuned_shape){a->in_size, a->in_channels, a->out_channels, a->groups, {0}};
}

void model_tuning_list(const struct model_config *c, struct model_tuning *t)
{
    struct arch_shape shape = model_shape(c);

    *t = (struct model_tuning){0};
    arch_each_conv(&shape, autotune_add_shape, t);
    for (int i = 0; i < MODEL_SIZES_MAX && c->more_sizes[i]; i++) {
        shape.image_size = c->more_sizes[i];
        arch_each_conv(&shape, autotune_add_shape, t);
    }
    shape.image_size = c->eval_size;
    if (c->eval_size)
        arch_each_conv(&shape, autotune_add_shape, t);
}

struct trial {
    struct conv c;
    int images;
    float *x, *w, *z, *dx, *dw;
    float *own;
    struct conv_memory memory;
};

static float *autotune_filled(size_t floats)
{
    float *p = memory_allocate(floats * sizeof *p);
    for (size_t i = 0; p && i < floats; i++)
        p[i] = 0.5f;
    return p;
}

/* Memory of a single thread for any of the ways. */
static void autotune_allocate_memory(struct trial *t)
{
    struct conv_memory *m = &t->memory;

    *m = (struct conv_memory){.own = &t->own, .threads = 1};
    for (int i = 0; i < WAYS; i++) {
        struct conv c = t->c;
        for (int k = 0; k < CONV_DIRECTIONS; k++)
            c.winograd[k] = ways[i];
        m->team_floats = size_max(m->team_floats, conv_team_floats(&c, t->images, 1));
        m->own_floats = size_max(m->own_floats, conv_own_floats(&c, 1));
    }
    m->team = autotune_filled(m->team_floats);
    t->own = autotune_filled(m->own_floats);
}

static bool autotune_make_trial(struct trial *t)
{
    size_t pixels =
        (size_t)t->images * (size_t)t->c.window.in * (size_t)t->c.window.in; /* in and out */
    size_t in = pixels * (size_t)t->c.window.channels, out = pixels * (size_t)t->c.out_channels;

    t->x = autotune_filled(in);
    t->dx = autotune_filled(in);
    t->z = autotune_filled(out);
    t->w = autotune_filled(conv_weights(&t->c));
    t->dw = autotune_filled(conv_weights(&t->c));
    autotune_allocate_memory(t);
    return t->x && t->dx && t->z && t->w && t->dw && t->memory.team && t->own;
}

enum pass { PASS_FORWARD, PASS_WEIGHTS, PASS_BACKWARD };

struct timed_pass {
    const struct trial *trial;
    enum pass pass;
};

static void autotune_run_pass(struct parallel_share share, void *context)
{
    const struct timed_pass *p = context;
    const struct trial *t = p->trial;
    struct conv_backward b = {.w = t->w,
                              .x = t->x,
                              .dz = t->z,
                              .dx = p->pass == PASS_BACKWARD ? t->dx : NULL,
                              .dw = t->dw};

    if (p->pass == PASS_FORWARD)
        conv_forward(&t->c, t->w, t->x, t->z, t->images, share, &t->memory, NULL, NULL);
    else
        conv_backward(&t->c, &b, t->images, share, &t->memory);
}

/* Processor time, which excludes most effects of neighbours. */
static double autotune_processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Measures all ways of one direction in turn and sets the best one; returns its seconds, of which
 * `fixed` do not depend on the way. */
static double autotune_choose(struct trial *t, enum conv_direction direction, enum pass pass,
                              double fixed)
{
    double best[WAYS] = {INFINITY, INFINITY, INFINITY};
    int chosen = 0;

    for (int i = 0; i < ROUNDS * WAYS; i++) {
        struct timed_pass p = {t, pass};
        t->c.winograd[direction] = ways[i % WAYS];
        double start = autotune_processor_seconds();
        parallel_team(1, autotune_run_pass, &p);
        stall_progress_add(1);
        best[i % WAYS] = fmin(best[i % WAYS], autotune_processor_seconds() - start);
    }
    for (int i = 1; i < WAYS; i++)
        if (best[i] - fixed < MARGIN * (best[chosen] - fixed))
            chosen = i;
    t->c.winograd[direction] = ways[chosen];
    return best[chosen];
}

static void autotune_measure(struct tuned_shape *s, int images)
{
    struct trial t = {.c = conv_make(s->size, s->in_channels, s->out_channels, 3, 1, 1, s->groups),
                      .images = images};

    if (autotune_make_trial(&t)) {
        autotune_choose(&t, CONV_FORWARD, PASS_FORWARD, 0);
        double weights = autotune_choose(&t, CONV_WEIGHTS, PASS_WEIGHTS, 0);
        autotune_choose(&t, CONV_DATA, PASS_BACKWARD, weights);
        memcpy(s->winograd, t.c.winograd, sizeof s->winograd);
    }
    float *memory[] = {t.x, t.dx, t.z, t.w, t.dw, t.memory.team, t.own};
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
        free(memory[i]);
}

/* Of the whole batch, because threads share the transforms of large weights. */
static int autotune_trial_images(const struct model_config *c, const struct tuned_shape *s)
{
    double flops = 18.0 * s->size * s->size * s->in_channels * s->out_channels / s->groups;
    double enough = ceil(TRIAL_FLOPS / flops);
    return c->batch < enough ? c->batch : (int)enough;
}

static void autotune_processor_model(char *model, size_t size)
{
    char *name = host_cpuinfo("model name");

    snprintf(model, size, "%s", name ? name : "unknown");
    free(name);
    for (char *p = model; *p; p++)
        if (!isalnum((unsigned char)*p) && *p != '.' && *p != '-')
            *p = '_';
}

static const char *autotune_choices_folder(char path[PATH_MAX])
{
    char cache[PATH_MAX];

    if (!file_cache_folder(cache) || file_path(path, NULL, "%s/winograd", cache))
        return NULL;
    return path;
}

static void autotune_cache_file(const char *folder, const struct tuned_shape *s, int images,
                                char path[PATH_MAX])
{
    char model[128], groups[32] = "";

    if (s->groups > 1)
        snprintf(groups, sizeof groups, "-%d", s->groups);
    autotune_processor_model(model, sizeof model);
    file_path(path, NULL, "%s/%s-%s-%s-%dx%d-%d%s-%d", folder, PACKAGE_VERSION, isa_level(), model,
              s->size, s->in_channels, s->out_channels, groups, images);
}

static bool autotune_read_choice(const char *path, struct tuned_shape *s)
{
    struct model_tuning t = {0};
    struct error e;
    size_t bytes;
    char *text;

    if (file_read(path, TUNING_TEXT_BYTES, &text, &bytes, &e))
        return false;
    text[strcspn(text, "\n")] = '\0';
    bool found = !model_tuning_from_text(text, &t) && t.count == 1 && t.shapes[0].size == s->size &&
                 t.shapes[0].in_channels == s->in_channels &&
                 t.shapes[0].out_channels == s->out_channels;
    if (found)
        memcpy(s->winograd, t.shapes[0].winograd, sizeof s->winograd);
    free(text);
    return found;
}

/* Adopts the choice of another job that measured the shape meanwhile; replaces an invalid file. */
static int autotune_remember_choice(const char *folder, const char *path, struct tuned_shape *s,
                                    struct error *e)
{
    struct model_tuning t = {1, {*s}};
    char text[TUNING_TEXT_BYTES + 1];
    int status = file_make_dirs(folder, e);

    model_tuning_to_text(&t, text);
    strcat(text, "\n");
    if (!status)
        status = file_write_first(path, text, strlen(text), e);
    if (status || autotune_read_choice(path, s))
        return status;
    return file_write_atomic(path, text, strlen(text), e);
}

void model_tune(const struct model_config *config, struct model_tuning *tuning, char *problem)
{
    char folder[PATH_MAX], path[PATH_MAX];
    struct error e;
    const char *cache = autotune_choices_folder(folder);

    problem[0] = '\0';
    if (!cache)
        snprintf(problem, 256, "neither XDG_CACHE_HOME nor HOME is the path of a folder");
    model_tuning_list(config, tuning);
    for (int i = 0; i < tuning->count; i++) {
        struct tuned_shape *s = &tuning->shapes[i];
        int images = autotune_trial_images(config, s);
        if (cache)
            autotune_cache_file(cache, s, images, path);
        if (cache && autotune_read_choice(path, s))
            continue;
        autotune_measure(s, images);
        if (cache && autotune_remember_choice(cache, path, s, &e))
            snprintf(problem, 256, "%.250s", e.text);
    }
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

static bool autotune_has_shape(const struct model_tuning *tuning, const struct tuned_shape *s)
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
        if (!autotune_has_shape(tuning, s))
            return error_set(e, ERR_INVALID,
                             "model.winograd_tiles does not name the convolution %dx%d-%d of this "
                             "network: take the words from the provenance of a run of it",
                             s->size, s->in_channels, s->out_channels);
    }
    for (int i = 0; i < tuning->count; i++) {
        const struct tuned_shape *s = &tuning->shapes[i];
        if (!autotune_has_shape(&self, s))
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
