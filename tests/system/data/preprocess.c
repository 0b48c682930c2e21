/*
 * For tests/system/data/preprocess.sh: what worker/data makes of one JPEG.
 *   preprocess FILE FAMILY SIZE eval|NUMBER      NUMBER: the training crop of that image of seed 1,
 * epoch 0. Prints the plan in a line (crop x y width height, flip), then the (SIZE, SIZE, 3) floats
 * as they lie in memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/system/file.h"
#include "worker/data/augment.h"

static enum job_preprocess preprocess_family(const char *name)
{
    if (strcmp(name, "mlperf") == 0)
        return JOB_PREPROCESS_MLPERF;
    return strcmp(name, "tpu") == 0 ? JOB_PREPROCESS_TPU : JOB_PREPROCESS_TORCHVISION;
}

static void preprocess_make_plan(char **argv, const struct jpeg_info *info,
                                 struct augment_plan *plan)
{
    enum job_preprocess family = preprocess_family(argv[2]);
    int size = atoi(argv[3]);

    if (strcmp(argv[4], "eval") == 0) {
        augment_plan_eval(family, info->width, info->height, size, 0, plan);
        return;
    }
    struct rng r = rng_stream(1, 0, atoi(argv[4]), RNG_AUGMENT);
    augment_plan_train(family, (struct augment_parts){true, true}, info->width, info->height, size,
                       &r, plan);
}

static int preprocess_run(char **argv, struct error *e)
{
    enum job_preprocess family = preprocess_family(argv[2]);
    int size = atoi(argv[3]);
    size_t bytes, floats = (size_t)size * (size_t)size * 3;
    struct jpeg_decoder *decoder;
    struct augmenter augmenter = {0};
    struct augment_plan plan;
    struct jpeg_rectangle part;
    struct jpeg_pixels pixels;
    struct jpeg_info info;
    float *out = malloc(floats * sizeof *out);
    char *jpeg;

    if (!out || file_read(argv[1], 64 << 20, &jpeg, &bytes, e) ||
        jpeg_decoder_create(&decoder, e) || jpeg_open(decoder, (uint8_t *)jpeg, bytes, &info, e))
        return 1;
    preprocess_make_plan(argv, &info, &plan);
    if (augment_prepare(&augmenter, family, &plan, size, &part, e) ||
        jpeg_read(decoder, &part, &pixels, e) ||
        augment_apply(&augmenter, family, &plan, &pixels, &part, out, e))
        return 1;
    printf("%d %d %d %d %d\n", plan.box.x, plan.box.y, plan.box.width, plan.box.height, plan.flip);
    fwrite(out, sizeof *out, floats, stdout);
    free(out);
    free(jpeg);
    augmenter_free(&augmenter);
    jpeg_decoder_destroy(decoder);
    return 0;
}

int main(int argc, char **argv)
{
    struct error e = {0};
    if (argc != 5) {
        fprintf(stderr, "usage: preprocess FILE tpu|mlperf|torchvision SIZE eval|NUMBER\n");
        return 2;
    }
    if (preprocess_run(argv, &e)) {
        fprintf(stderr, "preprocess: %s\n", e.text);
        return 1;
    }
    return 0;
}
