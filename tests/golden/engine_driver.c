/*
 * The C side of tests/golden/torch.sh: writes weights, runs what the Python side repeats, writes
 * results as safetensors into FOLDER.
 *
 *   engine_driver logits S N FOLDER
 *       a ResNet-50 with random weights and statistics: weights, batches, logits
 *   engine_driver train ARCH S N STEPS THREADS OPTIONS FOLDER
 *       weights, batches, trained (the weights afterwards); the losses of the steps on stdout.
 *       OPTIONS: letters, as struct options has them; "-" for none
 *   engine_driver step ARCH STEM S N [PRECISION] FOLDER
 *       one step of any network, twice: its activations kept from zero (calm-), and plain (plain-):
 *       weights, logits of the evaluation, gradients of the training; batches; two losses on stdout
 *   engine_driver calm ARCH STEM S N [PRECISION] FOLDER
 *       the first of the two alone. PRECISION: bf16, or bf16-direct, without Winograd
 *
 * ARCH may have a width behind a colon, and +blur: resnet50:2+blur. batches holds the images
 * (steps, n, channels, s, s as torch wants them) and labels that were used.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tune_all.h"
#include "common/rng.h"
#include "common/run/safetensors.h"
#include "worker/data/augment.h"
#include "worker/model/tuning.h"
#include "worker/model/forward_backward.h"
#include "worker/model/init.h"
#include "worker/model/weights.h"
#include "worker/optim/optimizer.h"

enum { CLASSES = 10 };

struct batches {
    int steps, n, size, channels;
    float *images;   /* (steps, n, size, size, channels) */
    int32_t *labels; /* (steps, n) */
};

static void die(const struct error *e)
{
    fprintf(stderr, "engine_driver: %s\n", e->text);
    exit(1);
}

static size_t image_floats(const struct batches *b)
{
    return (size_t)b->size * (size_t)b->size * (size_t)b->channels;
}

/* Noise over a pattern of the class, so that there is something to learn. */
static struct batches make_batches(int steps, const struct model_config *c)
{
    int n = c->batch;
    struct batches b = {steps, n, c->image_size, arch_image_channels(c->arch), NULL, NULL};
    size_t images = (size_t)steps * (size_t)n, floats = image_floats(&b);

    b.images = malloc(images * floats * sizeof *b.images);
    b.labels = malloc(images * sizeof *b.labels);
    for (size_t i = 0; i < images; i++) {
        struct rng noise = rng_stream(7, 0, (int64_t)i, RNG_SYNTHETIC);
        b.labels[i] = (int32_t)rng_below(&noise, CLASSES);
        for (size_t j = 0; j < floats; j++)
            b.images[i * floats + j] =
                (float)(rng_normal(&noise) + sin((double)(j % 97) * (b.labels[i] + 1) * 0.1));
    }
    return b;
}

static void fill_batches(size_t i, void *data, void *context)
{
    const struct batches *b = context;
    size_t images = (size_t)b->steps * (size_t)b->n, channels = (size_t)b->channels,
           pixels = image_floats(b) / channels;
    float *out = data;

    if (i == 1) {
        for (size_t k = 0; k < images; k++)
            ((int64_t *)data)[k] = b->labels[k];
        return;
    }
    for (size_t k = 0; k < images; k++)
        for (size_t p = 0; p < pixels; p++)
            for (size_t c = 0; c < channels; c++)
                out[(k * channels + c) * pixels + p] = b->images[(k * pixels + p) * channels + c];
}

static void write_batches(const struct batches *b, const char *path)
{
    struct error e;
    struct safetensors_tensor t[] = {
        {"images", SAFETENSORS_F32, 5, {b->steps, b->n, b->channels, b->size, b->size}},
        {"labels", SAFETENSORS_I64, 2, {b->steps, b->n}                               },
    };
    if (safetensors_write(path, t, 2, NULL, 0, fill_batches, (void *)b, &e))
        die(&e);
}

static void choose_arch(const char *word, struct model_config *c)
{
    char name[64];

    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, ":+"), word);
    c->blur_pool = strstr(word, "+blur") != NULL;
    c->arch = arch_find(name);
    c->width = strchr(word, ':') ? atof(strchr(word, ':') + 1) : 1;
    if (!c->arch) {
        fprintf(stderr, "engine_driver: there is no such network\n");
        exit(1);
    }
}

/* Weights of the size that model_init gives them, each drawn evenly: the normal numbers of a large
 * network would take longer than its step. What batch norm has is drawn by shake_batch_norm. */
static void draw_weights(struct model *m)
{
    for (size_t i = 0; i < model_tensor_count(m); i++) {
        const struct model_tensor *t = model_tensor(m, i);
        bool conv = t->kind == MODEL_CONV_WEIGHT;
        if (!conv && t->kind != MODEL_FC_WEIGHT && t->kind != MODEL_FC_BIAS)
            continue;
        double fan = conv           ? (double)(t->shape[0] * t->shape[2] * t->shape[3])
                     : t->dims == 2 ? (double)t->shape[1]
                                    : CLASSES;
        double bound = sqrt((conv ? 6 : 1) / fan);
        struct rng r = rng_stream(3, 0, (int64_t)i, RNG_MODEL);
        for (size_t j = 0; j < t->count; j++)
            model_params(m)[t->offset + j] = (float)rng_range(&r, -bound, bound);
    }
}

static struct model *make_model(const struct model_config *c, bool winograd)
{
    struct error e;
    struct model *m;
    struct model_config config = *c;
    struct model_tuning tuning = {0};

    if (winograd)
        tune_all(c, CONV_WINOGRAD_4, &tuning);
    config.tuning = &tuning;
    if (model_create(&config, &m, &e))
        die(&e);
    if (c->arch == arch_find("cnn"))
        model_init(m, 3);
    else
        draw_weights(m);
    return m;
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
            if (t->kind == MODEL_BN_MEAN || t->kind == MODEL_BN_BETA || t->kind == MODEL_CONV_BIAS)
                x[j] = (float)(0.1 * rng_normal(&r));
            if (t->kind == MODEL_BN_VAR || t->kind == MODEL_BN_GAMMA)
                x[j] = (float)rng_range(&r, 0.5, 1.5);
            if (t->kind == MODEL_BN_GAMMA && ends_branch(m, i))
                x[j] *= (float)branch;
        }
    }
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

static const char *in(const char *folder, const char *prefix, const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s%s", folder, prefix, name);
    return path;
}

static void save_weights(struct model *m, const char *path)
{
    struct error e;
    if (model_save(m, path, NULL, 0, &e))
        die(&e);
}

static int run_logits(char **a)
{
    int size = atoi(a[0]), n = atoi(a[1]);
    struct model_config c = {.arch = arch_find("resnet50"),
                             .stem = JOB_STEM_IMAGENET,
                             .classes = CLASSES,
                             .image_size = size,
                             .batch = n,
                             .inference = true,
                             .threads = 1,
                             .bn_momentum = 0.1};
    struct batches b = make_batches(1, &c);
    struct model *m = make_model(&c, true);
    float *logits = malloc((size_t)n * CLASSES * sizeof *logits);

    shake_batch_norm(m, 1);
    save_weights(m, in(a[2], "", "weights"));
    write_batches(&b, in(a[2], "", "batches"));
    model_predict(m, b.images, n, logits);
    write_logits(in(a[2], "", "logits"), logits, n);
    free(logits);
    free(b.images);
    free(b.labels);
    model_destroy(m);
    return 0;
}

/* Of one training; decay is large with d, so that it can be seen in three steps. */
struct options {
    bool smooth;   /* s: label smoothing 0.1 */
    bool binary;   /* e: loss bce */
    bool weighs;   /* k: class c has the weight 0.5 (c + 1) */
    bool nesterov; /* n */
    bool
        decay_bn; /* d: weight decay 0.1, for batch norm too; w: the same, but not for batch norm */
    bool heavy;
    bool mixup;  /* m: lambda 0.3, and 0.05 more each step */
    bool direct; /* x: no Winograd */
    bool blas;   /* b: model.gemm openblas */
    int frozen;  /* a digit: so many parts are not trained */
    bool head;   /* h: lr.head_factor 7 */
};

static struct options options_of(const char *text)
{
    return (struct options){.smooth = strchr(text, 's'),
                            .binary = strchr(text, 'e'),
                            .weighs = strchr(text, 'k'),
                            .nesterov = strchr(text, 'n'),
                            .decay_bn = strchr(text, 'd'),
                            .heavy = strpbrk(text, "dw"),
                            .mixup = strchr(text, 'm'),
                            .direct = strchr(text, 'x'),
                            .blas = strchr(text, 'b'),
                            .frozen = (int)strtol(text + strcspn(text, "12345"), NULL, 10),
                            .head = strchr(text, 'h')};
}

static void train(struct model *m, struct optimizer *s, struct batches *b, bool mixup)
{
    for (int i = 0; i < b->steps; i++) {
        float *images = b->images + (size_t)i * (size_t)b->n * image_floats(b);
        double lambda = 0.3 + 0.05 * i;
        if (mixup) {
            mixup_images(images, images, b->n, image_floats(b), lambda);
            model_mix(m, lambda);
        }
        printf("%.9g\n",
               model_forward(m, images, b->labels + (size_t)i * (size_t)b->n, b->n, NULL));
        model_backward(m, 1, false, NULL, NULL);
        optimizer_step(s, 0.0005 * (i + 1) / b->steps); /* a warm-up: the LR moves */
    }
}

static int run_train(char **a)
{
    int size = atoi(a[1]), n = atoi(a[2]);
    struct options o = options_of(a[5]);
    struct error e;
    struct optimizer *s;
    struct job_spec spec = {
        .lr = {.head_factor = o.head ? 7 : 1},
        .optimizer = { .momentum = 0.9,
               .nesterov = o.nesterov,
               .weight_decay = o.heavy ? 0.1 : 5e-5,
               .decay_bn = o.decay_bn}
    };
    struct model_config c = {.stem = JOB_STEM_IMAGENET,
                             .classes = CLASSES,
                             .image_size = size,
                             .batch = n,
                             .frozen = o.frozen,
                             .threads = atoi(a[4]),
                             .bn_momentum = 0.1,
                             .loss = o.binary ? JOB_LOSS_BCE : JOB_LOSS_CROSS_ENTROPY,
                             .label_smoothing = o.smooth ? 0.1 : 0,
                             .gemm = o.blas ? JOB_GEMM_OPENBLAS : JOB_GEMM_OWN};
    choose_arch(a[0], &c);
    struct batches b = make_batches(atoi(a[3]), &c);
    struct model *m = make_model(&c, !o.direct);

    double weights[CLASSES];
    for (int i = 0; i < CLASSES; i++)
        weights[i] = 0.5 * (i + 1);
    if (o.weighs)
        model_weigh_classes(m, weights);
    shake_batch_norm(m, 0.1);
    save_weights(m, in(a[6], "", "weights"));
    write_batches(&b, in(a[6], "", "batches"));
    if (optimizer_create(m, &spec, 0.0005, &s, &e))
        die(&e);
    train(m, s, &b, o.mixup);
    save_weights(m, in(a[6], "", "trained"));
    optimizer_destroy(s);
    free(b.images);
    free(b.labels);
    model_destroy(m);
    return 0;
}

static void step(struct model *m, const struct batches *b, const char *folder, const char *prefix)
{
    struct model_buffer gradients = {"", model_grads(m)};
    struct error e;
    float *logits = malloc((size_t)b->n * CLASSES * sizeof *logits);

    save_weights(m, in(folder, prefix, "weights"));
    model_predict(m, b->images, b->n, logits);
    write_logits(in(folder, prefix, "logits"), logits, b->n);
    printf("%.9g\n", model_forward(m, b->images, b->labels, b->n, NULL));
    model_backward(m, 1, false, NULL, NULL);
    if (model_save_buffers(m, &gradients, 1, in(folder, prefix, "gradients"), NULL, 0, &e))
        die(&e);
    free(logits);
}

static int run_step(char **a, bool twice)
{
    int size = atoi(a[2]), n = atoi(a[3]);
    struct model_config c = {.classes = CLASSES,
                             .image_size = size,
                             .batch = n,
                             .stem = strcmp(a[1], "small") ? JOB_STEM_IMAGENET : JOB_STEM_SMALL,
                             .precision = a[5] ? JOB_PRECISION_BF16 : JOB_PRECISION_FP32,
                             .threads = 2,
                             .bn_momentum = 0.1};
    const char *folder = a[5] ? a[5] : a[4];
    choose_arch(a[0], &c);
    struct batches b = make_batches(1, &c);
    struct model *m = make_model(&c, !a[5] || strcmp(a[4], "bf16-direct"));

    write_batches(&b, in(folder, "", "batches"));
    shake_batch_norm(m, 0.1);
    leave_zero(m);
    step(m, &b, folder, "calm-");
    if (twice) {
        shake_batch_norm(m, 1);
        step(m, &b, folder, "plain-");
    }
    free(b.images);
    free(b.labels);
    model_destroy(m);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 5 && !strcmp(argv[1], "logits"))
        return run_logits(argv + 2);
    if (argc == 9 && !strcmp(argv[1], "train"))
        return run_train(argv + 2);
    if ((argc == 7 || argc == 8) && (!strcmp(argv[1], "step") || !strcmp(argv[1], "calm")))
        return run_step(argv + 2, !strcmp(argv[1], "step"));
    fprintf(stderr, "usage: see the head of engine_driver.c\n");
    return 2;
}
