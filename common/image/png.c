#include "common/image/png.h"

#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reading {
    png_structp png;
    png_infop info;
    const uint8_t *at, *end;
    jmp_buf failed;
    char words[128];
};

static void png_on_error(png_structp png, png_const_charp words)
{
    struct reading *r = png_get_error_ptr(png);
    snprintf(r->words, sizeof r->words, "%s", words);
    longjmp(r->failed, 1);
}

/* Ignores warnings, which concern chunks that are not needed, such as slightly invalid profiles. */
static void png_on_warning(png_structp png, png_const_charp words)
{
    (void)png;
    (void)words;
}

static void png_on_read(png_structp png, png_bytep out, size_t bytes)
{
    struct reading *r = png_get_io_ptr(png);

    if (bytes > (size_t)(r->end - r->at))
        png_error(png, "it is truncated");
    memcpy(out, r->at, bytes);
    r->at += bytes;
}

static int png_must_read_header(struct reading *r, struct jpeg_info *out, struct error *e)
{
    r->info = png_create_info_struct(r->png);
    if (!r->info)
        return error_set(e, ERR_NO_MEMORY, "no memory for a PNG decoder");
    /* Ignores all chunks but IHDR, PLTE, tRNS, IDAT and IEND. */
    png_set_keep_unknown_chunks(r->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_set_user_limits(r->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_read_fn(r->png, r, png_on_read);
    png_read_info(r->png, r->info);
    uint32_t width = png_get_image_width(r->png, r->info);
    uint32_t height = png_get_image_height(r->png, r->info);
    if ((uint64_t)width * height > JPEG_PIXELS_MAX)
        return error_set(e, ERR_TOO_LARGE, "%u x %u pixels are over the limit of %d million", width,
                         height, JPEG_PIXELS_MAX / 1000000);
    bool colour = png_get_color_type(r->png, r->info) & PNG_COLOR_MASK_COLOR;
    *out = (struct jpeg_info){(int)width, (int)height, colour ? 3 : 1};
    return 0;
}

static int png_must_set_format(struct reading *r, const struct jpeg_info *info, int colour)
{
    if (png_get_color_type(r->png, r->info) == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(r->png);
    else if (info->channels == 1)
        png_set_expand_gray_1_2_4_to_8(r->png);
    png_set_strip_16(r->png);
    png_set_strip_alpha(r->png);
    if (info->channels == 3 && colour != 3)
        png_set_filler(r->png, 0xff, PNG_FILLER_AFTER);
    int passes = png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
    return passes;
}

static int png_must_read_pixels(struct reading *r, struct png_decoder *d,
                                const struct jpeg_info *info, int colour, struct error *e)
{
    int passes = png_must_set_format(r, info, colour);
    size_t row = png_get_rowbytes(r->png, r->info), bytes = row * (size_t)info->height;

    if (bytes > d->capacity) {
        png_decoder_free(d);
        d->pixels = malloc(bytes);
        if (!d->pixels)
            return error_set(e, ERR_NO_MEMORY, "no memory for an image of %zu bytes", bytes);
        d->capacity = bytes;
    }
    for (int pass = 0; pass < passes; pass++)
        for (int y = 0; y < info->height; y++)
            png_read_row(r->png, d->pixels + row * (size_t)y, NULL);
    png_read_end(r->png, NULL);
    return 0;
}

/* d NULL: reads only the header. */
static int png_read_all(struct png_decoder *d, const uint8_t *file, size_t bytes, int colour,
                        struct jpeg_info *info, struct error *e)
{
    struct reading r = {.at = file, .end = file + bytes};
    int rc;

    r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, png_on_error, png_on_warning);
    if (!r.png)
        return error_set(e, ERR_NO_MEMORY, "no memory for a PNG decoder");
    if (setjmp(r.failed)) {
        rc = error_set(e, ERR_CORRUPT, "a PNG that cannot be read: %s", r.words);
    } else {
        rc = png_must_read_header(&r, info, e);
        if (rc == 0 && d)
            rc = png_must_read_pixels(&r, d, info, colour, e);
    }
    png_destroy_read_struct(&r.png, &r.info, NULL);
    return rc;
}

void png_decoder_free(struct png_decoder *d)
{
    free(d->pixels);
    *d = (struct png_decoder){0};
}

bool png_is(const uint8_t *file, size_t bytes)
{
    return bytes >= 8 && png_sig_cmp(file, 0, 8) == 0;
}

int png_header(const uint8_t *file, size_t bytes, struct jpeg_info *out, struct error *e)
{
    return png_read_all(NULL, file, bytes, 0, out, e);
}

int png_decode(struct png_decoder *d, const uint8_t *file, size_t bytes, int colour,
               struct jpeg_pixels *out, struct error *e)
{
    struct jpeg_info info;
    int rc = png_read_all(d, file, bytes, colour, &info, e);

    if (rc)
        return rc;
    bool luma = info.channels == 3 && colour == 1;
    if (luma)
        jpeg_luma(d->pixels, (size_t)info.width * (size_t)info.height);
    *out = (struct jpeg_pixels){d->pixels, info.width, info.height,
                                info.channels == 1 || luma ? 1 : colour};
    return 0;
}
