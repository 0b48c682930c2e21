/*
 * Images a second of the loader: tests/bench/loader DIR [train|validation] [size] [threads]
 * [tpu|mlperf|torchvision] [fp32|bf16] [trivial|randaugment|jitter|erasing]. Prints one JSON
 * object. Run it pinned (taskset -c 0) for the figure of one core.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "worker/data/loader.h"

static int loader_measure(const struct loader_config *c)
{
    struct loader_batch batch;
    struct loader *l;
    struct error e;
    int64_t images = 0;
    double started = clock_monotonic(), waited = 0;

    if (loader_create(c, &l, &e)) {
        fprintf(stderr, "%s\n", e.text);
        return 1;
    }
    while (loader_next(l, &batch, &e) == 0 && batch.n > 0) {
        images += batch.n;
        waited += batch.wait_seconds;
    }
    double spent = clock_monotonic() - started;
    loader_destroy(l);
    printf("{\"images\": %lld, \"seconds\": %.3f, \"images_per_sec\": %.0f, \"waited\": %.3f}\n",
           (long long)images, spent, (double)images / spent, waited);
    return images == 0;
}

static enum job_preprocess loader_family(const char *name)
{
    if (strcmp(name, "mlperf") == 0)
        return JOB_PREPROCESS_MLPERF;
    return strcmp(name, "tpu") == 0 ? JOB_PREPROCESS_TPU : JOB_PREPROCESS_TORCHVISION;
}

int main(int argc, char **argv)
{
    struct dataset *d;
    struct error e;

    if (argc < 2) {
        fprintf(stderr, "usage: loader DIR [train|validation] [size] [threads] "
                        "[tpu|mlperf|torchvision] [fp32|bf16] "
                        "[trivial|randaugment|jitter|erasing]\n");
        return 2;
    }
    enum dataset_role role =
        argc > 2 && strcmp(argv[2], "validation") == 0 ? DATASET_EVAL : DATASET_TRAIN;
    if (dataset_open(argv[1], role, &d, &e)) {
        fprintf(stderr, "%s\n", e.text);
        return 1;
    }
    struct loader_config c = {
        .dataset = d,
        .role = role,
        .preprocess = argc > 5 ? loader_family(argv[5]) : JOB_PREPROCESS_TPU,
        .augment = true,
        .random_crop = true,
        .random_flip = true,
        .shuffle = true,
        .images = dataset_images(d),
        .image_size = argc > 3 ? atoi(argv[3]) : 32,
        .classes = 1 << 20,
        .batch = 64,
        .world = 1,
        .seed = 1,
        .threads = argc > 4 ? atoi(argv[4]) : 1,
        .depth = 4,
        .bf16 = argc > 6 && strcmp(argv[6], "bf16") == 0,
    };
    const char *distorts = argc > 7 ? argv[7] : "";
    if (strcmp(distorts, "trivial") == 0)
        c.distort.auto_augment = JOB_AUTO_AUGMENT_TRIVIAL;
    if (strcmp(distorts, "randaugment") == 0)
        c.distort = (struct distort_config){JOB_AUTO_AUGMENT_RANDAUGMENT, 2, 9, 0, 0, 0};
    if (strcmp(distorts, "jitter") == 0)
        c.distort.color_jitter = 0.4, c.distort.hue_jitter = 0.1;
    if (strcmp(distorts, "erasing") == 0)
        c.distort.erasing = 1;
    c.batch = c.images < c.batch ? (int)c.images : c.batch;
    c.steps_per_epoch = c.steps = c.images / c.batch;
    int rc = loader_measure(&c);
    dataset_close(d);
    return rc;
}
