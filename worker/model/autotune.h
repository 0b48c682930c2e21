/*
 * Selects the convolutions that use Winograd (layers/conv.h): measured once per shape on this
 * machine and cached, because another choice gives other last bits.
 *
 * $XDG_CACHE_HOME/traind/winograd (or ~/.cache) has a file per processor model, engine, version,
 * shape and number of images; of two concurrent measurements the first to finish decides. Without a
 * writable cache folder each run measures again; a choice needs a clear margin, so two measurements
 * rarely differ. Ties go to the direct convolution, then to the smaller tile, which round less.
 */
#pragma once

#include "worker/model/tuning.h"

/* Reads the choices for the model's shapes from the cache; measures missing ones in this thread
 * (0.3 s per shape) and stores them. Ignores config->tuning. problem (256 bytes): why nothing can
 * be cached, or "". */
void model_tune(const struct model_config *config, struct model_tuning *tuning, char *problem);
