/*
 * The C side of tests/golden/torch.sh: writes weights, runs what the Python side repeats, writes
 * results as safetensors.
 *
 *   engine_driver logits S N WEIGHTS BATCHES OUT      random weights and statistics -> WEIGHTS;
 * logits of the images -> OUT engine_driver train S N STEPS SMOOTHING THREADS WEIGHTS BATCHES OUT
 *                                                     losses of the steps on stdout; weights
 * afterwards -> OUT engine_driver step ARCH STEM S N WEIGHTS BATCHES LOGITS GRADS one step of any
 * network: logits of the evaluation -> LOGITS, loss of the training on stdout, its gradients ->
 * GRADS BATCHES gets the images (steps, n, 3, s, s as torch wants them) and labels that were used.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"
#include "common/safetensors.h"
#include "worker/model/tune.h"
#include "worker/model/weights.h"
#include "worker/optim/sgd.h"

enum { CLASSES = 10 };

struct batches {
    int steps, n, size;
    float *images;   /* (steps, n, size, size, 3) */
    int32_t *labels; /* (steps, n) */
};

static void die(const struct error *e)
{
    fprintf(stderr, "engine_driver: %s\n", e->text);
    exit(1);
}

static double normal(struct rng *r)
{
    double radius = sqrt(-2 * log(1 - rng_unit(r)));
    return radius * cos(2 * M_PI * rng_unit(r));
}

static size_t image_floats(const struct batches *b)
{
    return (size_t)b->size * (size_t)b->size * 3;
}

/* Noise over a pattern of the class, so that there is something to learn. */
static struct batches make_batches(int steps, int n, int size)
{
    struct batches b = {steps, n, size, NULL, NULL};
    size_t images = (size_t)steps * (size_t)n, floats = image_floats(&b);

    b.images = malloc(images * floats * sizeof *b.images);
    b.labels = malloc(images * sizeof *b.labels);
    for (size_t i = 0; i < images; i++) {
        struct rng noise = rng_stream(7, 0, (int64_t)i, RNG_SYNTHETIC);
        b.labels[i] = (int32_t)rng_below(&noise, CLASSES);
        for (size_t j = 0; j < floats; j++)
            b.images[i * floats + j] =
                (float)(normal(&noise) + sin((double)(j % 97) * (b.labels[i] + 1) * 0.1));
    }
    return b;
}

static void fill_batches(size_t i, void *data, void *context)
{
    const struct batches *b = context;
    size_t images = (size_t)b->steps * (size_t)b->n, pixels = image_floats(b) / 3;
    float *out = data;

    if (i == 1) {
        for (size_t k = 0; k < images; k++)
            ((int64_t *)data)[k] = b->labels[k];
        return;
    }
    for (size_t k = 0; k < images; k++)
        for (size_t p = 0; p < pixels; p++)
            for (size_t c = 0; c < 3; c++)
                out[(k * 3 + c) * pixels + p] = b->images[(k * pixels + p) * 3 + c];
}

static void write_batches(const struct batches *b, const char *path)
{
    struct error e;
    struct safetensors_tensor t[] = {
        {"images", SAFETENSORS_F32, 5, {b->steps, b->n, 3, b->size, b->size}},
        {"labels", SAFETENSORS_I64, 2, {b->steps, b->n}                     },
    };
    if (safetensors_write(path, t, 2, NULL, 0, fill_batches, (void *)b, &e))
        die(&e);
}

static struct model *make_model_of(const struct model_config *c)
{
    struct error e;
    struct model *m;
    struct model_config config = *c;
    struct model_tuning tuning;

    model_tune_all(c, CONV_WINOGRAD_4, &tuning);
    config.tuning = &tuning;
    if (model_create(&config, &m, &e))
        die(&e);
    model_init(m, 3);
    return m;
}

static struct model *make_model(int size, int n, int threads, double smoothing, bool inference)
{
    struct model_config c = {.arch = arch_find("resnet50"),
                             .stem = JOB_STEM_IMAGENET,
                             .classes = CLASSES,
                             .image_size = size,
                             .batch = n,
                             .inference = inference,
                             .threads = threads,
                             .bn_momentum = 0.1,
                             .label_smoothing = smoothing};
    return make_model_of(&c);
}

/* The last batch norm of a block: bn3 of a bottleneck, bn2 of a basic block. */
static bool ends_branch(const struct model *m, size_t tensor)
{
    const char *name = model_tensor(m, tensor)->name, *dot = strrchr(name, '.');
    const char *layer = dot ? dot - 3 : name;
    if (!strncmp(layer, "bn3", 3))
        return true;
    if (strncmp(layer, "bn2", 3) != 0)
        return false;
    for (size_t i = 0; i < model_tensor_count(m); i++)
        if (strstr(model_tensor(m, i)->name, "bn3"))
            return false;
    return true;
}

/* Statistics and affine numbers as a trained network may have them. branch scales the last gamma of
 * every block: with 1, a random network amplifies rounding so much that two correct programs differ
 * by 2 % in the first gradients already (torch in float against torch in double does); with 0.1 it
 * does not, and every layer still gets gradients. */
static void shake_batch_norm(struct model *m, double branch)
{
    for (size_t i = 0; i < model_tensor_count(m); i++) {
        const struct model_tensor *t = model_tensor(m, i);
        bool stat = t->kind == MODEL_BN_MEAN || t->kind == MODEL_BN_VAR;
        float *x = (stat ? model_stats(m) : model_params(m)) + t->offset;
        struct rng r = rng_stream(11, 0, (int64_t)i, RNG_SYNTHETIC);
        for (size_t j = 0; j < t->count; j++) {
            if (t->kind == MODEL_BN_MEAN || t->kind == MODEL_BN_BETA)
                x[j] = (float)(0.1 * normal(&r));
            if (t->kind == MODEL_BN_VAR || t->kind == MODEL_BN_GAMMA)
                x[j] = (float)rng_range(&r, 0.5, 1.5);
            if (t->kind == MODEL_BN_GAMMA && ends_branch(m, i))
                x[j] *= (float)branch;
        }
    }
    model_params_changed(m);
}

/*
 * Pushes every activation of a training step away from zero, whole channels on or off. Otherwise
 * one of a million lies so near to zero that two correct programs round it to different sides of
 * the ReLU, and a small gradient differs by 1 % (torch in float and in double differ by 4e-3 in
 * resnet50 with the small stem).
 */
static void leave_zero(struct model *m)
{
    for (size_t i = 0; i < model_tensor_count(m); i++) {
        const struct model_tensor *t = model_tensor(m, i);
        bool shortcut = strstr(t->name, "downsample") != NULL;
        float *x = model_params(m) + t->offset;
        for (size_t j = 0; t->kind == MODEL_BN_BETA && j < t->count; j++)
            x[j] += ends_branch(m, i)   ? 1
                    : shortcut || j % 4 ? 9
                                        : -9; /* branches are scaled by 0.1 */
    }
    model_params_changed(m);
}

static void fill_floats(size_t i, void *data, void *context)
{
    const struct safetensors_tensor *t = ((void **)context)[0];
    memcpy(data, ((void **)context)[1], safetensors_bytes(&t[i]));
}

static void write_logits(const char *path, const float *logits, int n)
{
    struct error e;
    struct safetensors_tensor t = {
        "logits", SAFETENSORS_F32, 2, {n, CLASSES}
    };
    void *context[] = {&t, (void *)logits};
    if (safetensors_write(path, &t, 1, NULL, 0, fill_floats, context, &e))
        die(&e);
}

static int run_logits(char **a)
{
    int size = atoi(a[0]), n = atoi(a[1]);
    struct error e;
    struct batches b = make_batches(1, n, size);
    struct model *m = make_model(size, n, 1, 0, true);
    float *logits = malloc((size_t)n * CLASSES * sizeof *logits);

    shake_batch_norm(m, 1);
    if (model_save(m, a[2], NULL, 0, &e))
        die(&e);
    write_batches(&b, a[3]);
    model_predict(m, b.images, n, logits);
    write_logits(a[4], logits, n);
    free(logits);
    free(b.images);
    free(b.labels);
    model_destroy(m);
    return 0;
}

static int run_train(char **a)
{
    int size = atoi(a[0]), n = atoi(a[1]), steps = atoi(a[2]);
    struct error e;
    struct sgd *s;
    struct sgd_config sc = {.momentum = 0.9, .weight_decay = 5e-5};
    struct batches b = make_batches(steps, n, size);
    struct model *m = make_model(size, n, atoi(a[4]), atof(a[3]), false);

    shake_batch_norm(m, 0.1);
    if (model_save(m, a[5], NULL, 0, &e) || sgd_create(m, &sc, &s, &e))
        die(&e);
    write_batches(&b, a[6]);
    for (int i = 0; i < steps; i++) {
        size_t at = (size_t)i * (size_t)n;
        printf("%.9g\n",
               model_forward(m, b.images + at * image_floats(&b), b.labels + at, n, NULL));
        model_backward(m, 1, false, NULL, NULL);
        sgd_step(s, 0.0005 * (i + 1) / steps); /* a warm-up: the LR moves */
        model_params_changed(m);
    }
    if (model_save(m, a[7], NULL, 0, &e))
        die(&e);
    sgd_destroy(s);
    free(b.images);
    free(b.labels);
    model_destroy(m);
    return 0;
}

static int run_step(char **a)
{
    int size = atoi(a[2]), n = atoi(a[3]);
    struct error e;
    struct model_config c = {.arch = arch_find(a[0]),
                             .classes = CLASSES,
                             .image_size = size,
                             .batch = n,
                             .stem = strcmp(a[1], "small") ? JOB_STEM_IMAGENET : JOB_STEM_SMALL,
                             .threads = 2,
                             .bn_momentum = 0.1};
    if (!c.arch) {
        fprintf(stderr, "engine_driver: no network is called %s\n", a[0]);
        return 1;
    }
    struct batches b = make_batches(1, n, size);
    struct model *m = make_model_of(&c);
    float *logits = malloc((size_t)n * CLASSES * sizeof *logits);

    shake_batch_norm(m, 0.1);
    leave_zero(m);
    if (model_save(m, a[4], NULL, 0, &e))
        die(&e);
    write_batches(&b, a[5]);
    model_predict(m, b.images, n, logits);
    write_logits(a[6], logits, n);
    printf("%.9g\n", model_forward(m, b.images, b.labels, n, NULL));
    model_backward(m, 1, false, NULL, NULL);
    /* Gradients have the layout of the parameters: saved as such they get torchvision's names and
     * shapes. */
    memcpy(model_params(m), model_grads(m), model_param_count(m) * sizeof(float));
    if (model_save(m, a[7], NULL, 0, &e))
        die(&e);
    free(logits);
    free(b.images);
    free(b.labels);
    model_destroy(m);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 7 && !strcmp(argv[1], "logits"))
        return run_logits(argv + 2);
    if (argc == 10 && !strcmp(argv[1], "train"))
        return run_train(argv + 2);
    if (argc == 10 && !strcmp(argv[1], "step"))
        return run_step(argv + 2);
    fprintf(stderr, "usage: see the head of engine_driver.c\n");
    return 2;
}
