#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/image/jpeg.h"
#include "common/rng.h"
#include "tests/unit/data_fixture.h"

static struct jpeg_decoder *decoder;

static void make_decoder(void)
{
    struct error e;
    cr_assert_eq(jpeg_decoder_create(&decoder, &e), 0);
}

static void drop_decoder(void)
{
    jpeg_decoder_destroy(decoder);
}

TestSuite(jpeg, .init = make_decoder, .fini = drop_decoder);

static struct jpeg_pixels decode_fixture(int width, int height, int channels)
{
    struct jpeg_pixels pixels;
    struct error e;
    size_t bytes;
    uint8_t *jpeg = fixture_jpeg(width, height, channels, 1, &bytes);
    cr_assert_eq(jpeg_decode(decoder, jpeg, bytes, &pixels, &e), 0, "%s", e.text);
    free(jpeg);
    return pixels;
}

Test(jpeg, decodes_grey_as_one_channel_and_colour_as_three)
{
    for (int channels = 1; channels <= 3; channels += 2) {
        struct jpeg_pixels p = decode_fixture(33, 17, channels);
        cr_expect_eq(p.width, 33);
        cr_expect_eq(p.height, 17);
        cr_expect_eq(p.channels, channels);
    }
    struct jpeg_pixels p = decode_fixture(1, 1, 1);
    cr_expect_eq(p.width * p.height, 1);
    cr_expect(abs(p.data[0] - 236) < 4, "%d", p.data[0]); /* 128 + 60 sin 1 + 60 cos 0.3 */
}

/* libjpeg marks the CMYK it writes as Adobe's: inks inverted, so a channel is ink x black. */
Test(jpeg, turns_cmyk_into_rgb)
{
    struct jpeg_pixels p = decode_fixture(40, 24, 4);
    cr_assert_eq(p.channels, 3);
    double sum = 0;
    for (int i = 0; i < 40 * 24 * 3; i++)
        sum += p.data[i];
    double mean = sum / (40 * 24 * 3);
    cr_expect(mean > 30 && mean < 160, "%g", mean);
}

static void expect_bad(const uint8_t *jpeg, size_t bytes, enum error_code code, const char *words)
{
    struct jpeg_pixels p;
    struct error e = {0};
    cr_assert_eq(jpeg_decode(decoder, jpeg, bytes, &p, &e), -(int)code, "%s", e.text);
    cr_expect_not_null(strstr(e.text, words), "%s", e.text);
}

Test(jpeg, names_what_does_not_decode_and_goes_on)
{
    size_t bytes;
    uint8_t *jpeg = fixture_jpeg(64, 64, 3, 1, &bytes);
    expect_bad((const uint8_t *)"\x89PNG\r\n\x1a\n....", 12, ERR_CORRUPT, "Not a JPEG file");
    expect_bad(jpeg, bytes / 2, ERR_CORRUPT, "end");
    expect_bad(jpeg, 0, ERR_CORRUPT, "mpty");
    decode_fixture(64, 64, 3);
    free(jpeg);
}

/* A progressive JPEG whose first scan (of the DC coefficients, which may come again) stands there
 * some more times, with what looks like scans inside another segment. */
static uint8_t *repeat_first_scan(int times, size_t *bytes)
{
    static const uint8_t segment[] = {0xff, 0xe2, 0, 10, 0xff, 0xda, 0xff, 0xda, 0xff, 0xda, 0, 0};
    size_t one;
    uint8_t *jpeg = fixture_progressive_jpeg(64, 64, &one);
    const uint8_t *first = memmem(jpeg, one, "\xff\xda", 2), *behind = first + 2;

    while (behind[0] != 0xff || behind[1] == 0)
        behind++;
    size_t scan = (size_t)(behind - first);
    uint8_t *out = malloc(one + (size_t)times * (scan + sizeof segment));
    uint8_t *to = mempcpy(out, jpeg, (size_t)(behind - jpeg));
    for (int i = 0; i < times; i++) {
        to = mempcpy(to, segment, sizeof segment);
        to = mempcpy(to, first, scan);
    }
    to = mempcpy(to, behind, one - (size_t)(behind - jpeg));
    *bytes = (size_t)(to - out);
    free(jpeg);
    return out;
}

Test(jpeg, refuses_more_scans_than_any_photograph_has)
{
    size_t bytes;
    struct jpeg_info info;
    struct jpeg_pixels pixels;
    struct error e = {0};
    uint8_t *jpeg = repeat_first_scan(JPEG_SCANS_MAX - 10, &bytes);
    cr_expect_eq(jpeg_decode(decoder, jpeg, bytes, &pixels, &e), 0, "%s", e.text);
    free(jpeg);

    jpeg = repeat_first_scan(JPEG_SCANS_MAX - 9, &bytes); /* one too many */
    expect_bad(jpeg, bytes, ERR_TOO_LARGE, "more than 100 scans");
    cr_expect_eq(jpeg_header(decoder, jpeg, bytes, &info, &e), -ERR_TOO_LARGE);
    cr_expect_eq(jpeg_open(decoder, jpeg, bytes, &info, &e), -ERR_TOO_LARGE);
    free(jpeg);
}

/* The size in the header is believed only up to a limit, before memory is taken. */
Test(jpeg, refuses_gigantic_dimensions)
{
    struct jpeg_info info;
    struct error e;
    size_t bytes;
    uint8_t *jpeg = fixture_jpeg(16, 16, 1, 1, &bytes);
    uint8_t *frame = memmem(jpeg, bytes, "\xff\xc0", 2);
    memcpy(frame + 5, "\xff\xdc\xff\xdc", 4); /* 65500 x 65500 */
    expect_bad(jpeg, bytes, ERR_TOO_LARGE, "65500 x 65500");
    cr_expect_eq(jpeg_header(decoder, jpeg, bytes, &info, &e), -ERR_TOO_LARGE);
    free(jpeg);
}

/* A part of a picture with fine detail, against the same pixels of the whole. */
static void check_rectangle(const uint8_t *jpeg, size_t bytes, const struct jpeg_pixels *whole,
                            struct jpeg_rectangle wanted)
{
    struct jpeg_rectangle part = wanted;
    struct jpeg_pixels p;
    struct jpeg_info info;
    struct error e;
    int same = whole->channels < 3 ? 1 : 3;
    cr_assert_eq(jpeg_open(decoder, jpeg, bytes, &info, &e), 0, "%s", e.text);
    int by = wanted.halved ? 2 : 1;
    cr_assert((info.width + by - 1) / by == whole->width &&
              (info.height + by - 1) / by == whole->height);
    cr_assert_eq(jpeg_read(decoder, &part, &p, &e), 0, "%s", e.text);
    cr_assert(part.x <= wanted.x && part.y <= wanted.y &&
              part.x + part.width >= wanted.x + wanted.width &&
              part.y + part.height >= wanted.y + wanted.height);
    for (int y = wanted.y; y < wanted.y + wanted.height; y++)
        for (int x = wanted.x; x < wanted.x + wanted.width; x++)
            cr_assert_arr_eq(p.data + ((y - part.y) * part.width + x - part.x) * p.channels,
                             whole->data + (y * whole->width + x) * whole->channels, (size_t)same,
                             "%d %d of %d+%d %d+%d", x, y, wanted.x, wanted.width, wanted.y,
                             wanted.height);
}

/* The whole image; halved: at half its size. */
static void decode_picture(const uint8_t *jpeg, size_t bytes, bool halved,
                           struct jpeg_pixels *whole)
{
    struct jpeg_info info;
    struct error e;
    if (!halved) {
        cr_assert_eq(jpeg_decode(decoder, jpeg, bytes, whole, &e), 0);
        return;
    }
    cr_assert_eq(jpeg_open(decoder, jpeg, bytes, &info, &e), 0);
    struct jpeg_rectangle all = {0, 0, (info.width + 1) / 2, (info.height + 1) / 2, true, false};
    cr_assert_eq(jpeg_read(decoder, &all, whole, &e), 0);
    cr_assert(all.width == whole->width && all.x == 0 && all.y == 0);
}

static void check_rectangles(bool halved)
{
    static const int sizes[][3] = {
        {150, 97, 3},
        {150, 97, 1},
        {150, 97, 4},
        {64,  64, 3},
        {1,   1,  3},
        {17,  3,  3},
        {5,   90, 1}
    };
    struct rng r = rng_stream(2, 0, 0, RNG_SYNTHETIC);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int width = sizes[i][0], height = sizes[i][1];
        size_t bytes;
        struct jpeg_pixels whole;
        uint8_t *jpeg = fixture_jpeg(width, height, sizes[i][2], 3, &bytes);
        decode_picture(jpeg, bytes, halved, &whole);
        width = whole.width;
        height = whole.height;
        size_t n = (size_t)(width * height * whole.channels);
        uint8_t *copy = malloc(n);
        memcpy(copy, whole.data, n);
        whole.data = copy;
        check_rectangle(jpeg, bytes, &whole,
                        (struct jpeg_rectangle){0, 0, width, height, halved, false});
        for (int k = 0; k < 200; k++) {
            struct jpeg_rectangle part = {(int)rng_below(&r, (uint32_t)width),
                                          (int)rng_below(&r, (uint32_t)height),
                                          0,
                                          0,
                                          halved,
                                          false};
            part.width = 1 + (int)rng_below(&r, (uint32_t)(width - part.x));
            part.height = 1 + (int)rng_below(&r, (uint32_t)(height - part.y));
            check_rectangle(jpeg, bytes, &whole, part);
        }
        free(jpeg);
        free(copy);
    }
}

Test(jpeg, a_part_equals_the_same_part_of_the_whole)
{
    check_rectangles(false);
}

Test(jpeg, a_part_at_half_the_size_equals_the_same_part_of_the_whole_at_half)
{
    check_rectangles(true);
}

/* Even where only rows above the cut are wanted. */
Test(jpeg, a_truncated_image_is_refused_for_any_part)
{
    size_t bytes;
    uint8_t *jpeg = fixture_jpeg(200, 200, 3, 1, &bytes);
    for (size_t cut = 2; cut < bytes - 700; cut += 97) {
        struct jpeg_rectangle top = {0, 0, 20, 8, false, false};
        struct jpeg_pixels p;
        struct jpeg_info info;
        struct error e;
        int rc = jpeg_open(decoder, jpeg, bytes - cut, &info, &e);
        if (rc == 0)
            rc = jpeg_read(decoder, &top, &p, &e);
        cr_assert_eq(rc, -ERR_CORRUPT, "without the last %zu bytes", cut);
    }
    decode_fixture(64, 64, 3);
    free(jpeg);
}

Test(jpeg, random_damage_never_crashes)
{
    struct rng r = rng_stream(1, 0, 0, RNG_SYNTHETIC);
    struct jpeg_pixels p;
    struct error e;
    size_t bytes;
    int bad = 0;
    uint8_t *good = fixture_jpeg(40, 40, 3, 1, &bytes);
    for (int i = 0; i < 2000; i++) {
        size_t n = i % 2 ? bytes : 1 + rng_below(&r, (uint32_t)bytes);
        uint8_t *jpeg = malloc(n);
        memcpy(jpeg, good, n);
        for (int k = 0; k < 3; k++)
            jpeg[rng_below(&r, (uint32_t)n)] = (uint8_t)rng_u32(&r);
        /* Up to 65535 x 65535 may stand there now; the small ones are decoded. */
        struct jpeg_info info;
        int rc = jpeg_header(decoder, jpeg, n, &info, &e);
        if (rc == 0 && (long)info.width * info.height < 1000000)
            rc = jpeg_decode(decoder, jpeg, n, &p, &e);
        bad += rc != 0;
        if (rc == 0 && jpeg_open(decoder, jpeg, n, &info, &e) == 0) {
            struct jpeg_rectangle part = {info.width / 3,      info.height / 3, info.width / 3 + 1,
                                          info.height / 3 + 1, false,           false};
            jpeg_read(decoder, &part, &p, &e);
        }
        free(jpeg);
    }
    cr_assert(bad > 0 && bad < 2000);
    free(good);
}
