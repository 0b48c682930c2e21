/*
 * Epochs to a target by batch: mlcommons/logging, rcp_checker/training_4.0.0/rcps_resnet.json.
 * Time to train is what large batches pay for: 65536 needs 2.4 times the epochs of 1632.
 */
#include <math.h>
#include <string.h>

#include "common/plan/predict/predict.h"

static const struct {
    double batch, fewest, mean, most;
} points[] = {
    {1632,  33, 35.0, 37},
    {3264,  34, 35.2, 37},
    {4096,  39, 40.0, 42},
    {8192,  41, 42.0, 44},
    {13056, 44, 45.4, 46},
    {32768, 55, 56.0, 57},
    {49152, 67, 68.0, 69},
    {58880, 78, 79.9, 81},
    {65536, 83, 84.5, 86},
    {67840, 85, 85.9, 87},
};
/* A batch within this factor of a published one is near it. */
#define NEAR_POINT 1.3
#define POINTS     (sizeof points / sizeof points[0])

bool predict_epochs_to_target(int64_t global_batch, struct plan_band *epochs)
{
    double batch = fmax((double)global_batch, points[0].batch);
    size_t i = 1;

    if (batch > points[POINTS - 1].batch)
        return false;
    while (i < POINTS - 1 && batch > points[i].batch)
        i++;
    double share = log(batch / points[i - 1].batch) / log(points[i].batch / points[i - 1].batch);
    epochs->low = points[i - 1].fewest + share * (points[i].fewest - points[i - 1].fewest);
    epochs->high = points[i - 1].most + share * (points[i].most - points[i - 1].most);
    epochs->value = points[i - 1].mean + share * (points[i].mean - points[i - 1].mean);
    return true;
}

const char *predict_epochs_doubt(int64_t global_batch)
{
    double batch = (double)global_batch;

    if (batch < points[0].batch)
        return "epochs of batch 1632, the smallest published";
    if (batch > points[POINTS - 1].batch)
        return "the largest published batch is 67840";
    for (size_t i = 0; i < POINTS; i++)
        if (fmax(batch, points[i].batch) <= NEAR_POINT * fmin(batch, points[i].batch))
            return NULL;
    return "no published batch is near: epochs between two of them";
}

bool predict_table_applies(const struct job_spec *spec, int64_t train_images)
{
    return strcmp(spec->model.arch, "resnet50") == 0 && spec->model.width == 1 &&
           spec->model.classes == 1000 && spec->model.image_size == 224 &&
           spec->model.sizes.count < 2 && train_images > 1200000 && train_images < 1300000;
}
