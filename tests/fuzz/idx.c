/* MNIST's files: a byte says how many images' file the input begins with, the labels are the rest.
 */
#include <stdlib.h>
#include <sys/stat.h>
#include <stdio.h>
#include <limits.h>

#include "prep/source/source.h"
#include "tests/fuzz/fuzz.h"

static void idx_read_all(struct source *s)
{
    struct error e;

    for (int64_t i = 0; i < s->images[DATASET_TRAIN] && i < 64; i++) {
        struct source_image x = {0};
        unsigned sum = 0;
        FUZZ_CHECK(s->kind->read(s, DATASET_TRAIN, i, &x, &e) == 0, "%s", e.text);
        FUZZ_CHECK(x.class >= 0 && x.class < s->classes.count, "class %d of %d", x.class,
                   s->classes.count);
        for (int at = 0; at < x.width * x.height * x.channels; at++)
            sum += x.pixels[at];
        __asm__ volatile("" : : "r"(sum));
        source_image_release(&x);
    }
}

int fuzz_idx(const uint8_t *data, size_t bytes)
{
    struct source_options options = {.pad = bytes % 3 == 0 ? 2 : 0};
    struct source *s;
    struct error e;
    size_t images = bytes ? (size_t)data[0] * 8 : 0;

    if (bytes == 0)
        return 0;
    if (images > bytes - 1)
        images = bytes - 1;
    fuzz_file("train-images-idx3-ubyte", data + 1, images);
    fuzz_file("train-labels-idx1-ubyte", data + 1 + images, bytes - 1 - images);
    if (source_open("idx", fuzz_folder(), &options, &s, &e))
        return 0;
    idx_read_all(s);
    source_destroy(s);
    return 0;
}
