#include "prep/write/encode.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include "common/xalloc.h"

struct encoder {
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    jmp_buf failed;
    char words[JMSG_LENGTH_MAX];
    unsigned char *out;     /* allocated by libjpeg with malloc */
    unsigned long capacity; /* of out */
};

static void encode_on_error(j_common_ptr jpeg)
{
    struct encoder *c = jpeg->client_data;
    jpeg->err->format_message(jpeg, c->words);
    longjmp(c->failed, 1);
}

int encoder_create(struct encoder **out, struct error *e)
{
    struct encoder *c = xcalloc(1, sizeof *c);

    *out = NULL;
    c->jpeg.err = jpeg_std_error(&c->errors);
    c->errors.error_exit = encode_on_error;
    if (setjmp(c->failed)) {
        error_set(e, ERR_NO_MEMORY, "no JPEG encoder: %s", c->words);
        free(c);
        return -ERR_NO_MEMORY;
    }
    c->jpeg.client_data = c;
    jpeg_create_compress(&c->jpeg);
    *out = c;
    return 0;
}

void encoder_destroy(struct encoder *c)
{
    if (!c)
        return;
    jpeg_destroy_compress(&c->jpeg);
    free(c->out);
    free(c);
}

static void encode_set_parameters(struct jpeg_compress_struct *jpeg, int width, int height,
                                  int channels, int quality)
{
    jpeg->image_width = (JDIMENSION)width;
    jpeg->image_height = (JDIMENSION)height;
    jpeg->input_components = channels;
    jpeg->in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(jpeg);
    jpeg_set_quality(jpeg, quality, TRUE);
    if (quality == ENCODE_QUALITY_BEST)
        jpeg->comp_info[0].h_samp_factor = jpeg->comp_info[0].v_samp_factor = 1;
    jpeg->optimize_coding = TRUE; /* own tables, because small images are mostly headers */
}

int encode(struct encoder *c, const uint8_t *pixels, int width, int height, int channels,
           int quality, const uint8_t **jpeg, size_t *bytes, struct error *e)
{
    if (setjmp(c->failed)) {
        jpeg_abort_compress(&c->jpeg);
        return error_set(e, ERR_IO, "cannot encode a JPEG: %s", c->words);
    }
    unsigned long size = c->capacity;
    unsigned char *before = c->out;
    jpeg_mem_dest(&c->jpeg, &c->out, &size);
    encode_set_parameters(&c->jpeg, width, height, channels, quality);
    jpeg_start_compress(&c->jpeg, TRUE);
    while (c->jpeg.next_scanline < c->jpeg.image_height) {
        JSAMPROW row = (JSAMPROW)pixels + c->jpeg.next_scanline * (size_t)width * (size_t)channels;
        jpeg_write_scanlines(&c->jpeg, &row, 1);
    }
    jpeg_finish_compress(&c->jpeg);
    if (c->out != before) { /* libjpeg has allocated a larger buffer and left the old one to us */
        free(before);
        c->capacity = size;
    }
    *jpeg = c->out;
    *bytes = size;
    return 0;
}
