#include "worker/data/augment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"

/* Random crops: area as a fraction of the image's area, aspect as width / height. */
static const struct crop_rule {
    double min_area, min_aspect, max_aspect;
    int attempts;
} crop_rules[] = {
    [JOB_PREPROCESS_TPU] = {0.08, 3.0 / 4, 4.0 / 3, 10 },
    [JOB_PREPROCESS_MLPERF] = {0.05, 0.75,    1.33,    100},
    [JOB_PREPROCESS_TORCHVISION] = {0.08, 3.0 / 4, 4.0 / 3, 10 },
};

/* TensorFlow's GenerateRandomCrop (core/kernels/image/sample_distorted_bounding_box_op.cc): the
 * height is uniform between those of the smallest and the largest area at this aspect, in single
 * precision as in TensorFlow. The last possible offset is never drawn, as in TensorFlow. */
static bool augment_tf_crop(int width, int height, float min_area, float aspect, struct rng *r,
                            struct resample_box *box)
{
    float least = min_area * (float)width * (float)height, most = (float)width * (float)height;
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

static bool augment_tf_box(const struct crop_rule *rule, int width, int height, struct rng *r,
                           struct resample_box *box)
{
    const double min_covered = 0.1; /* of the op's only bounding box, which is the whole image */

    for (int i = 0; i < rule->attempts; i++) {
        float aspect = (float)rng_range(r, rule->min_aspect, rule->max_aspect);
        if (augment_tf_crop(width, height, (float)rule->min_area, aspect, r, box) &&
            (double)box->width * box->height >= min_covered * width * height)
            return true;
    }
    return false;
}

static void augment_torchvision_box(const struct crop_rule *rule, int width, int height,
                                    struct rng *r, struct resample_box *box)
{
    double area = (double)width * height, ratio = (double)width / height;

    for (int i = 0; i < rule->attempts; i++) {
        double target = area * rng_range(r, rule->min_area, 1);
        double aspect = exp(rng_range(r, log(rule->min_aspect), log(rule->max_aspect)));
        long w = lrint(sqrt(target * aspect)), h = lrint(sqrt(target / aspect));
        if (w <= 0 || w > width || h <= 0 || h > height)
            continue;
        box->y = (int)rng_below(r, (uint32_t)(height - h + 1));
        box->x = (int)rng_below(r, (uint32_t)(width - w + 1));
        box->width = (int)w;
        box->height = (int)h;
        return;
    }
    box->width = ratio > rule->max_aspect ? (int)lrint(height * rule->max_aspect) : width;
    box->height = ratio < rule->min_aspect ? (int)lrint(width / rule->min_aspect) : height;
    box->x = (width - box->width) / 2;
    box->y = (height - box->height) / 2;
}

static void augment_random_crop(enum job_preprocess family, int width, int height, int size,
                                struct rng *r, struct augment_plan *plan)
{
    const struct crop_rule *rule = &crop_rules[family];
    struct resample_box *box = &plan->box;

    *plan = (struct augment_plan){.resized_width = size, .resized_height = size};
    if (family == JOB_PREPROCESS_TORCHVISION) {
        augment_torchvision_box(rule, width, height, r, box);
        return;
    }
    bool found = augment_tf_box(rule, width, height, r, box);
    if (family == JOB_PREPROCESS_MLPERF && !found)
        *box = (struct resample_box){0, 0, width, height};
    else if (family == JOB_PREPROCESS_TPU &&
             (!found || (box->width == width && box->height == height)))
        augment_plan_eval(family, width, height, size, 0, plan);
}

bool augment_draw_flip(struct rng *r)
{
    return rng_u32(r) >> 31;
}

void augment_plan_train(enum job_preprocess family, struct augment_parts parts, int width,
                        int height, int size, struct rng *r, struct augment_plan *plan)
{
    bool flip =
        augment_draw_flip(r); /* drawn first, because the number of draws for the crop varies */

    if (parts.crop && family != JOB_PREPROCESS_WHOLE)
        augment_random_crop(family, width, height, size, r, plan);
    else
        augment_plan_eval(family, width, height, size, 0, plan);
    plan->flip = parts.flip && flip;
}

/* In these, resize is the shorter side before the centre is cut; 0: the reference's. */
static void augment_tpu_eval(int width, int height, int size, int resize, struct augment_plan *plan)
{
    float share = resize ? (float)size / (float)resize : 0.875f;
    int side = (int)(share * (float)(width < height ? width : height));

    side = side < 1 ? 1 : side;
    *plan = (struct augment_plan){
        .box = {(width - side + 1) / 2, (height - side + 1) / 2, side, side},
        .resized_width = size,
        .resized_height = size,
    };
}

static void augment_torchvision_eval(int width, int height, int size, int resize,
                                     struct augment_plan *plan)
{
    int side = resize ? resize : job_default_resize(size);

    *plan = (struct augment_plan){
        .box = {0, 0, width, height},
        .resized_width = width <= height ? side : (int)((int64_t)side * width / height),
        .resized_height = width <= height ? (int)((int64_t)side * height / width) : side,
    };
    plan->left =
        (int)lrint((plan->resized_width - size) / 2.0); /* rounds half to even, like Python */
    plan->top = (int)lrint((plan->resized_height - size) / 2.0);
}

/* Uses single precision and an integral offset of the centre, like the reference. */
static void augment_mlperf_eval(int width, int height, int size, int resize,
                                struct augment_plan *plan)
{
    int side = resize ? resize : job_default_resize(size);
    float scale = (float)side / (float)(width < height ? width : height);

    *plan = (struct augment_plan){
        .box = {0, 0, width, height},
        .resized_width = (int)((float)width * scale),
        .resized_height = (int)((float)height * scale),
    };
    plan->left = (plan->resized_width - size) / 2;
    plan->top = (plan->resized_height - size) / 2;
}

void augment_plan_eval(enum job_preprocess family, int width, int height, int size, int resize,
                       struct augment_plan *plan)
{
    if (family == JOB_PREPROCESS_TORCHVISION)
        augment_torchvision_eval(width, height, size, resize, plan);
    else if (family == JOB_PREPROCESS_MLPERF)
        augment_mlperf_eval(width, height, size, resize, plan);
    else if (family == JOB_PREPROCESS_WHOLE)
        *plan = (struct augment_plan){
            .box = {0, 0, width, height},
              .resized_width = size, .resized_height = size
        };
    else
        augment_tpu_eval(width, height, size, resize, plan);
}

void augmenter_free(struct augmenter *a)
{
    resample_filter_free(&a->rows);
    resample_filter_free(&a->columns);
    free(a->row);
    *a = (struct augmenter){0};
}

/* Images are decoded at half their size, the means of pairs of pixels in both directions, from this
 * reduction on. The result of a triangle filter then differs by less than 0.5/255 on average
 * (measured: doc/engine-log.md). TensorFlow's filters take single pixels, so the difference would
 * be larger for them. */
#define HALVE_FROM 3.5

static bool augment_may_be_halved(enum job_preprocess family, const struct augment_plan *p)
{
    return family == JOB_PREPROCESS_TORCHVISION && !p->never_halved &&
           p->box.width >= HALVE_FROM * p->resized_width &&
           p->box.height >= HALVE_FROM * p->resized_height;
}

static struct resample_box augment_decoded_box(const struct resample_box *box, bool halved)
{
    int x = box->x / 2, y = box->y / 2;

    if (!halved)
        return *box;
    return (struct resample_box){x, y, (box->x + box->width + 1) / 2 - x,
                                 (box->y + box->height + 1) / 2 - y};
}

/* Makes the filter of one axis: `size` pixels from `first` on of the box [start, start + length)
 * after resizing it to `resized` pixels. */
static int augment_make_filter(struct resample_filter *f, enum job_preprocess family, bool halved,
                               int start, int length, int resized, int first, int size,
                               struct error *e)
{
    switch (family) {
    case JOB_PREPROCESS_TPU:
        return resample_filter_tf_bicubic(f, length, resized, first, size, e);
    case JOB_PREPROCESS_MLPERF:
        return resample_filter_tf_bilinear(f, length, resized, first, size, e);
    default:
        return resample_filter_triangle(f, start, length, halved, resized, first, size, e);
    }
}

int augment_prepare(struct augmenter *a, enum job_preprocess family, const struct augment_plan *p,
                    int size, struct jpeg_rectangle *needed, struct error *e)
{
    bool halved = augment_may_be_halved(family, p);
    struct resample_box box = augment_decoded_box(&p->box, halved);
    int left, right, top, bottom;
    int rc = augment_make_filter(&a->rows, family, halved, p->box.y, p->box.height,
                                 p->resized_height, p->top, size, e);

    if (rc == 0)
        rc = augment_make_filter(&a->columns, family, halved, p->box.x, p->box.width,
                                 p->resized_width, p->left, size, e);
    if (rc)
        return rc;
    if (p->flip && family == JOB_PREPROCESS_MLPERF)
        resample_filter_flip_inputs(&a->columns);
    else if (p->flip)
        resample_filter_flip_outputs(&a->columns);
    resample_filter_used(&a->columns, &left, &right);
    resample_filter_used(&a->rows, &top, &bottom);
    *needed = (struct jpeg_rectangle){.x = box.x + left,
                                      .y = box.y + top,
                                      .width = right - left,
                                      .height = bottom - top,
                                      .halved = halved};
    return 0;
}

static struct resample_output augment_output_of(enum job_preprocess family, int grey_channels)
{
    const struct job_pixels *p = job_pixels_of(family);
    struct resample_output output = {.round = family == JOB_PREPROCESS_TORCHVISION,
                                     .grey_channels = grey_channels};

    for (int c = 0; c < 3; c++) {
        output.scale[c] = 1 / (p->range * p->deviation[c]);
        output.shift[c] = (0 - p->mean[c]) / p->deviation[c];
    }
    return output;
}

int augment_apply(struct augmenter *a, enum job_preprocess family, const struct augment_plan *plan,
                  const struct jpeg_pixels *in, const struct jpeg_rectangle *part, float *out,
                  struct error *e)
{
    struct resample_output output =
        plan->bytes ? (struct resample_output){true, {1, 1, 1}, {0}, part->grey ? 1 : 3}
                    : augment_output_of(family, part->grey ? 1 : 3);
    struct resample_box box = augment_decoded_box(&plan->box, part->halved);
    size_t floats = (size_t)box.width * (size_t)in->channels + 1;

    if (floats > a->row_capacity) {
        free(a->row);
        a->row = malloc(floats * sizeof *a->row);
        a->row_capacity = a->row ? floats : 0;
        if (!a->row)
            return error_set(e, ERR_NO_MEMORY, "no memory for a row of %zu values", floats);
    }
    box.x -= part->x;
    box.y -= part->y;
    resample(in, &box, &a->rows, &a->columns, &output, a->row, out);
    return 0;
}

void augment_normalize(enum job_preprocess family, const uint8_t *pixels, size_t count,
                       int channels, float *out)
{
    struct resample_output o = augment_output_of(family, channels);
    float table[3][256];

    for (int c = 0; c < channels; c++)
        for (int v = 0; v < 256; v++)
            table[c][v] = (float)v * o.scale[c] + o.shift[c];
    for (size_t i = 0; i < count; i += (size_t)channels)
        for (int c = 0; c < channels; c++)
            out[i + (size_t)c] = table[c][pixels[i + (size_t)c]];
}

/* Draws the logarithm of a Gamma(shape, 1) variate: Marsaglia and Tsang, "A simple method for
 * generating gamma variables", 2000, including their step from shape + 1 to shape. The logarithm,
 * because for a small shape most variates underflow a double. */
static double augment_log_gamma(struct rng *r, double shape)
{
    double boost = shape < 1 ? log(1 - rng_unit(r)) / shape : 0;
    double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3, c = 1 / sqrt(9 * d);

    for (;;) {
        double x = rng_normal(r), v = 1 + c * x;
        if (v <= 0)
            continue;
        v = v * v * v;
        if (log(1 - rng_unit(r)) < 0.5 * x * x + d - d * v + d * log(v))
            return log(d * v) + boost;
    }
}

static double augment_beta(struct rng *r, double alpha)
{
    double a = augment_log_gamma(r, alpha), b = augment_log_gamma(r, alpha);

    return 1 / (1 + exp(b - a));
}

double mixup_lambda(double alpha, int64_t seed, int64_t epoch, int64_t step)
{
    struct rng r = rng_stream(seed, epoch, step, RNG_MIXUP);

    return augment_beta(&r, alpha);
}

double cutmix_draw(double alpha, int64_t seed, int64_t epoch, int64_t step, int size,
                   struct cutmix_box *box)
{
    struct rng r = rng_stream(seed, epoch, step, RNG_CUTMIX);
    int x = (int)rng_below(&r, (uint32_t)size), y = (int)rng_below(&r, (uint32_t)size);
    int half = (int)(0.5 * sqrt(1 - augment_beta(&r, alpha)) * size);

    *box = (struct cutmix_box){.left = x > half ? x - half : 0,
                               .top = y > half ? y - half : 0,
                               .right = x + half < size ? x + half : size,
                               .bottom = y + half < size ? y + half : size};
    return 1 - (double)(box->right - box->left) * (box->bottom - box->top) / ((double)size * size);
}

void cutmix_images(float *to, const float *from, int n, int size, int channels,
                   const struct cutmix_box *box)
{
    size_t row = (size_t)size * (size_t)channels, image = (size_t)size * row;
    size_t width = (size_t)(box->right - box->left) * (size_t)channels;

    if (to != from)
        memcpy(to, from, (size_t)n * image * sizeof *to);
    for (int i = 0; i < n / 2; i++)
        for (int y = box->top; y < box->bottom; y++) {
            size_t at = (size_t)y * row + (size_t)(box->left * channels);
            float *first = to + (size_t)i * image + at;
            float *second = to + (size_t)(n - 1 - i) * image + at;
            for (size_t k = 0; k < width; k++) {
                float other = first[k];
                first[k] = second[k];
                second[k] = other;
            }
        }
}

void mixup_images(float *to, const float *from, int n, size_t floats, double lambda)
{
    float own = (float)lambda, other = (float)(1 - lambda);

    for (int i = 0; i < (n + 1) / 2; i++) {
        size_t first = (size_t)i * floats, second = (size_t)(n - 1 - i) * floats;
        for (size_t k = 0; k < floats; k++) {
            float a = from[first + k], b = from[second + k];
            to[first + k] = own * a + other * b;
            to[second + k] = own * b + other * a;
        }
    }
}
