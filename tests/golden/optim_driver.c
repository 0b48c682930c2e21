/*
 * The C side of tests/golden/optim.sh: writes what the Python side repeats, as safetensors.
 *
 *   optim_driver update STEPS WEIGHTS GRADIENTS OUT    a ResNet-18 with random gradients, those of
 * step i times (i + 1). For each line of stdin, the path of a job document: the weights updated by
 * its optimizer -> OUT. A line on stdout when WEIGHTS and GRADIENTS, and when each OUT is written
 *   optim_driver mixup N LAMBDA SMOOTHING WEIGHTS BATCH OUT    loss on stdout, gradients -> OUT;
 * BATCH is not mixed yet
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/job/job_document.h"
#include "common/json.h"
#include "common/rng.h"
#include "worker/data/augment.h"
#include "worker/model/forward_backward.h"
#include "worker/model/init.h"
#include "worker/model/weights.h"
#include "worker/optim/optimizer.h"

static void optim_die(const struct error *e)
{
    fprintf(stderr, "optim_driver: %s\n", e->text);
    exit(1);
}

static struct model *optim_make_model(const char *arch, double width, int size, int n,
                                      double smoothing)
{
    struct error e;
    struct model *m;
    struct model_config c = {.arch = arch_find(arch),
                             .stem = JOB_STEM_IMAGENET,
                             .width = width,
                             .classes = 10,
                             .image_size = size,
                             .batch = n,
                             .threads = 1,
                             .bn_momentum = 0.1,
                             .label_smoothing = smoothing};
    if (model_create(&c, &m, &e))
        optim_die(&e);
    model_init(m, 3);
    return m;
}

/* Of another size for every tensor, so that the trust differs. */
static float *make_gradients(const struct model *m)
{
    float *g = calloc(model_param_count(m), sizeof *g);
    for (size_t i = 0; i < model_tensor_count(m); i++) {
        const struct model_tensor *t = model_tensor(m, i);
        struct rng r = rng_stream(5, 0, (int64_t)i, RNG_SYNTHETIC);
        if (t->kind == MODEL_BN_MEAN || t->kind == MODEL_BN_VAR)
            continue;
        for (size_t k = 0; k < t->count; k++)
            g[t->offset + k] = (float)rng_range(&r, -0.01 * (double)(i % 5), 0.02);
    }
    return g;
}

static struct job_spec *optim_read_job(const char *path)
{
    struct problems problems = {0};
    struct error e;
    json_t *document = json_document_load(path, &e);

    if (!document)
        optim_die(&e);
    struct job_spec *spec = job_spec_parse(document, NULL, NULL, &problems);
    json_decref(document);
    if (!spec) {
        fprintf(stderr, "optim_driver: %s: %s\n", problems.items[0].pointer,
                problems.items[0].message);
        exit(1);
    }
    problems_clear(&problems);
    return spec;
}

/* Steps from the same weights, with the optimizer of the document job; the result goes to out. */
static void update(struct model *m, const float *start, const float *gradients, int steps,
                   const char *job, const char *out)
{
    struct error e;
    struct optimizer *o;
    struct job_spec *spec = optim_read_job(job);

    memcpy(model_params(m), start, model_param_count(m) * sizeof *start);
    if (optimizer_create(m, spec, 2 * spec->lr.base, &o, &e))
        optim_die(&e);
    for (int i = 0; i < steps; i++) {
        for (size_t k = 0; k < model_param_count(m); k++)
            model_grads(m)[k] = gradients[k] * (float)(i + 1);
        optimizer_step(o, spec->lr.base * (i + 1)); /* it moves: where forms of momentum differ */
    }
    if (model_save(m, out, NULL, 0, &e))
        optim_die(&e);
    optimizer_destroy(o);
    job_spec_destroy(spec);
}

static int run_update(char **a)
{
    struct error e;
    char line[8192];
    struct model *m = optim_make_model("resnet18", 0.25, 32, 1, 0);
    size_t bytes = model_param_count(m) * sizeof(float);
    struct model_buffer g = {"", make_gradients(m)};
    float *start = memcpy(malloc(bytes), model_params(m), bytes);

    if (model_save(m, a[1], NULL, 0, &e) || model_save_buffers(m, &g, 1, a[2], NULL, 0, &e))
        optim_die(&e);
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        update(m, start, g.data, atoi(a[0]), line, a[3]);
        puts("done");
        fflush(stdout);
    }
    model_destroy(m);
    free(start);
    free(g.data);
    return 0;
}

enum { SIZE = 64, PIXELS = SIZE * SIZE, FLOATS = 3 * PIXELS };

/* A small gamma at the end of every block, as after training: a random network amplifies rounding.
 */
static void calm(struct model *m)
{
    for (size_t i = 0; i < model_tensor_count(m); i++) {
        const struct model_tensor *t = model_tensor(m, i);
        if (t->kind != MODEL_BN_GAMMA || !strstr(t->name, "bn3"))
            continue;
        for (size_t k = 0; k < t->count; k++)
            model_params(m)[t->offset + k] = 0.1f;
    }
}

struct batch {
    int n;
    float *images; /* (n, SIZE, SIZE, 3) */
    int32_t *labels;
};

static void fill_batch(size_t tensor, void *data, void *context)
{
    const struct batch *b = context;
    float *out = data;

    for (int i = 0; i < b->n; i++) {
        if (tensor == 1)
            ((int64_t *)data)[i] = b->labels[i];
        for (size_t p = 0; tensor == 0 && p < PIXELS; p++)
            for (size_t c = 0; c < 3; c++)
                out[((size_t)i * 3 + c) * PIXELS + p] = b->images[((size_t)i * PIXELS + p) * 3 + c];
    }
}

static struct batch make_batch(int n)
{
    struct batch b = {n, malloc((size_t)n * FLOATS * sizeof(float)),
                      malloc((size_t)n * sizeof(int32_t))};
    struct rng r = rng_stream(9, 0, 0, RNG_SYNTHETIC);

    for (int i = 0; i < n; i++)
        b.labels[i] = (int32_t)rng_below(&r, 10);
    for (size_t k = 0; k < (size_t)n * FLOATS; k++)
        b.images[k] = (float)rng_range(&r, -1.7, 1.7);
    return b;
}

static int run_mixup(char **a)
{
    struct error e;
    struct batch b = make_batch(atoi(a[0]));
    double lambda = atof(a[1]);
    struct model *m = optim_make_model("resnet50", 1, SIZE, b.n, atof(a[2]));
    struct safetensors_tensor t[] = {
        {"images", SAFETENSORS_F32, 4, {b.n, 3, SIZE, SIZE}},
        {"labels", SAFETENSORS_I64, 1, {b.n}               }
    };

    calm(m);
    if (model_save(m, a[3], NULL, 0, &e) ||
        safetensors_write(a[4], t, 2, NULL, 0, fill_batch, &b, &e))
        optim_die(&e);
    mixup_images(b.images, b.images, b.n, FLOATS, lambda);
    model_mix(m, lambda);
    printf("%.9g\n", model_forward(m, b.images, b.labels, b.n, NULL));
    model_backward(m, 1, false, NULL, NULL);
    struct model_buffer gradients = {"", model_grads(m)};
    if (model_save_buffers(m, &gradients, 1, a[5], NULL, 0, &e))
        optim_die(&e);
    free(b.images);
    free(b.labels);
    model_destroy(m);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 6 && !strcmp(argv[1], "update"))
        return run_update(argv + 2);
    if (argc == 8 && !strcmp(argv[1], "mixup"))
        return run_mixup(argv + 2);
    fprintf(stderr, "usage: see the head of optim_driver.c\n");
    return 2;
}
