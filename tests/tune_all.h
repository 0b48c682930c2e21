/* Chooses Winograd for all shapes of a model, where model_tune would measure. */
#pragma once

#include "worker/model/tuning.h"

static inline void tune_all(const struct model_config *config, enum conv_winograd m,
                            struct model_tuning *tuning)
{
    model_tuning_list(config, tuning);
    for (int i = 0; i < tuning->count; i++)
        for (int k = 0; k < CONV_DIRECTIONS; k++)
            tuning->shapes[i].winograd[k] = m;
}
