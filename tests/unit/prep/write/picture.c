#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/image/jpeg.h"
#include "prep/write/picture.h"
#include "tests/unit/data_fixture.h"

static struct picture_maker *maker(int resize)
{
    struct picture_options options = {.resize = resize, .quality = 95};
    struct picture_maker *m;
    struct error e;
    cr_assert_eq(picture_maker_create(&options, &m, &e), 0, "%s", e.text);
    return m;
}

/* The fixture's picture through a maker, decoded again: its mean level, and its size in *x. */
static double mean(const struct tf_example *x)
{
    struct jpeg_decoder *decoder;
    struct jpeg_pixels pixels;
    struct error e;
    double sum = 0;

    cr_assert_eq(jpeg_decoder_create(&decoder, &e), 0);
    cr_assert_eq(jpeg_decode(decoder, x->jpeg, x->jpeg_bytes, &pixels, &e), 0, "%s", e.text);
    cr_assert(pixels.width == x->width && pixels.height == x->height);
    cr_assert_eq(pixels.channels, x->channels);
    size_t count = (size_t)(pixels.width * pixels.height * pixels.channels);
    for (size_t i = 0; i < count; i++)
        sum += pixels.data[i];
    jpeg_decoder_destroy(decoder);
    return sum / (double)count;
}

Test(picture, a_jpeg_is_kept_byte_for_byte)
{
    struct source_image in = {0};
    struct tf_example x = {0};
    struct error e;
    uint8_t *jpeg = fixture_jpeg(50, 40, 3, 1, &in.file_bytes);

    in.file = jpeg;
    for (int resize = 0; resize <= 40; resize += 40) { /* 40: not larger than that */
        struct picture_maker *m = maker(resize);
        cr_assert_eq(picture_make(m, &in, &x, &e), 0, "%s", e.text);
        cr_assert(x.jpeg == jpeg && x.jpeg_bytes == in.file_bytes);
        cr_assert(x.width == 50 && x.height == 40 && x.channels == 3);
        picture_maker_destroy(m);
    }
    free(jpeg);
}

Test(picture, cmyk_becomes_rgb)
{
    struct picture_maker *m = maker(0);
    struct source_image in = {0};
    struct tf_example x = {0};
    struct error e;
    uint8_t *jpeg = fixture_jpeg(50, 40, 4, 1, &in.file_bytes);

    in.file = jpeg;
    cr_assert_eq(picture_make(m, &in, &x, &e), 0, "%s", e.text);
    cr_assert(x.width == 50 && x.height == 40 && x.channels == 3);
    mean(&x);
    free(jpeg);
    picture_maker_destroy(m);
}

Test(picture, resizing_keeps_the_shape_and_the_light)
{
    static const int sizes[][4] = {
        {200, 100, 64, 32 },
        {100, 200, 32, 64 },
        {333, 333, 32, 32 },
        {33,  500, 32, 485},
        {32,  500, 32, 500}
    };
    struct picture_maker *m = maker(32);

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int channels = 1; channels <= 3; channels += 2) {
            struct source_image in = {0};
            struct tf_example x = {0}, before = {0};
            struct error e;
            uint8_t *jpeg = fixture_jpeg(sizes[i][0], sizes[i][1], channels, 2, &in.file_bytes);
            in.file = jpeg;
            cr_assert_eq(picture_make(m, &in, &x, &e), 0, "%s", e.text);
            cr_assert(x.width == sizes[i][2] && x.height == sizes[i][3], "%d x %d", x.width,
                      x.height);
            cr_assert_eq(x.channels, channels);
            before = (struct tf_example){.width = sizes[i][0],
                                         .height = sizes[i][1],
                                         .channels = channels,
                                         .jpeg = jpeg,
                                         .jpeg_bytes = in.file_bytes};
            cr_assert_float_eq(mean(&x), mean(&before), 1.5);
            free(jpeg);
        }
    picture_maker_destroy(m);
}

Test(picture, a_cut_off_jpeg_is_refused_but_one_with_bytes_behind_it_is_kept)
{
    struct picture_maker *m = maker(0);
    struct source_image in = {0};
    struct tf_example x = {0};
    struct error e;
    uint8_t *jpeg = fixture_jpeg(200, 150, 3, 1, &in.file_bytes);
    size_t bytes = in.file_bytes;

    in.file = jpeg;
    for (in.file_bytes = 0; in.file_bytes < bytes - 40; in.file_bytes += 61)
        cr_assert_neq(picture_make(m, &in, &x, &e), 0, "%zu of %zu bytes", in.file_bytes, bytes);
    jpeg = realloc(jpeg, bytes + 1000);
    memset(jpeg + bytes, 0, 1000);
    in.file = jpeg;
    in.file_bytes = bytes + 1000;
    cr_assert_eq(picture_make(m, &in, &x, &e), 0, "%s", e.text);
    cr_assert_eq(x.jpeg_bytes, bytes + 1000);
    free(jpeg);
    picture_maker_destroy(m);
}

/* An IHDR chunk of 65500 x 65500: libpng is not to take memory for it. */
Test(picture, a_png_bomb_is_refused_by_its_size)
{
    static const uint8_t png[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0,    0, 0,    13,
                                  'I',  'H', 'D', 'R', 0,    0,    0xff, 0xdc, 0,    0, 0xff, 0xdc,
                                  8,    2,   0,   0,   0,    0x1c, 0x35, 0x81, 0x4c, 0, 0,    0,
                                  0,    'I', 'D', 'A', 'T',  0x35, 0xaf, 0x06, 0x1e};
    struct picture_maker *m = maker(0);
    struct source_image in = {.file = png, .file_bytes = sizeof png};
    struct tf_example x = {0};
    struct error e;

    int rc = picture_make(m, &in, &x, &e);
    cr_assert(rc == -ERR_TOO_LARGE, "%d %s", rc, e.text);
    picture_maker_destroy(m);
}
