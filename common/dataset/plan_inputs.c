#include "common/dataset/plan_inputs.h"

/* As many as the training set has, at most ImageNet's: so that data.train_images sizes an
 * evaluation too. */
static int64_t synthetic_eval_images(const struct job_spec *spec)
{
    bool sized = job_spec_is_synthetic(spec->data.train) && spec->data.has_train_images;
    int64_t images = spec->data.train_images;

    return sized && images < SYNTHETIC_EVAL_IMAGES ? images : SYNTHETIC_EVAL_IMAGES;
}

/* Everything that needs no look at the data; -1 where a look is needed. */
static void fill_from_spec(const struct job_spec *spec, struct plan_inputs *inputs)
{
    bool trains = spec->mode == JOB_MODE_TRAIN;

    inputs->train_images = !trains                                   ? 0
                           : spec->data.has_train_images             ? spec->data.train_images
                           : job_spec_is_synthetic(spec->data.train) ? SYNTHETIC_TRAIN_IMAGES
                                                                     : -1;
    inputs->eval_images = -1;
    if (!spec->data.eval)
        inputs->eval_images = 0;
    else if (job_spec_is_synthetic(spec->data.eval))
        inputs->eval_images = synthetic_eval_images(spec);
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
