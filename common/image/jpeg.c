#include "common/image/jpeg.h"

#include <limits.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

#include "common/system/content.h"

struct jpeg_decoder {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    jmp_buf failed;
    char words[JMSG_LENGTH_MAX];
    uint8_t *pixels; /* allocated for the largest image so far */
    size_t capacity;
    bool has_end; /* the open JPEG has an end marker */
};

static struct jpeg_decoder *jpeg_decoder_of(j_common_ptr jpeg)
{
    return jpeg->client_data;
}

static void jpeg_on_error(j_common_ptr jpeg)
{
    struct jpeg_decoder *d = jpeg_decoder_of(jpeg);
    jpeg->err->format_message(jpeg, d->words);
    longjmp(d->failed, 1);
}

/* Some of libjpeg's warnings mean that pixels were invented; others (an unknown marker, extra
 * bytes) are common in good files. */
static void jpeg_on_warning(j_common_ptr jpeg, int level)
{
    if (level >= 0)
        return;
    switch (jpeg->err->msg_code) {
    case JWRN_JPEG_EOF:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
        jpeg_on_error(jpeg);
    }
}

static void jpeg_on_message(j_common_ptr jpeg)
{
    (void)jpeg;
}

int jpeg_decoder_create(struct jpeg_decoder **out, struct error *e)
{
    struct jpeg_decoder *d = calloc(1, sizeof *d);

    *out = NULL;
    if (!d)
        return error_set(e, ERR_NO_MEMORY, "no memory for a JPEG decoder");
    d->jpeg.err = jpeg_std_error(&d->errors);
    d->errors.error_exit = jpeg_on_error;
    d->errors.emit_message = jpeg_on_warning;
    d->errors.output_message = jpeg_on_message;
    if (setjmp(d->failed)) {
        error_set(e, ERR_NO_MEMORY, "no JPEG decoder: %s", d->words);
        free(d);
        return -ERR_NO_MEMORY;
    }
    d->jpeg.client_data = d; /* preserved by jpeg_create_decompress */
    jpeg_create_decompress(&d->jpeg);
    *out = d;
    return 0;
}

void jpeg_decoder_destroy(struct jpeg_decoder *d)
{
    if (!d)
        return;
    jpeg_destroy_decompress(&d->jpeg);
    free(d->pixels);
    free(d);
}

/* Functions with must_ in their names longjmp on errors. */

/* Returns the number of scans, at most limit + 1, and whether there is an end marker. Skips
 * segments, because a thumbnail in one has markers too. */
static int jpeg_walk(const uint8_t *jpeg, size_t bytes, int limit, bool *has_end)
{
    const uint8_t *at = jpeg, *end = jpeg + bytes;
    int scans = 0;

    *has_end = false;
    while (scans <= limit && (at = memchr(at, 0xff, (size_t)(end - at))) && end - at >= 2) {
        uint8_t marker = at[1];
        bool is_data = marker == 0x00 || (marker >= 0xd0 && marker <= 0xd7); /* stuffing, RSTn */
        if (marker == 0xff) {
            at++;
        } else if (is_data || marker == 0xd8 || marker == 0x01) {
            at += 2;
        } else if (marker == 0xd9) {
            *has_end = true;
            break;
        } else if (end - at < 4) {
            break;
        } else {
            ptrdiff_t length = 2 + (at[2] << 8 | at[3]);
            scans += marker == 0xda;
            at = length < end - at ? at + length : end;
        }
    }
    return scans;
}

bool jpeg_has_end(const uint8_t *jpeg, size_t bytes)
{
    bool has_end;
    jpeg_walk(jpeg, bytes, INT_MAX - 1, &has_end);
    return has_end;
}

/* Each scan is a pass over all coefficients, but may need almost no bytes, so a small file could
 * keep a decoder busy for minutes. */
static int jpeg_check_scans(struct jpeg_decompress_struct *jpeg, const uint8_t *file, size_t bytes,
                            struct error *e)
{
    bool has_end;

    if (!jpeg_has_multiple_scans(jpeg) ||
        jpeg_walk(file, bytes, JPEG_SCANS_MAX, &has_end) <= JPEG_SCANS_MAX)
        return 0;
    return error_set(e, ERR_TOO_LARGE, "a progressive JPEG of more than %d scans is not decoded",
                     JPEG_SCANS_MAX);
}

/* Gives a clearer message than libjpeg for data that is not a JPEG. */
static int jpeg_check_start(const uint8_t *file, size_t bytes, struct error *e)
{
    if (bytes < 2 || (file[0] == 0xff && file[1] == 0xd8))
        return 0;
    const struct content *c = content_of(file, bytes);
    if (!c)
        return 0;
    return error_set(e, ERR_CORRUPT, "Not a JPEG file: it is %s%s%s", c->what,
                     c->advice ? "; " : "", c->advice ? c->advice : "");
}

static int jpeg_check_header(struct jpeg_decompress_struct *jpeg, const uint8_t *file, size_t bytes,
                             struct error *e)
{
    if ((uint64_t)jpeg->image_width * jpeg->image_height > JPEG_PIXELS_MAX)
        return error_set(e, ERR_TOO_LARGE, "%u x %u pixels are over the limit of %d million",
                         jpeg->image_width, jpeg->image_height, JPEG_PIXELS_MAX / 1000000);
    switch (jpeg->jpeg_color_space) {
    case JCS_GRAYSCALE:
    case JCS_RGB:
    case JCS_YCbCr:
    case JCS_CMYK:
    case JCS_YCCK:
        return jpeg_check_scans(jpeg, file, bytes, e);
    default:
        return error_set(e, ERR_UNSUPPORTED, "a JPEG of %d colour components is not supported",
                         jpeg->num_components);
    }
}

static int jpeg_must_open(struct jpeg_decoder *d, const uint8_t *jpeg, size_t bytes,
                          struct error *e)
{
    int rc = jpeg_check_start(jpeg, bytes, e);

    if (rc)
        return rc;
    jpeg_mem_src(&d->jpeg, jpeg, bytes);
    jpeg_read_header(&d->jpeg, TRUE);
    return jpeg_check_header(&d->jpeg, jpeg, bytes, e);
}

static J_COLOR_SPACE jpeg_output_space(J_COLOR_SPACE stored, J_COLOR_SPACE rgb)
{
    if (stored == JCS_GRAYSCALE)
        return JCS_GRAYSCALE;
    return stored == JCS_CMYK || stored == JCS_YCCK ? JCS_CMYK : rgb;
}

static int jpeg_reserve(struct jpeg_decoder *d, size_t bytes, struct error *e)
{
    if (bytes <= d->capacity)
        return 0;
    uint8_t *larger = realloc(d->pixels, bytes);
    if (!larger)
        return error_set(e, ERR_NO_MEMORY, "no memory for an image of %zu bytes", bytes);
    d->pixels = larger;
    d->capacity = bytes;
    return 0;
}

/* Converts from 4 bytes per pixel to 3 or 4 channels, in place. Adobe stores inverted inks. */
static void jpeg_rgb_from_cmyk(uint8_t *pixels, size_t count, int channels, bool inverted)
{
    for (size_t i = 0; i < count; i++) {
        const uint8_t *in = pixels + 4 * i;
        uint8_t *out = pixels + (size_t)channels * i, ink[4];
        for (int c = 0; c < 4; c++)
            ink[c] = inverted ? in[c] : (uint8_t)(255 - in[c]);
        for (int c = 0; c < 3; c++)
            out[c] = (uint8_t)((ink[c] * ink[3] + 127) / 255);
    }
}

void jpeg_luma(uint8_t *pixels, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uint8_t *p = pixels + 4 * i;
        pixels[i] = (uint8_t)((19595u * p[0] + 38470u * p[1] + 7471u * p[2] + 0x8000) >> 16);
    }
}

static void jpeg_must_read_rows(struct jpeg_decoder *d, unsigned count, size_t row_bytes)
{
    for (unsigned done = 0; done < count;) {
        JSAMPROW rows[8];
        for (unsigned i = 0; i < 8; i++)
            rows[i] = d->pixels + (done + i) * row_bytes;
        unsigned left = count - done;
        done += jpeg_read_scanlines(&d->jpeg, rows, left < 8 ? left : 8);
    }
}

static int jpeg_decode_scaled(struct jpeg_decoder *d, const uint8_t *jpeg, size_t bytes,
                              struct error *e)
{
    int rc = jpeg_must_open(d, jpeg, bytes, e);
    if (rc)
        return rc;
    d->jpeg.out_color_space = jpeg_output_space(d->jpeg.jpeg_color_space, JCS_RGB);
    jpeg_start_decompress(&d->jpeg);
    size_t row_bytes = (size_t)d->jpeg.output_width * (size_t)d->jpeg.output_components;
    rc = jpeg_reserve(d, row_bytes * d->jpeg.output_height, e);
    if (rc)
        return rc;
    jpeg_must_read_rows(d, d->jpeg.output_height, row_bytes);
    if (d->jpeg.out_color_space == JCS_CMYK)
        jpeg_rgb_from_cmyk(d->pixels, (size_t)d->jpeg.output_width * d->jpeg.output_height, 3,
                           d->jpeg.saw_Adobe_marker);
    jpeg_finish_decompress(&d->jpeg);
    return 0;
}

int jpeg_decode(struct jpeg_decoder *d, const uint8_t *jpeg, size_t bytes, struct jpeg_pixels *out,
                struct error *e)
{
    if (setjmp(d->failed)) {
        jpeg_abort_decompress(&d->jpeg);
        return error_set(e, ERR_CORRUPT, "%s", d->words);
    }
    int rc = jpeg_decode_scaled(d, jpeg, bytes, e);
    if (rc) {
        jpeg_abort_decompress(&d->jpeg);
        return rc;
    }
    *out = (struct jpeg_pixels){
        .data = d->pixels,
        .width = (int)d->jpeg.output_width,
        .height = (int)d->jpeg.output_height,
        .channels = d->jpeg.out_color_space == JCS_GRAYSCALE ? 1 : 3,
    };
    return 0;
}

/* Tolerates a few trailing bytes, which some files have. jpeg: the data from the first scan on. */
static bool jpeg_ends_with_marker(const uint8_t *jpeg, size_t bytes)
{
    size_t from = bytes > 64 ? bytes - 64 : 0;
    return memmem(jpeg + from, bytes - from, "\xff\xd9", 2) != NULL;
}

int jpeg_open(struct jpeg_decoder *d, const uint8_t *jpeg, size_t bytes, struct jpeg_info *out,
              struct error *e)
{
    if (setjmp(d->failed)) {
        jpeg_abort_decompress(&d->jpeg);
        return error_set(e, ERR_CORRUPT, "%s", d->words);
    }
    int rc = jpeg_must_open(d, jpeg, bytes, e);
    *out = (struct jpeg_info){(int)d->jpeg.image_width, (int)d->jpeg.image_height,
                              d->jpeg.num_components};
    if (rc) {
        jpeg_abort_decompress(&d->jpeg);
        return rc;
    }
    d->has_end = jpeg_ends_with_marker(d->jpeg.src->next_input_byte, d->jpeg.src->bytes_in_buffer);
    return 0;
}

int jpeg_header(struct jpeg_decoder *d, const uint8_t *jpeg, size_t bytes, struct jpeg_info *out,
                struct error *e)
{
    int rc = jpeg_open(d, jpeg, bytes, out, e);
    if (rc == 0)
        jpeg_abort_decompress(&d->jpeg);
    return rc;
}

/* At the edge of the decoded area libjpeg has no neighbours to interpolate colour from, so a rim
 * around the part is decoded too. */
#define RIM 2

static void jpeg_add_rim(int *first, int *end, unsigned size)
{
    *first = *first > RIM ? *first - RIM : 0;
    *end = *end + RIM < (int)size ? *end + RIM : (int)size;
}

/* Reads the last rows instead of skipping them, because skipped data is not checked. */
static void jpeg_must_read_to_end(struct jpeg_decoder *d, JSAMPROW row)
{
    JDIMENSION left = d->jpeg.output_height - d->jpeg.output_scanline;

    if (left > 1)
        jpeg_skip_scanlines(&d->jpeg, left - 1);
    if (left > 0)
        jpeg_read_scanlines(&d->jpeg, &row, 1);
}

static int jpeg_read_part(struct jpeg_decoder *d, struct jpeg_rectangle *part, struct error *e)
{
    struct jpeg_decompress_struct *jpeg = &d->jpeg;
    int left = part->x, right = part->x + part->width;
    int top = part->y, bottom = part->y + part->height;

    jpeg->out_color_space = jpeg_output_space(jpeg->jpeg_color_space, JCS_EXT_RGBX);
    jpeg->scale_denom = part->halved ? 2 : 1; /* scale_num is 1, set by jpeg_open */
    jpeg_start_decompress(jpeg);
    jpeg_add_rim(&left, &right, jpeg->output_width);
    jpeg_add_rim(&top, &bottom, jpeg->output_height);
    JDIMENSION x = (JDIMENSION)left, width = (JDIMENSION)(right - left);
    if (width < jpeg->output_width)
        jpeg_crop_scanline(jpeg, &x, &width);
    *part =
        (struct jpeg_rectangle){(int)x, top, (int)width, bottom - top, part->halved, part->grey};
    size_t row_bytes = (size_t)width * (size_t)jpeg->output_components;
    int rc = jpeg_reserve(d, row_bytes * ((size_t)part->height + 1), e);
    if (rc)
        return rc;
    if (top > 0)
        jpeg_skip_scanlines(jpeg, (JDIMENSION)top);
    jpeg_must_read_rows(d, (unsigned)part->height, row_bytes);
    if (!d->has_end)
        jpeg_must_read_to_end(d, d->pixels + row_bytes * (size_t)part->height);
    if (jpeg->out_color_space == JCS_CMYK)
        jpeg_rgb_from_cmyk(d->pixels, (size_t)width * (size_t)part->height, 4,
                           jpeg->saw_Adobe_marker);
    if (part->grey && jpeg->out_color_space != JCS_GRAYSCALE)
        jpeg_luma(d->pixels, (size_t)width * (size_t)part->height);
    return 0;
}

int jpeg_read(struct jpeg_decoder *d, struct jpeg_rectangle *part, struct jpeg_pixels *out,
              struct error *e)
{
    if (setjmp(d->failed)) {
        jpeg_abort_decompress(&d->jpeg);
        return error_set(e, ERR_CORRUPT, "%s", d->words);
    }
    int rc = jpeg_read_part(d, part, e);
    *out = (struct jpeg_pixels){
        .data = d->pixels,
        .width = part->width,
        .height = part->height,
        .channels = part->grey || d->jpeg.out_color_space == JCS_GRAYSCALE ? 1 : 4,
    };
    if (rc == 0 && !d->has_end)
        jpeg_finish_decompress(&d->jpeg); /* reports a missing end */
    else
        jpeg_abort_decompress(&d->jpeg);
    return rc;
}
