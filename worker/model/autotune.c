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
#include "worker/model/precision.h"
#include "worker/team/memory.h"
#include "worker/team/parallel.h"

enum { ROUNDS = 2 };

/* To be raised when an algorithm becomes faster: choices stored before are then not used. */
enum { SPEEDS = 3 };

/* Flops of one direct pass: enough to amortise reading the weights, as in a batch. */
#define TRIAL_FLOPS 3e9

static const enum conv_winograd ways[] = {CONV_NO_WINOGRAD, CONV_WINOGRAD_2, CONV_WINOGRAD_4};
enum { WAYS = sizeof ways / sizeof ways[0] };

/* A model of one convolution, by each way in all directions: none takes more memory. */
struct trial {
    struct model m;
    struct unit units[WAYS], *unit;
    float *x, *dx, *own;
};

/* Also as bf16 no number that is slower than others. */
static float *autotune_filled(size_t bytes)
{
    size_t floats = bytes / sizeof(float);
    float *p = memory_allocate(floats * sizeof *p);
    for (size_t i = 0; p && i < floats; i++)
        p[i] = 0.5f;
    return p;
}

static void autotune_add_layout(struct trial *t, int size)
{
    if (size)
        t->m.layouts[t->m.layout_count++] =
            (struct layout){.image_size = size, .batch = t->m.n, .units = t->units};
}

static bool autotune_make_trial(struct trial *t, const struct model_config *config,
                                const struct tuned_shape *s, int images)
{
    struct conv c = conv_make(s->size, s->in_channels, s->out_channels, 3, 1, 1, s->groups);
    struct model *m = &t->m;
    struct error e;

    *m = (struct model){.config = *config,
                        .ops = precision_ops_of(config->precision),
                        .n = images,
                        .unit_count = WAYS,
                        .own = &t->own,
                        .layout = m->layouts};
    m->config.threads = 1;
    m->config.inference = false;
    autotune_add_layout(t, config->image_size);
    for (int i = 0; i < MODEL_SIZES_MAX; i++)
        autotune_add_layout(t, config->more_sizes[i]);
    autotune_add_layout(t, config->eval_size);
    size_t in = (size_t)images * conv_pixels_in(&c) * (size_t)c.window.channels * m->ops->bytes;
    size_t out = (size_t)images * conv_pixels_out(&c) * (size_t)c.out_channels * m->ops->bytes;
    float *z = autotune_filled(out);
    t->x = autotune_filled(in);
    t->dx = autotune_filled(in);
    m->params = autotune_filled(conv_weights(&c) * sizeof(float));
    m->grads = autotune_filled(conv_weights(&c) * sizeof(float));
    for (int i = 0; i < WAYS; i++) {
        t->units[i] = (struct unit){.conv = c, .z = z};
        for (int k = 0; k < CONV_DIRECTIONS; k++)
            t->units[i].conv.winograd[k] = ways[i];
    }
    t->unit = &t->units[0];
    return z && t->x && t->dx && m->params && m->grads && !m->ops->allocate(m, &e);
}

static void autotune_drop_trial(struct trial *t)
{
    void *memory[] = {t->x,        t->dx,      t->own,    t->unit->z,
                      t->m.params, t->m.grads, t->m.team, t->m.packed};
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
        free(memory[i]);
}

enum pass { PASS_FORWARD, PASS_WEIGHTS, PASS_BACKWARD };

struct timed_pass {
    struct trial *trial;
    enum pass pass;
};

static void autotune_run_pass(struct parallel_share share, void *context)
{
    const struct timed_pass *p = context;
    struct trial *t = p->trial;
    const struct precision_ops *ops = t->m.ops;
    struct precision_backward b = {
        .x = t->x, .dz = t->unit->z, .dx = p->pass == PASS_BACKWARD ? t->dx : NULL};

    if (p->pass == PASS_FORWARD)
        ops->forward(&t->m, t->unit, t->x, share, NULL, NULL);
    else
        ops->backward(&t->m, t->unit, &b, share);
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
        t->unit->conv.winograd[direction] = ways[i % WAYS];
        double start = autotune_processor_seconds();
        parallel_team(1, autotune_run_pass, &p);
        stall_progress_add(1);
        best[i % WAYS] = fmin(best[i % WAYS], autotune_processor_seconds() - start);
    }
    for (int i = 1; i < WAYS; i++)
        if (best[i] - fixed < t->m.ops->winograd_margin * (best[chosen] - fixed))
            chosen = i;
    t->unit->conv.winograd[direction] = ways[chosen];
    return best[chosen];
}

static void autotune_measure(const struct model_config *config, struct tuned_shape *s, int images)
{
    struct trial t = {.own = NULL};

    if (autotune_make_trial(&t, config, s, images)) {
        autotune_choose(&t, CONV_FORWARD, PASS_FORWARD, 0);
        double weights = autotune_choose(&t, CONV_WEIGHTS, PASS_WEIGHTS, 0);
        autotune_choose(&t, CONV_DATA, PASS_BACKWARD, weights);
        memcpy(s->winograd, t.unit->conv.winograd, sizeof s->winograd);
    }
    autotune_drop_trial(&t);
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

static void autotune_cache_file(const char *folder, const struct model_config *c,
                                const struct tuned_shape *s, int images, char path[PATH_MAX])
{
    bool half = c->precision == JOB_PRECISION_BF16;
    char model[128], groups[32] = "";

    if (s->groups > 1)
        snprintf(groups, sizeof groups, "-%d", s->groups);
    autotune_processor_model(model, sizeof model);
    file_path(path, NULL, "%s/%s-%d-%s%s%s-%s-%dx%d-%d%s-%d", folder, PACKAGE_VERSION, SPEEDS,
              isa_level(), half ? "-" : "", half ? bf16_kind_name(bf16_kind()) : "", model, s->size,
              s->in_channels, s->out_channels, groups, images);
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
            autotune_cache_file(cache, config, s, images, path);
        if (cache && autotune_read_choice(path, s))
            continue;
        autotune_measure(config, s, images);
        if (cache && autotune_remember_choice(cache, path, s, &e))
            snprintf(problem, 256, "%.250s", e.text);
    }
}
