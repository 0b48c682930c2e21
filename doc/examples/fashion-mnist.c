/*
 * A training program of its own that uses libtraincomm: a perceptron with one hidden layer learns
 * Fashion-MNIST on as many ranks as mpirun starts.
 *
 *     cc -O3 -o fashion-mnist fashion-mnist.c $(pkg-config --cflags --libs traincomm zlib) -lm
 *     mpirun -np 2 ./fashion-mnist /usr/share/datasets/fashion-mnist [EPOCHS [IMAGES]]
 *
 * The folder holds the four IDX files of the data set, compressed by gzip (on Debian: the package
 * dataset-fashion-mnist). However many ranks there are, a step is the same batch of 64 images, of
 * which each rank computes its part; so the result is the same up to rounding.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <traincomm.h>
#include <zlib.h>

enum { PIXELS = 784, HIDDEN = 128, CLASSES = 10, BATCH = 64 };

#define RATE     0.05f
#define MOMENTUM 0.9f

/* The weights, and the gradients alike: one buffer, in the order of the layers. */
struct layers {
    float w1[PIXELS][HIDDEN], b1[HIDDEN];
    float w2[HIDDEN][CLASSES], b2[CLASSES];
};
enum {
    COUNT = sizeof(struct layers) / sizeof(float),
    SECOND = offsetof(struct layers, w2) / sizeof(float) /* where the second layer begins */
};
static struct layers weights, gradients, momentum;

struct images {
    uint8_t (*pixels)[PIXELS]; /* (count) */
    uint8_t *labels;           /* (count) */
    int count;
};

/* ---- data */

/* The body of an IDX file with a header of so many bytes: room bytes at most. Returns how many, or
 * -1. */
static int read_idx(const char *folder, const char *name, int header, uint8_t *to, int room)
{
    char path[4096];
    uint8_t skipped[16];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    gzFile file = gzopen(path, "rb");
    if (!file)
        return -1;
    int got =
        gzread(file, skipped, (unsigned)header) == header ? gzread(file, to, (unsigned)room) : -1;
    gzclose(file);
    return got;
}

static int read_images(const char *folder, const char *what, int limit, struct images *out,
                       struct traincomm_failure *failure)
{
    char images[64], labels[64];

    out->pixels = malloc((size_t)limit * PIXELS);
    out->labels = malloc((size_t)limit);
    if (!out->pixels || !out->labels) {
        snprintf(failure->text, sizeof failure->text, "no memory for %d images", limit);
        return failure->code = 1;
    }
    snprintf(images, sizeof images, "%s-images-idx3-ubyte.gz", what);
    snprintf(labels, sizeof labels, "%s-labels-idx1-ubyte.gz", what);
    int bytes = read_idx(folder, images, 16, out->pixels[0], limit * PIXELS);
    out->count = read_idx(folder, labels, 8, out->labels, limit);
    if (out->count > 0 && bytes == out->count * PIXELS)
        return 0;
    snprintf(failure->text, sizeof failure->text, "%s: %s and %s cannot be read, or do not match",
             folder, images, labels);
    return failure->code = 1;
}

/* ---- the network */

static uint32_t random_state = 1;

static float random_uniform(void) /* -1 to 1 */
{
    random_state = random_state * 1664525u + 1013904223u;
    return (float)(int32_t)random_state / 2147483648.0f;
}

static void make_layer(float *w, int inputs, int outputs)
{
    for (int i = 0; i < inputs * outputs; i++)
        w[i] = random_uniform() * sqrtf(6.0f / (float)inputs);
}

static void make_weights(void)
{
    make_layer(&weights.w1[0][0], PIXELS, HIDDEN);
    make_layer(&weights.w2[0][0], HIDDEN, CLASSES);
}

/* y (n) += a x */
static void add(float *restrict y, float a, const float *restrict x, int n)
{
    for (int i = 0; i < n; i++)
        y[i] += a * x[i];
}

static void scale_pixels(const uint8_t *pixels, float *x)
{
    for (int i = 0; i < PIXELS; i++)
        x[i] = pixels[i] / 255.0f;
}

/* Fills hidden and p (the softmax), returns the loss. */
static double forward(const float *x, int label, float *hidden, float *p)
{
    double sum = 0;

    memcpy(hidden, weights.b1, sizeof weights.b1);
    for (int i = 0; i < PIXELS; i++)
        if (x[i] != 0)
            add(hidden, x[i], weights.w1[i], HIDDEN);
    memcpy(p, weights.b2, sizeof weights.b2);
    for (int i = 0; i < HIDDEN; i++) {
        hidden[i] = hidden[i] > 0 ? hidden[i] : 0;
        add(p, hidden[i], weights.w2[i], CLASSES);
    }
    for (int i = 0; i < CLASSES; i++)
        sum += p[i] = expf(p[i]);
    for (int i = 0; i < CLASSES; i++)
        p[i] /= (float)sum;
    return -log(p[label] + 1e-30);
}

/* Adds up the gradients of the n images from first on. The second layer is complete before the
 * first one is begun, and the library sends it meanwhile. Returns the sum of the losses. */
static double compute_gradients(const struct images *data, int first, int n,
                                struct traincomm_gradients *sum)
{
    static float x[BATCH][PIXELS], hidden[BATCH][HIDDEN], p[BATCH][CLASSES];
    double loss = 0;

    memset(&gradients, 0, sizeof gradients);
    for (int k = 0; k < n; k++) {
        int label = data->labels[first + k];
        scale_pixels(data->pixels[first + k], x[k]);
        loss += forward(x[k], label, hidden[k], p[k]);
        p[k][label] -= 1; /* now the gradient of the logits */
        add(gradients.b2, 1, p[k], CLASSES);
        for (int i = 0; i < HIDDEN; i++)
            add(gradients.w2[i], hidden[k][i], p[k], CLASSES);
    }
    traincomm_gradients_ready(sum, SECOND);
    for (int k = 0; k < n; k++) {
        float of_hidden[HIDDEN] = {0};
        for (int i = 0; i < HIDDEN; i++)
            for (int j = 0; hidden[k][i] > 0 && j < CLASSES; j++)
                of_hidden[i] += weights.w2[i][j] * p[k][j];
        add(gradients.b1, 1, of_hidden, HIDDEN);
        for (int i = 0; i < PIXELS; i++)
            if (x[k][i] != 0)
                add(gradients.w1[i], x[k][i], of_hidden, HIDDEN);
    }
    traincomm_gradients_ready(sum, 0);
    return loss;
}

static void update(void)
{
    float *w = (float *)&weights, *g = (float *)&gradients, *m = (float *)&momentum;

    for (int i = 0; i < COUNT; i++) {
        m[i] = MOMENTUM * m[i] + g[i] / BATCH;
        w[i] -= RATE * m[i];
    }
}

/* ---- training */

/* One pass over the images; returns the mean loss, the same on all ranks. */
static double train_epoch(struct traincomm *comm, struct traincomm_gradients *sum,
                          const struct images *data)
{
    int rank = traincomm_rank(comm), size = traincomm_size(comm), steps = data->count / BATCH;
    int mine = BATCH * rank / size, n = BATCH * (rank + 1) / size - mine;
    double loss = 0;

    for (int step = 0; step < steps; step++) {
        loss += compute_gradients(data, step * BATCH + mine, n, sum);
        traincomm_gradients_wait(sum);
        update();
    }
    traincomm_reduce(comm, TRAINCOMM_SUM, &loss, 1);
    return loss / (steps * BATCH);
}

/* Each rank takes every size-th image. */
static double accuracy(struct traincomm *comm, const struct images *data)
{
    float x[PIXELS], hidden[HIDDEN], p[CLASSES];
    double right = 0;

    for (int k = traincomm_rank(comm); k < data->count; k += traincomm_size(comm)) {
        int best = 0;
        scale_pixels(data->pixels[k], x);
        forward(x, data->labels[k], hidden, p);
        for (int i = 1; i < CLASSES; i++)
            best = p[i] > p[best] ? i : best;
        right += best == data->labels[k];
    }
    traincomm_reduce(comm, TRAINCOMM_SUM, &right, 1);
    return right / data->count;
}

static void say_traffic(const struct traincomm_gradients *sum)
{
    struct traincomm_stats stats;

    traincomm_gradients_stats(sum, &stats);
    printf("all-reduce: %.1f MB in %llu steps, %.3f s hidden, %.3f s not\n",
           (double)stats.bytes * 1e-6, (unsigned long long)stats.rounds, stats.hidden_seconds,
           stats.unhidden_seconds);
}

static int train(struct traincomm *comm, const char *folder, int epochs, int limit)
{
    struct traincomm_gradients *sum;
    struct traincomm_failure failure = {0};
    struct images images = {0}, test = {0};
    int speaks = traincomm_rank(comm) == 0;

    if (!read_images(folder, "train", limit, &images, &failure))
        read_images(folder, "t10k", 10000, &test, &failure);
    if (traincomm_agree(comm, NULL, &failure)) { /* all ranks end if one cannot go on */
        if (speaks)
            fprintf(stderr, "rank %d on %s: %s\n", failure.rank, failure.host, failure.text);
        return 1;
    }
    if (traincomm_rank(comm) == 0)
        make_weights();
    traincomm_broadcast(comm, &weights, sizeof weights, 0);
    if (traincomm_gradients_create(comm, (float *)&gradients, COUNT, NULL, &sum))
        traincomm_abort(comm, 1);
    for (int epoch = 1; epoch <= epochs; epoch++) {
        double loss = train_epoch(comm, sum, &images), right = accuracy(comm, &test);
        if (speaks)
            printf("epoch %d: loss %.6f, accuracy %.2f %%\n", epoch, loss, 100 * right);
    }
    if (speaks)
        say_traffic(sum);
    traincomm_gradients_destroy(sum);
    free(images.pixels);
    free(images.labels);
    free(test.pixels);
    free(test.labels);
    return 0;
}

int main(int argc, char **argv)
{
    struct traincomm *comm;
    int epochs = argc > 2 ? atoi(argv[2]) : 1, limit = argc > 3 ? atoi(argv[3]) : 60000;

    if (argc < 2 || epochs < 1 || limit < BATCH) {
        fprintf(stderr, "usage: mpirun -np N fashion-mnist FOLDER [EPOCHS [IMAGES]]\n");
        return 2;
    }
    int error = traincomm_init(&comm);
    if (error) {
        fprintf(stderr, "cannot begin: %s\n", traincomm_strerror(error));
        return 1;
    }
    int status = train(comm, argv[1], epochs, limit);
    traincomm_finalize(comm);
    return status;
}
