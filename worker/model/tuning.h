/* A choice of the convolutions that use Winograd (layers/conv.h), by their shapes. It decides the
 * last bits, so a run keeps it: events, checkpoints and provenance have it as text. */
#pragma once

#include "worker/layers/conv.h"
#include "worker/model/model_config.h"

enum { TUNED_SHAPES_MAX = 4 * (MODEL_SIZES_MAX + 1), TUNING_TEXT_BYTES = 64 * TUNED_SHAPES_MAX };

/* Plain values, for a broadcast. All zero: no Winograd */
struct model_tuning {
    int count;
    struct tuned_shape {
        int size, in_channels, out_channels, groups; /* groups: 1 if read from text */
        enum conv_winograd winograd[CONV_DIRECTIONS];
    } shapes[TUNED_SHAPES_MAX];
};

/* Lists the shapes of the model that Winograd can compute, without choosing it for any. */
void model_tuning_list(const struct model_config *config, struct model_tuning *tuning);

/* Parses model_tuning_to_text's output; ERR_INVALID unless it names exactly this model's shapes */
int model_tuning_take(const struct model_config *config, const char *text,
                      struct model_tuning *tuning, struct error *e);

/* Applies the choice for a convolution's shape. tuning may be NULL. */
void model_tuning_apply(const struct model_tuning *tuning, struct conv *c);

/* "56x64-64:4/4/4 28x128-128:4/4/2": size x input channels - output channels : tile of forward,
 * input gradient and weight gradient, 0 for none. from_text returns -1 for other text. */
void model_tuning_to_text(const struct model_tuning *tuning, char text[TUNING_TEXT_BYTES]);
int model_tuning_from_text(const char *text, struct model_tuning *tuning);
