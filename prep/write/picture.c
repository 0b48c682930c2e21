#include "prep/write/picture.h"

#include <stdlib.h>

#include "common/image/png.h"
#include "common/image/resample.h"
#include "common/xalloc.h"
#include "prep/write/encode.h"

struct picture_maker {
    struct picture_options options;
    struct jpeg_decoder *decoder;
    struct encoder *encoder;
    struct png_decoder png;
    uint8_t *small; /* (height, width, channels) */
    float *floats,
        *row; /* floats: resized image (height, width, 3); row: scratch for a row of the original */
    struct resample_filter rows, columns;
};

int picture_maker_create(const struct picture_options *options, struct picture_maker **out,
                         struct error *e)
{
    struct picture_maker *m = xcalloc(1, sizeof *m);

    *out = NULL;
    m->options = *options;
    int rc = jpeg_decoder_create(&m->decoder, e);
    if (rc == 0)
        rc = encoder_create(&m->encoder, e);
    if (rc) {
        picture_maker_destroy(m);
        return rc;
    }
    *out = m;
    return 0;
}

void picture_maker_destroy(struct picture_maker *m)
{
    if (!m)
        return;
    jpeg_decoder_destroy(m->decoder);
    encoder_destroy(m->encoder);
    resample_filter_free(&m->rows);
    resample_filter_free(&m->columns);
    png_decoder_free(&m->png);
    free(m->small);
    free(m->floats);
    free(m->row);
    free(m);
}

static int picture_take_memory(void *memory, size_t bytes, struct error *e)
{
    void **at = memory;
    free(*at);
    *at = malloc(bytes);
    return *at ? 0 : error_set(e, ERR_NO_MEMORY, "no memory for an image of %zu bytes", bytes);
}

static int picture_resampled_size(const struct jpeg_pixels *in, int short_side, int *width,
                                  int *height)
{
    int shorter = in->width < in->height ? in->width : in->height;

    if (short_side == 0 || shorter <= short_side)
        return 0;
    /* Round with integers, so that the result is the same on every machine. */
    *width = (int)(((int64_t)in->width * short_side * 2 + shorter) / (2 * shorter));
    *height = (int)(((int64_t)in->height * short_side * 2 + shorter) / (2 * shorter));
    return 1;
}

static void picture_to_bytes(const float *floats, size_t pixels, int channels, uint8_t *out)
{
    for (size_t i = 0; i < pixels; i++)
        for (int c = 0; c < channels; c++)
            out[i * (size_t)channels + (size_t)c] = (uint8_t)floats[3 * i + (size_t)c];
}

static int picture_shrink(struct picture_maker *m, struct jpeg_pixels *pixels, int width,
                          int height, struct error *e)
{
    static const struct resample_output whole = {
        .round = true, .scale = {1, 1, 1},
             .grey_channels = 3
    };
    struct resample_box box = {0, 0, pixels->width, pixels->height};
    size_t count = (size_t)width * (size_t)height, channels = (size_t)pixels->channels;

    int rc = resample_filter_triangle(&m->rows, 0, pixels->height, false, height, 0, height, e);
    if (rc == 0)
        rc = resample_filter_triangle(&m->columns, 0, pixels->width, false, width, 0, width, e);
    if (rc == 0)
        rc = picture_take_memory(&m->row, ((size_t)pixels->width * channels + 1) * sizeof *m->row,
                                 e);
    if (rc == 0)
        rc = picture_take_memory(&m->floats, 3 * count * sizeof *m->floats, e);
    if (rc == 0)
        rc = picture_take_memory(&m->small, count * channels, e);
    if (rc)
        return rc;
    resample(pixels, &box, &m->rows, &m->columns, &whole, m->row, m->floats);
    picture_to_bytes(m->floats, count, pixels->channels, m->small);
    *pixels = (struct jpeg_pixels){m->small, width, height, pixels->channels};
    return 0;
}

static int picture_encode_pixels(struct picture_maker *m, struct jpeg_pixels pixels,
                                 struct tf_example *x, struct error *e)
{
    int quality = m->options.reencode ? m->options.quality : ENCODE_QUALITY_BEST;
    int width, height, rc = 0;

    if (picture_resampled_size(&pixels, m->options.resize, &width, &height)) {
        quality = m->options.quality;
        rc = picture_shrink(m, &pixels, width, height, e);
    }
    if (rc)
        return rc;
    x->width = pixels.width;
    x->height = pixels.height;
    x->channels = pixels.channels;
    return encode(m->encoder, pixels.data, pixels.width, pixels.height, pixels.channels, quality,
                  &x->jpeg, &x->jpeg_bytes, e);
}

static int picture_keep(struct picture_maker *m, const struct source_image *in,
                        const struct jpeg_info *info, struct tf_example *x, struct error *e)
{
    struct jpeg_pixels pixels;

    /* Decode only images that seem truncated; decoding all of them would take hours. */
    if (!jpeg_has_end(in->file, in->file_bytes)) {
        int rc = jpeg_decode(m->decoder, in->file, in->file_bytes, &pixels, e);
        if (rc)
            return rc;
    }
    x->width = info->width;
    x->height = info->height;
    x->channels = info->channels;
    x->jpeg = in->file;
    x->jpeg_bytes = in->file_bytes;
    return 0;
}

static int picture_make_from_jpeg(struct picture_maker *m, const struct source_image *in,
                                  struct tf_example *x, struct error *e)
{
    struct jpeg_info info;
    struct jpeg_pixels pixels = {0};
    int width, height;

    int rc = jpeg_header(m->decoder, in->file, in->file_bytes, &info, e);
    if (rc)
        return rc;
    pixels.width = info.width;
    pixels.height = info.height;
    bool same_size =
        info.channels != 4 && !picture_resampled_size(&pixels, m->options.resize, &width, &height);
    if (same_size && !m->options.reencode)
        return picture_keep(m, in, &info, x, e);
    rc = jpeg_decode(m->decoder, in->file, in->file_bytes, &pixels, e);
    if (rc == 0)
        rc = picture_encode_pixels(m, pixels, x, e);
    if (rc == 0 && same_size && x->jpeg_bytes >= in->file_bytes) {
        x->jpeg = in->file;
        x->jpeg_bytes = in->file_bytes;
    }
    return rc;
}

int picture_make(struct picture_maker *m, const struct source_image *in, struct tf_example *x,
                 struct error *e)
{
    struct jpeg_pixels pixels = {in->pixels, in->width, in->height, in->channels};

    if (!in->file)
        return picture_encode_pixels(m, pixels, x, e);
    if (!png_is(in->file, in->file_bytes))
        return picture_make_from_jpeg(m, in, x, e);
    int rc = png_decode(&m->png, in->file, in->file_bytes, 3, &pixels, e);
    return rc ? rc : picture_encode_pixels(m, pixels, x, e);
}
