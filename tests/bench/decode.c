/*
 * Images a second on one core, from JPEGs in memory: decode FOLDER. Prints a JSON object: bare
 * decoding of whole images by libjpeg-turbo, and what training does to each image in each family:
 * decode what is needed, random crop to 224, flip, normalise. The rounds are interleaved, the best
 * of each counts, in seconds of the processor. Run it pinned (taskset -c 0).
 */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/dataset/file_list.h"
#include "common/system/file.h"
#include "worker/data/augment.h"

#define SIZE       224
#define MOST_FILES 4096
#define ROUNDS     3

static struct {
    char *bytes;
    size_t length;
} files[MOST_FILES];
static int file_count;
static float out[SIZE * SIZE * 3];

static int take_file(const char *path, const struct stat *st, int type)
{
    struct error e;
    (void)st;
    if (type != FTW_F || !dataset_is_image_name(path) || file_count == MOST_FILES)
        return 0;
    return file_read(path, 64 << 20, &files[file_count].bytes, &files[file_count].length, &e)
               ? -1
               : (file_count++, 0);
}

static int bench_decode_whole(struct jpeg_decoder *d, int i, struct error *e)
{
    struct jpeg_pixels pixels;
    return jpeg_decode(d, (uint8_t *)files[i].bytes, files[i].length, &pixels, e);
}

static int decode_and_augment(struct jpeg_decoder *d, struct augmenter *a,
                              enum job_preprocess family, int i, int round, struct error *e)
{
    struct rng r = rng_stream(1, round, i, RNG_AUGMENT);
    struct augment_plan plan;
    struct jpeg_rectangle part;
    struct jpeg_pixels pixels;
    struct jpeg_info info;
    int rc = jpeg_open(d, (uint8_t *)files[i].bytes, files[i].length, &info, e);

    if (rc)
        return rc;
    augment_plan_train(family, (struct augment_parts){true, true}, info.width, info.height, SIZE,
                       &r, &plan);
    rc = augment_prepare(a, family, &plan, SIZE, &part, e);
    if (rc == 0)
        rc = jpeg_read(d, &part, &pixels, e);
    return rc ? rc : augment_apply(a, family, &plan, &pixels, &part, out, e);
}

/* Of this thread: what others run on the core does not count. */
static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* family -1: bare decoding. Images a second of one pass, or 0. */
static double bench_decode_pass(struct jpeg_decoder *d, struct augmenter *a, int family, int round)
{
    double started = cpu_seconds();
    struct error e;

    for (int i = 0; i < file_count; i++)
        if (family < 0 ? bench_decode_whole(d, i, &e)
                       : decode_and_augment(d, a, (enum job_preprocess)family, i, round, &e)) {
            fprintf(stderr, "decode: %s\n", e.text);
            return 0;
        }
    return file_count / (cpu_seconds() - started);
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"bare", "tpu", "mlperf", "torchvision"};
    double best[4] = {0};
    struct jpeg_decoder *decoder;
    struct augmenter augmenter = {0};
    struct error e;

    if (argc != 2 || ftw(argv[1], take_file, 16) || file_count == 0 ||
        jpeg_decoder_create(&decoder, &e)) {
        fprintf(stderr, "usage: decode FOLDER-OF-JPEGS\n");
        return 2;
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int row = 0; row < 4; row++) {
            double rate = bench_decode_pass(decoder, &augmenter, row - 1, round);
            if (rate == 0)
                return 1;
            best[row] = rate > best[row] ? rate : best[row];
        }
    for (int row = 0; row < 4; row++)
        printf("%s\"%s_images_per_sec\": %.1f", row ? ", " : "{", names[row], best[row]);
    printf("}\n");
    augmenter_free(&augmenter);
    jpeg_decoder_destroy(decoder);
    return 0;
}
