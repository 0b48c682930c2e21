#include "worker/data/augment.h"

#include <math.h>
#include <stdlib.h>

#define ATTEMPTS 10

static const double min_area = 0.08, min_aspect = 3.0 / 4, max_aspect = 4.0 / 3;

/* TensorFlow's GenerateRandomCrop (core/kernels/image/sample_distorted_bounding_box_op.cc): a
 * height uniform between those of the least and the largest area at this aspect, in single
 * precision as there. Its offsets leave out the last one. */
static bool tf_crop(int width, int height, float aspect, struct rng *r, struct resample_box *box)
{
    float least = (float)min_area * (float)width * (float)height,
          most = (float)width * (float)height;
    int h = (int)lrintf(sqrtf(least / aspect)), max_h = (int)lrintf(sqrtf(most / aspect));

    if (lrintf((float)max_h * aspect) > width) {
        max_h = (int)(((float)width + 0.5 - 0.0000001f) / aspect);
        if (lrintf((float)max_h * aspect) > width)
            max_h--;
    }
    max_h = max_h > height ? height : max_h;
    h = h >= max_h ? max_h : h + (int)rng_below(r, (uint32_t)(max_h - h + 1));
    int w = (int)lrintf((float)h * aspect);
    if ((float)w * (float)h < least) {
        h++;
        w = (int)lrintf((float)h * aspect);
    }
    if ((float)w * (float)h > most) {
        h--;
        w = (int)lrintf((float)h * aspect);
    }
    float area = (float)w * (float)h;
    if (area < least || area > most || w > width || h > height || w <= 0 || h <= 0)
        return false;
    box->y = h < height ? (int)rng_below(r, (uint32_t)(height - h)) : 0;
    box->x = w < width ? (int)rng_below(r, (uint32_t)(width - w)) : 0;
    box->width = w;
    box->height = h;
    return true;
}

/* False where the recipe falls back to the centre crop: no attempt fits, or the crop is the whole
 * image. */
static bool tpu_box(int width, int height, struct rng *r, struct resample_box *box)
{
    const double min_covered = 0.1; /* of the whole image, the op's only bounding box */

    for (int i = 0; i < ATTEMPTS; i++) {
        float aspect = (float)rng_range(r, min_aspect, max_aspect);
        if (tf_crop(width, height, aspect, r, box) &&
            (double)box->width * box->height >= min_covered * width * height)
            return box->width != width || box->height != height;
    }
    return false;
}

static void torchvision_box(int width, int height, struct rng *r, struct resample_box *box)
{
    double area = (double)width * height, ratio = (double)width / height;

    for (int i = 0; i < ATTEMPTS; i++) {
        double target = area * rng_range(r, min_area, 1);
        double aspect = exp(rng_range(r, log(min_aspect), log(max_aspect)));
        long w = lrint(sqrt(target * aspect)), h = lrint(sqrt(target / aspect));
        if (w <= 0 || w > width || h <= 0 || h > height)
            continue;
        box->y = (int)rng_below(r, (uint32_t)(height - h + 1));
        box->x = (int)rng_below(r, (uint32_t)(width - w + 1));
        box->width = (int)w;
        box->height = (int)h;
        return;
    }
    box->width = ratio > max_aspect ? (int)lrint(height * max_aspect) : width;
    box->height = ratio < min_aspect ? (int)lrint(width / min_aspect) : height;
    box->x = (width - box->width) / 2;
    box->y = (height - box->height) / 2;
}

void augment_plan_train(enum job_preprocess family, int width, int height, int size, struct rng *r,
                        struct augment_plan *plan)
{
    bool flip = rng_u32(r) >> 31; /* drawn first: the crop takes more or fewer numbers */

    *plan = (struct augment_plan){.resized_width = size, .resized_height = size};
    if (family == JOB_PREPROCESS_TORCHVISION)
        torchvision_box(width, height, r, &plan->box);
    else if (!tpu_box(width, height, r, &plan->box))
        augment_plan_eval(family, width, height, size, plan);
    plan->flip = flip;
}

static void tpu_eval(int width, int height, int size, struct augment_plan *plan)
{
    int side = (int)(0.875f * (float)(width < height ? width : height));

    side = side < 1 ? 1 : side;
    *plan = (struct augment_plan){
        .box = {(width - side + 1) / 2, (height - side + 1) / 2, side, side},
        .resized_width = size,
        .resized_height = size,
    };
}

static void torchvision_eval(int width, int height, int size, struct augment_plan *plan)
{
    int side = (int)lrint(size * 256.0 / 224.0);

    *plan = (struct augment_plan){
        .box = {0, 0, width, height},
        .resized_width = width <= height ? side : (int)((int64_t)side * width / height),
        .resized_height = width <= height ? (int)((int64_t)side * height / width) : side,
    };
    plan->left =
        (int)lrint((plan->resized_width - size) / 2.0); /* half to even, as Python rounds */
    plan->top = (int)lrint((plan->resized_height - size) / 2.0);
}

void augment_plan_eval(enum job_preprocess family, int width, int height, int size,
                       struct augment_plan *plan)
{
    if (family == JOB_PREPROCESS_TORCHVISION)
        torchvision_eval(width, height, size, plan);
    else
        tpu_eval(width, height, size, plan);
}

void augmenter_free(struct augmenter *a)
{
    resample_filter_free(&a->rows);
    resample_filter_free(&a->columns);
    free(a->row);
    *a = (struct augmenter){0};
}

static int make_filters(struct augmenter *a, enum job_preprocess family,
                        const struct augment_plan *p, int size, struct error *e)
{
    int rc;

    if (family == JOB_PREPROCESS_TORCHVISION) {
        rc = resample_filter_triangle(&a->rows, p->box.height, p->resized_height, p->top, size, e);
        if (rc == 0)
            rc = resample_filter_triangle(&a->columns, p->box.width, p->resized_width, p->left,
                                          size, e);
    } else {
        rc = resample_filter_tf_bicubic(&a->rows, p->box.height, size, e);
        if (rc == 0)
            rc = resample_filter_tf_bicubic(&a->columns, p->box.width, size, e);
    }
    if (rc == 0 && p->flip)
        resample_filter_flip(&a->columns);
    return rc;
}

int augment_apply(struct augmenter *a, enum job_preprocess family, const struct augment_plan *plan,
                  const struct jpeg_pixels *in, int size, float *out, struct error *e)
{
    static const float mean[3] = {.485f, .456f, .406f}, deviation[3] = {.229f, .224f, .225f};
    struct resample_output output = {.round = family == JOB_PREPROCESS_TORCHVISION};
    size_t room = (size_t)plan->box.width * (size_t)in->channels;

    for (int c = 0; c < 3; c++) {
        output.scale[c] = 1 / (255 * deviation[c]);
        output.shift[c] = -mean[c] / deviation[c];
    }
    if (room > a->row_room) {
        free(a->row);
        a->row = malloc(room * sizeof *a->row);
        a->row_room = a->row ? room : 0;
        if (!a->row)
            return error_set(e, ERR_NO_MEMORY, "no memory for a row of %zu values", room);
    }
    int rc = make_filters(a, family, plan, size, e);
    if (rc == 0)
        resample(in, &plan->box, &a->rows, &a->columns, &output, a->row, out);
    return rc;
}
