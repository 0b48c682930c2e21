/*
 * Data parallelism is exact: one step of a whole batch on one rank, and the same images split over
 * the ranks, give the same gradients up to rounding. Batch norm is in evaluation mode, as its batch
 * statistics are each rank's own.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/mpi/tap.h"
#include "worker/comm/traincomm.h"
#include "worker/model/forward_backward.h"
#include "worker/model/init.h"
#include "worker/model/model.h"
#include "worker/model/weights.h"

#define IMAGES  16
#define SIZE    32
#define CLASSES 10
#define FLOATS  (SIZE * SIZE * 3)

static struct model *data_parallel_model(void)
{
    struct model_config config = {
        .arch = arch_find("resnet50"),
        .stem = JOB_STEM_IMAGENET,
        .classes = CLASSES,
        .image_size = SIZE,
        .batch = IMAGES,
        .threads = 1,
        .bn_momentum = 0.1,
        .frozen_bn = true,
    };
    struct model *m = NULL;
    struct error e;

    if (model_create(&config, &m, &e)) {
        printf("# %s\n", e.text);
        return NULL;
    }
    model_init(m, 7);
    /* Without batch statistics every block adds its whole branch: small last gammas keep the sums
     * small. */
    for (size_t i = 0; i < model_tensor_count(m); i++) {
        const struct model_tensor *t = model_tensor(m, i);
        if (strstr(t->name, ".bn3.weight"))
            for (size_t k = 0; k < t->count; k++)
                model_params(m)[t->offset + k] = 0.2f;
    }
    return m;
}

static void make_images(float *images, int32_t *labels)
{
    unsigned state = 1;
    for (size_t i = 0; i < (size_t)IMAGES * FLOATS; i++) {
        state = state * 1664525u + 1013904223u;
        images[i] = (float)(state >> 8) / (1 << 23) - 1.0f;
    }
    for (int i = 0; i < IMAGES; i++)
        labels[i] = (i * 3) % CLASSES;
}

static double relative_distance(const float *a, const float *b, size_t n)
{
    double difference = 0, norm = 0;
    for (size_t i = 0; i < n; i++) {
        difference += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        norm += (double)b[i] * b[i];
    }
    return norm > 0 ? sqrt(difference / norm) : INFINITY;
}

static void gradients_ready(size_t offset, size_t count, void *gradients)
{
    (void)count;
    traincomm_gradients_ready(gradients, offset);
}

int main(void)
{
    int32_t labels[IMAGES];

    struct traincomm *c;
    if (traincomm_init(&c))
        return 1;
    int rank = traincomm_rank(c), world = traincomm_size(c);
    struct model *m = data_parallel_model();
    struct traincomm_options options = {.bucket_bytes = 1 << 20};
    struct traincomm_gradients *all = NULL;
    float *images = malloc((size_t)IMAGES * FLOATS * sizeof *images);
    size_t n = m ? model_param_count(m) : 0;
    float *whole = malloc(n * sizeof *whole + 1);

    if (!m || !images || !whole || traincomm_gradients_create(c, model_grads(m), n, &options, &all))
        traincomm_abort(c, 1);
    make_images(images, labels);

    double loss = model_forward(m, images, labels, IMAGES, NULL);
    model_backward(m, 1.0, false, NULL, NULL);
    memcpy(whole, model_grads(m), n * sizeof *whole);

    int mine = IMAGES / world;
    double part =
        model_forward(m, images + (size_t)rank * mine * FLOATS, labels + rank * mine, mine, NULL);
    model_backward(m, 1.0 / world, false, gradients_ready, all);
    traincomm_gradients_wait(all);
    traincomm_reduce(c, TRAINCOMM_SUM, &part, 1);

    double distance = relative_distance(model_grads(m), whole, n);
    if (rank == 0)
        printf("# loss %.9g and %.9g, relative distance of the gradients %.2g\n", loss,
               part / world, distance);
    tap_check(isfinite(loss) && fabs(part / world - loss) < 1e-6 * fabs(loss),
              "the mean loss of the ranks is the loss of the whole batch");
    tap_check(distance < 1e-5, "the summed gradients are the gradient of the whole batch");
    traincomm_gradients_destroy(all);
    model_destroy(m);
    free(images);
    free(whole);
    int failed = tap_done();
    traincomm_finalize(c);
    return failed;
}
