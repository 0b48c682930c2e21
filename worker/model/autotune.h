/*
 * Where a model uses Winograd's convolutions (layers/conv.h): measured once a shape on the machine
 * that runs, remembered in a cache folder, and then the same from run to run, because another
 * choice gives other last bits.
 *
 * $XDG_CACHE_HOME/traind/winograd (~/.cache without it) has a file for each processor model, kind
 * of engine, version, shape and number of images of a thread. Of two runs that measure a shape at
 * the same time the first to finish decides for both. Without a cache folder that can be written,
 * each run measures anew; only a choice with a clear margin is taken, so that two
 * measurements rarely differ. Ties go to the direct convolution, then to the smaller tile: they
 * round less.
 */
#pragma once

#include "worker/layers/conv.h"
#include "worker/model/model_config.h"

enum { TUNED_SHAPES_MAX = 4 * (MODEL_SIZES_MAX + 1), TUNING_TEXT_BYTES = 64 * TUNED_SHAPES_MAX };

/* Plain numbers: one broadcast shares them. All zero: no Winograd anywhere. */
struct model_tuning {
    int count;
    struct tuned_shape {
        int size, in_channels, out_channels;
        enum conv_winograd winograd[CONV_DIRECTIONS];
    } shapes[TUNED_SHAPES_MAX];
};

/* Reads the choices of the model's shapes from the cache; measures what is not there in this
 * thread (0.3 s a shape with a core to itself) and writes it. config->tuning is not looked at.
 * problem (256 bytes) says why nothing can be remembered; "" else. Without memory for a measurement
 * a shape has none. */
void model_tune(const struct model_config *config, struct model_tuning *tuning, char *problem);

/* What model_tuning_to_text wrote, for this model: ERR_INVALID where it does not name its shapes,
 * no more and no less. */
int model_tuning_take(const struct model_config *config, const char *text,
                      struct model_tuning *tuning, struct error *e);

/* Tiles of m for all shapes and directions that take them: for tests. */
void model_tune_all(const struct model_config *config, enum conv_winograd m,
                    struct model_tuning *tuning);

/* Does to a convolution what was chosen for its shape. tuning may be NULL. */
void model_tuning_apply(const struct model_tuning *tuning, struct conv *c);

/* "56x64-64:4/4/4 28x128-128:4/4/2": size x channels in - channels out : tile of forward, input
 * gradient and weight gradient, 0 for none. from_text: 0, or -1 if it is no such text. */
void model_tuning_to_text(const struct model_tuning *tuning, char text[TUNING_TEXT_BYTES]);
int model_tuning_from_text(const char *text, struct model_tuning *tuning);
