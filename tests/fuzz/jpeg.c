/* A JPEG: its header alone, all of it, and a part at half size, as the loader asks for. */
#include <string.h>

#include "common/image/jpeg.h"
#include "common/dataset/probe.h"
#include "tests/fuzz/fuzz.h"

#define PIXELS_TRIED 1000000 /* more of them only take time */

static struct jpeg_decoder *decoder;

/* Every pixel that is promised is read. */
static void jpeg_touch(const struct jpeg_pixels *p)
{
    unsigned sum = 0;
    size_t bytes = (size_t)p->width * (size_t)p->height * (size_t)p->channels;

    FUZZ_CHECK(p->width > 0 && p->height > 0 &&
                   (p->channels == 1 || p->channels == 3 || p->channels == 4),
               "%d x %d x %d", p->width, p->height, p->channels);
    for (size_t i = 0; i < bytes; i++)
        sum += p->data[i];
    __asm__ volatile("" : : "r"(sum));
}

static void jpeg_part(const uint8_t *data, size_t bytes, const struct jpeg_info *info)
{
    struct jpeg_rectangle part = {
        0, 0, info->width, info->height, .halved = bytes & 1, .grey = bytes & 2};
    struct jpeg_pixels pixels;
    struct jpeg_info again;
    struct error e;

    if (part.halved) {
        part.width = (part.width + 1) / 2;
        part.height = (part.height + 1) / 2;
    }
    part.x = part.width / 3;
    part.y = part.height / 3;
    part.width -= part.x;
    part.height -= part.y;
    if (jpeg_open(decoder, data, bytes, &again, &e) == 0 &&
        jpeg_read(decoder, &part, &pixels, &e) == 0)
        jpeg_touch(&pixels);
}

int fuzz_jpeg(const uint8_t *data, size_t bytes)
{
    struct jpeg_info info;
    struct jpeg_pixels pixels;
    struct error e;
    int width, height;

    if (!decoder)
        FUZZ_CHECK(jpeg_decoder_create(&decoder, &e) == 0, "%s", e.text);
    if (dataset_image_size(data, bytes, &width, &height))
        FUZZ_CHECK(width >= 0 && height >= 0, "%d x %d", width, height);
    if (jpeg_header(decoder, data, bytes, &info, &e))
        return 0;
    FUZZ_CHECK((long long)info.width * info.height <= JPEG_PIXELS_MAX, "%d x %d", info.width,
               info.height);
    if ((long long)info.width * info.height > PIXELS_TRIED)
        return 0;
    if (jpeg_decode(decoder, data, bytes, &pixels, &e) == 0) {
        jpeg_touch(&pixels);
        FUZZ_CHECK(pixels.width == info.width && pixels.height == info.height, "%d x %d",
                   pixels.width, pixels.height);
    }
    jpeg_part(data, bytes, &info);
    return 0;
}
