/*
 * Epochs to a target by batch: mlcommons/logging, rcp_checker/training_4.0.0/rcps_resnet.json.
 * Time to train is what large batches pay for: 65536 needs 2.4 times the epochs of 1632.
 */
#include <math.h>
#include <string.h>

#include "common/plan/predict.h"

static const struct {
    double batch, fewest, most;
} points[] = {
    {1632,  33, 37},
    {3264,  34, 37},
    {4096,  39, 42},
    {8192,  41, 44},
    {13056, 44, 46},
    {32768, 55, 57},
    {49152, 67, 69},
    {65536, 83, 86},
};
#define POINTS (sizeof points / sizeof points[0])

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
    epochs->value = (epochs->low + epochs->high) / 2;
    return true;
}

bool predict_table_applies(const struct job_spec *spec, int64_t train_images)
{
    return strcmp(spec->model.arch, "resnet50") == 0 && spec->model.width == 1 &&
           spec->model.classes == 1000 && spec->model.image_size == 224 &&
           spec->model.sizes.count < 2 && train_images > 1200000 && train_images < 1300000;
}
