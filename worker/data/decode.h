/* One image of a data set into its place in a batch: read, decode, augment, normalise. */
#pragma once

#include "common/image/png.h"
#include "worker/data/augment.h"
#include "worker/data/loader_config.h"

/* What a prefetch thread needs for itself. */
struct decode_scratch {
    struct jpeg_decoder *decoder;
    struct png_decoder png;
    struct augmenter augmenter;
    float *image; /* with bf16: before it is rounded */
};

int decode_scratch_init(struct decode_scratch *s, const struct loader_config *config,
                        struct error *e);
void decode_scratch_free(struct decode_scratch *s);

/* Writes (size, size, channels) floats, or bf16 where the loader is to, and the label.
 * *bad is set, and the error names file, offset and the decoder's words, if only this image is
 * broken; any other error ends the run. */
int decode_image(struct decode_scratch *s, const struct loader_config *config, int size,
                 int64_t epoch, int64_t index, void *out, int32_t *label, bool *bad,
                 struct error *e);
