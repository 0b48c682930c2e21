/*
 * The C side of tests/golden/optim.sh: writes what the Python side repeats, as safetensors.
 *
 *   optim_driver lars STEPS NESTEROV WEIGHTS GRADIENTS OUT    a ResNet-50 with random gradients,
 * those of step i times (i + 1)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"
#include "worker/model/weights.h"
#include "worker/optim/lars.h"

static void die(const struct error *e)
{
    fprintf(stderr, "optim_driver: %s\n", e->text);
    exit(1);
}

static struct model *make_model(int size, int n)
{
    struct error e;
    struct model *m;
    struct model_config c = {.arch = arch_find("resnet50"),
                             .stem = JOB_STEM_IMAGENET,
                             .classes = 10,
                             .image_size = size,
                             .batch = n,
                             .threads = 1,
                             .bn_momentum = 0.1};
    if (model_create(&c, &m, &e))
        die(&e);
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

static int run_lars(char **a)
{
    int steps = atoi(a[0]);
    struct error e;
    struct lars *l;
    struct lars_config c = {
        .momentum = 0.9, .nesterov = atoi(a[1]), .weight_decay = 1e-3, .eta = 0.01};
    struct model *m = make_model(32, 1);
    float *g = make_gradients(m);

    if (model_save(m, a[2], NULL, 0, &e) || model_save_buffer(m, g, "", a[3], NULL, 0, &e) ||
        lars_create(m, &c, &l, &e))
        die(&e);
    for (int i = 0; i < steps; i++) {
        for (size_t k = 0; k < model_param_count(m); k++)
            model_grads(m)[k] = g[k] * (float)(i + 1);
        lars_step(l, 0.5 * (i + 1)); /* the rate moves: where the forms of momentum differ */
        model_params_changed(m);
    }
    if (model_save(m, a[4], NULL, 0, &e))
        die(&e);
    lars_destroy(l);
    model_destroy(m);
    free(g);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 7 && !strcmp(argv[1], "lars"))
        return run_lars(argv + 2);
    fprintf(stderr, "usage: see the head of optim_driver.c\n");
    return 2;
}
