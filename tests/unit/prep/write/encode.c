#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/image/jpeg.h"
#include "common/rng.h"
#include "prep/write/encode.h"

/* The worst case for a JPEG: noise, at odd sizes. The encoder is kept from image to image, so that
 * a small one after a large one is seen too. */
Test(encode, pixels_come_back_within_2)
{
    static const int sizes[][2] = {
        {28,  28 },
        {1,   1  },
        {200, 100},
        {7,   13 },
        {300, 300},
        {28,  28 }
    };
    struct rng r = rng_stream(1, 0, 0, RNG_SYNTHETIC);
    struct jpeg_decoder *decoder;
    struct encoder *encoder;
    struct error e;
    uint8_t pixels[300 * 300];
    cr_assert_eq(encoder_create(&encoder, &e), 0);
    cr_assert_eq(jpeg_decoder_create(&decoder, &e), 0);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        int width = sizes[s][0], height = sizes[s][1];
        struct jpeg_pixels back;
        const uint8_t *jpeg;
        size_t bytes;
        for (int i = 0; i < width * height; i++)
            pixels[i] = (uint8_t)rng_u32(&r);
        cr_assert_eq(encode(encoder, pixels, width, height, 1, 100, &jpeg, &bytes, &e), 0);
        cr_assert_eq(jpeg_decode(decoder, jpeg, bytes, &back, &e), 0, "%s", e.text);
        cr_assert(back.width == width && back.height == height && back.channels == 1);
        for (int i = 0; i < width * height; i++)
            cr_assert(abs(back.data[i] - pixels[i]) <= 2, "%d came back as %d", pixels[i],
                      back.data[i]);
    }
    encoder_destroy(encoder);
    jpeg_decoder_destroy(decoder);
}
