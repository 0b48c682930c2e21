#include "common/dataset/plan_inputs.h"

#include <string.h>

static bool is_synthetic(const char *path)
{
    return path && strcmp(path, "synthetic") == 0;
}

/* Everything that needs no look at the data; -1 where a look is needed. */
static void fill_from_spec(const struct job_spec *spec, struct plan_inputs *inputs)
{
    bool trains = spec->mode == JOB_MODE_TRAIN;

    inputs->train_images = !trains                            ? 0
                           : spec->data.has_train_images      ? spec->data.train_images
                           : is_synthetic(spec->data.train)   ? SYNTHETIC_TRAIN_IMAGES
                                                              : -1;
    inputs->eval_images = -1;
    if (!spec->data.eval)
        inputs->eval_images = 0;
    else if (is_synthetic(spec->data.eval))
        inputs->eval_images =
            trains && is_synthetic(spec->data.train) && inputs->train_images < SYNTHETIC_EVAL_IMAGES
                ? inputs->train_images
                : SYNTHETIC_EVAL_IMAGES;
}

int plan_inputs_count(const struct job_spec *spec, struct plan_inputs *inputs, struct error *e)
{
    fill_from_spec(spec, inputs);
    if (inputs->train_images < 0 &&
        dataset_count(spec->data.train, DATASET_TRAIN, &inputs->train_images, e))
        return error_prefix(e, "data.train");
    if (inputs->eval_images < 0 &&
        dataset_count(spec->data.eval, DATASET_EVAL, &inputs->eval_images, e))
        return error_prefix(e, "data.eval");
    return 0;
}

int plan_inputs_of_open_data(const struct job_spec *spec, const struct dataset *train,
                             const struct dataset *eval, struct plan_inputs *inputs,
                             struct error *e)
{
    fill_from_spec(spec, inputs);
    if (inputs->train_images < 0)
        inputs->train_images = train ? dataset_images(train) : -1;
    if (inputs->eval_images < 0)
        inputs->eval_images = eval ? dataset_images(eval) : -1;
    if (inputs->train_images < 0 || inputs->eval_images < 0)
        return error_set(e, ERR_INTERNAL, "a data set was not opened before the plan was made");
    return 0;
}
