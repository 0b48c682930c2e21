/* Reads, decodes, augments and normalises one image and writes it into a batch. */
#pragma once

#include "common/image/png.h"
#include "worker/data/augment.h"
#include "worker/data/loader_config.h"

struct decode_scratch {
    struct jpeg_decoder *decoder;
    struct png_decoder png;
    struct augmenter augmenter;
    float *image;    /* bf16 only: the image before rounding */
    uint8_t *pixels; /* with distortions only: two images of bytes */
};

int decode_scratch_init(struct decode_scratch *s, const struct loader_config *config,
                        struct error *e);
void decode_scratch_free(struct decode_scratch *s);

/* Writes (size, size, channels) floats, or bf16 if configured, and the label. Sets *bad if the
 * error concerns only this image; it then names the file, the offset and the decoder's message.
 * Other errors end the run. */
int decode_image(struct decode_scratch *s, const struct loader_config *config, int size,
                 int64_t epoch, int64_t index, void *out, int32_t *label, bool *bad,
                 struct error *e);
