#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"
#include "worker/data/augment.h"

#define TPU         JOB_PREPROCESS_TPU
#define TORCHVISION JOB_PREPROCESS_TORCHVISION
#define MLPERF      JOB_PREPROCESS_MLPERF

static const struct augment_parts both = {true, true};

/* The whole image at hand. */
static void apply_plan(struct augmenter *a, enum job_preprocess family,
                       const struct augment_plan *plan, const struct jpeg_pixels *in, int size,
                       float *out)
{
    struct jpeg_rectangle needed, whole = {0, 0, in->width, in->height, false, false};
    struct augment_plan decoded = *plan;
    struct error e;
    decoded.never_halved = true;
    plan = &decoded;
    cr_assert_eq(augment_prepare(a, family, plan, size, &needed, &e), 0);
    cr_assert(!needed.halved && needed.x >= 0 && needed.y >= 0 &&
              needed.x + needed.width <= in->width && needed.y + needed.height <= in->height);
    cr_assert_eq(augment_apply(a, family, plan, in, &whole, out, &e), 0);
}

static struct jpeg_pixels random_pixels(int width, int height, int channels, int64_t seed)
{
    struct rng r = rng_stream(seed, 0, 0, RNG_SYNTHETIC);
    size_t n = (size_t)width * (size_t)height * (size_t)channels;
    uint8_t *data = malloc(n);
    for (size_t i = 0; i < n; i++)
        data[i] = (uint8_t)rng_u32(&r);
    return (struct jpeg_pixels){data, width, height, channels};
}

static double pixel(const struct jpeg_pixels *p, const struct resample_box *box, int x, int y,
                    int c)
{
    x = x < 0 ? 0 : x >= box->width ? box->width - 1 : x;
    y = y < 0 ? 0 : y >= box->height ? box->height - 1 : y;
    int at = (box->y + y) * p->width + box->x + x;
    return p->data[at * p->channels + (p->channels == 1 ? 0 : c)];
}

static double keys_cubic(double x)
{
    const double a = -0.75;
    x = fabs(x);
    return x <= 1  ? (a + 2) * x * x * x - (a + 3) * x * x + 1
           : x < 2 ? a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a
                   : 0;
}

/* The plain twin of the tpu family: 16 pixels, two cubics, nothing precomputed. */
static double tpu_twin(const struct jpeg_pixels *p, const struct augment_plan *plan, int size,
                       int x, int y, int c)
{
    static const double mean[3] = {.485, .456, .406}, deviation[3] = {.229, .224, .225};
    double value = 0;
    if (plan->flip)
        x = size - 1 - x;
    double at_x = (double)x * plan->box.width / size, at_y = (double)y * plan->box.height / size;
    int in_x = (int)floor(at_x), in_y = (int)floor(at_y);
    for (int j = -1; j <= 2; j++)
        for (int i = -1; i <= 2; i++)
            value += keys_cubic(at_x - in_x - i) * keys_cubic(at_y - in_y - j) *
                     pixel(p, &plan->box, in_x + i, in_y + j, c);
    return (value / 255 - mean[c]) / deviation[c];
}

/* The plain twin of torchvision's: the triangle over every pixel of the crop, normalised; then 8
 * bits. */
static double torchvision_twin(const struct jpeg_pixels *p, const struct augment_plan *plan,
                               int size, int x, int y, int c)
{
    static const double mean[3] = {.485, .456, .406}, deviation[3] = {.229, .224, .225};
    double value = 0, sum = 0;
    if (plan->flip)
        x = size - 1 - x;
    double scale_x = (double)plan->box.width / plan->resized_width;
    double scale_y = (double)plan->box.height / plan->resized_height;
    double at_x = (x + plan->left + 0.5) * scale_x, at_y = (y + plan->top + 0.5) * scale_y;
    for (int j = 0; j < plan->box.height; j++)
        for (int i = 0; i < plan->box.width; i++) {
            double weight = fmax(0, 1 - fabs(i + 0.5 - at_x) / fmax(1, scale_x)) *
                            fmax(0, 1 - fabs(j + 0.5 - at_y) / fmax(1, scale_y));
            sum += weight;
            value += weight * pixel(p, &plan->box, i, j, c);
        }
    return (value / sum / 255 - mean[c]) / deviation[c];
}

/* The plain twin of mlperf: four pixels; the mirror is that of the crop, not of the result. */
static double mlperf_twin(const struct jpeg_pixels *p, const struct augment_plan *plan, int x,
                          int y, int c)
{
    static const double mean[3] = {123.68, 116.78, 103.94};
    double at_x = (double)(x + plan->left) * plan->box.width / plan->resized_width;
    double at_y = (double)(y + plan->top) * plan->box.height / plan->resized_height;
    int in_x = (int)at_x, in_y = (int)at_y;
    double value = 0;
    for (int j = 0; j <= 1; j++)
        for (int i = 0; i <= 1; i++) {
            int from = in_x + i >= plan->box.width ? plan->box.width - 1 : in_x + i;
            if (plan->flip)
                from = plan->box.width - 1 - from;
            value += (i ? at_x - in_x : 1 - at_x + in_x) * (j ? at_y - in_y : 1 - at_y + in_y) *
                     pixel(p, &plan->box, from, in_y + j, c);
        }
    return value - mean[c];
}

/* Compares all values; most: how far one may be off, in 1/255 before normalising. */
static void compare_pixels(enum job_preprocess family, const struct jpeg_pixels *p,
                           const struct augment_plan *plan, int size, double most)
{
    float *out = malloc((size_t)size * (size_t)size * 3 * sizeof *out);
    struct augmenter a = {0};
    double worst = 0;
    apply_plan(&a, family, plan, p, size, out);
    for (int y = 0; y < size; y++)
        for (int x = 0; x < size; x++)
            for (int c = 0; c < 3; c++) {
                double twin = family == TPU      ? tpu_twin(p, plan, size, x, y, c)
                              : family == MLPERF ? mlperf_twin(p, plan, x, y, c)
                                                 : torchvision_twin(p, plan, size, x, y, c);
                double off = fabs(out[(y * size + x) * 3 + c] - twin);
                off *= family == MLPERF ? 1 : 0.229 * 255;
                worst = off > worst ? off : worst;
            }
    cr_expect_lt(worst, most, "%dx%dx%d to %d: %g", p->width, p->height, p->channels, size, worst);
    augmenter_free(&a);
    free(out);
}

static void check_family(enum job_preprocess family, double most)
{
    static const int sizes[][3] = {
        {28, 28, 32},
        {50, 37, 24},
        {1,  1,  8 },
        {3,  40, 16},
        {40, 2,  16},
        {90, 64, 17}
    };
    struct augment_plan plan;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int channels = 1; channels <= 4; channels += channels == 1 ? 2 : 1) {
            int width = sizes[i][0], height = sizes[i][1], size = sizes[i][2];
            struct jpeg_pixels p = random_pixels(width, height, channels, (int64_t)i);
            augment_plan_eval(family, width, height, size, 0, &plan);
            compare_pixels(family, &p, &plan, size, most);
            for (int k = 0; k < 5; k++) {
                struct rng r = rng_stream(1, 0, k, RNG_AUGMENT);
                augment_plan_train(family, both, width, height, size, &r, &plan);
                compare_pixels(family, &p, &plan, size, most);
            }
            free((void *)p.data);
        }
}

/* Phases are rounded to 1/1024, as TensorFlow's table has them: a steep edge moves by up to 255
 * x 2.25/2048 in each direction. */
Test(augment, tpu_equals_its_plain_twin)
{
    check_family(TPU, 1.0);
}

Test(augment, torchvision_equals_its_plain_twin)
{
    check_family(TORCHVISION, 0.501 * 0.229 / 0.224);
}

Test(augment, mlperf_equals_its_plain_twin)
{
    check_family(MLPERF, 0.01);
}

Test(augment, evaluation_crops_are_the_recipes)
{
    struct augment_plan p;
    augment_plan_eval(TPU, 500, 375, 224, 0, &p);
    cr_expect(p.box.width == 328 && p.box.height == 328 && p.box.x == 86 && p.box.y == 24);
    augment_plan_eval(TPU, 28, 28, 32, 0, &p);
    cr_expect(p.box.width == 24 && p.box.x == 2 && p.box.y == 2 && !p.flip);
    augment_plan_eval(MLPERF, 500, 375, 224, 0, &p);
    cr_expect(p.resized_height == 256 && p.resized_width == 341 && p.left == 58 && p.top == 16);
    augment_plan_eval(TORCHVISION, 500, 375, 224, 0, &p);
    cr_expect(p.resized_height == 256 && p.resized_width == 341 && p.left == 58 && p.top == 16);
    augment_plan_eval(TORCHVISION, 28, 28, 32, 0, &p);
    cr_expect(p.resized_height == 37 && p.resized_width == 37 && p.left == 2 && p.top == 2);
    /* timm's and torchvision's for networks that were trained at 176 */
    augment_plan_eval(TORCHVISION, 500, 375, 224, 232, &p);
    cr_expect(p.resized_height == 232 && p.resized_width == 309 && p.left == 42 && p.top == 4);
    augment_plan_eval(MLPERF, 500, 375, 224, 232, &p);
    cr_expect(p.resized_height == 232 && p.resized_width == 309 && p.left == 42 && p.top == 4);
    augment_plan_eval(TPU, 500, 400, 224, 256, &p);
    cr_expect(p.box.width == 350 && p.box.height == 350 && p.box.x == 75 && p.box.y == 25);
}

static void check_crop(enum job_preprocess family, int width, int height,
                       const struct augment_plan *p, double area)
{
    const struct resample_box *b = &p->box;
    double aspect = (double)b->width / b->height, slack = 1.0 / b->width + 1.0 / b->height;
    cr_expect(b->x >= 0 && b->y >= 0 && b->width > 0 && b->height > 0 && b->x + b->width <= width &&
              b->y + b->height <= height);
    if (family == MLPERF && area == 1) /* nothing found */
        return;
    cr_expect(aspect > 0.75 - slack && aspect < 4.0 / 3 + 2 * slack, "%g", aspect);
    double least = family == TORCHVISION ? 0.08 - slack : 0.1;
    cr_expect(area >= least && area <= 1, "%g", area);
}

/* A 500 x 375 image: crops lie around its middle, and half are mirrored. */
static void check_crops(enum job_preprocess family, double least_mean_area, double most_mean_area)
{
    const int n = 4000;
    double areas = 0, centers = 0;
    int flips = 0;
    struct augment_plan p;
    for (int i = 0; i < n; i++) {
        struct rng r = rng_stream(1, 0, i, RNG_AUGMENT);
        augment_plan_train(family, both, 500, 375, 224, &r, &p);
        double area = (double)p.box.width * p.box.height / (500.0 * 375);
        check_crop(family, 500, 375, &p, area);
        areas += area;
        centers += p.box.x + 0.5 * p.box.width;
        flips += p.flip;
    }
    cr_expect(abs(flips - n / 2) < 130, "%d", flips);
    cr_expect_float_eq(centers / n, 250, 3);
    cr_expect(areas / n > least_mean_area && areas / n < most_mean_area, "%g", areas / n);
}

Test(augment, random_crops_keep_the_rules)
{
    /* The height is uniform from about 0.33 of the image's to all of it, the aspect is 1.04 on
     * average: a mean area of 0.49 x 1.04 x 375/500 = 0.38. */
    check_crops(TPU, 0.36, 0.40);
    check_crops(MLPERF, 0.34, 0.39);
    /* Uniform in 0.08 to 1 would be 0.54; the largest often do not fit. */
    check_crops(TORCHVISION, 0.42, 0.54);
}

Test(augment, impossible_crops_fall_back)
{
    struct augment_plan p, eval;
    struct rng r = rng_stream(1, 0, 0, RNG_AUGMENT);
    augment_plan_train(TORCHVISION, both, 4000, 10, 32, &r, &p);
    cr_expect(p.box.height == 10 && p.box.width == 13 && p.box.x == 1993);
    augment_plan_train(TORCHVISION, both, 10, 4000, 32, &r, &p);
    cr_expect(p.box.width == 10 && p.box.height == 13);
    augment_plan_train(TPU, both, 4000, 10, 32, &r, &p);
    augment_plan_eval(TPU, 4000, 10, 32, 0, &eval);
    cr_expect_arr_eq(&p.box, &eval.box, sizeof p.box);
    augment_plan_train(MLPERF, both, 4000, 10, 32, &r, &p);
    cr_expect(p.box.width == 4000 && p.box.height == 10);
}

/* Each part alone is what it is in both together. */
Test(augment, parts_are_switched_by_themselves)
{
    static const struct augment_parts parts[] = {
        {false, false},
        {true,  false},
        {false, true }
    };
    int flips = 0;
    for (int family = TPU; family <= TORCHVISION; family++)
        for (int i = 0; i < 50; i++) {
            struct augment_plan all, part, eval;
            struct rng r = rng_stream(1, 0, i, RNG_AUGMENT), again;
            augment_plan_eval(family, 500, 375, 224, 0, &eval);
            again = r;
            augment_plan_train(family, both, 500, 375, 224, &again, &all);
            for (int k = 0; k < 3; k++) {
                again = r;
                augment_plan_train(family, parts[k], 500, 375, 224, &again, &part);
                const struct augment_plan *crop = parts[k].crop ? &all : &eval;
                cr_assert_eq(part.flip, parts[k].flip && all.flip);
                cr_assert_arr_eq(&part.box, &crop->box, sizeof part.box);
                cr_assert(part.left == crop->left && part.top == crop->top &&
                          part.resized_width == crop->resized_width);
                flips += part.flip;
            }
        }
    cr_expect(flips > 30 && flips < 120, "%d", flips);
}

/* mlperf mirrors before it resizes: its twin says what that means. */
Test(augment, flip_mirrors)
{
    struct jpeg_pixels in = random_pixels(20, 20, 3, 9);
    struct augmenter a = {0};
    struct augment_plan plan;
    float plain[16 * 16 * 3], mirrored[16 * 16 * 3];
    for (int family = 0; family < 2; family++) {
        enum job_preprocess f = family ? TPU : TORCHVISION;
        augment_plan_eval(f, 20, 20, 16, 0, &plan);
        apply_plan(&a, f, &plan, &in, 16, plain);
        plan.flip = true;
        apply_plan(&a, f, &plan, &in, 16, mirrored);
        for (int y = 0; y < 16; y++)
            for (int x = 0; x < 16; x++)
                cr_assert_arr_eq(plain + (y * 16 + x) * 3, mirrored + (y * 16 + 15 - x) * 3, 12);
    }
    augmenter_free(&a);
    free((void *)in.data);
}

/* Only torchvision's antialiased filter, and only where 3.5 pixels and more make one. */
Test(augment, large_crops_are_taken_from_half_the_size)
{
    struct augmenter a = {0};
    struct jpeg_rectangle needed;
    struct error e;
    for (int family = 0; family < 3; family++)
        for (int width = 112; width <= 113; width++) {
            struct augment_plan plan = {
                .box = {11, 20, width == 112 ? 111 : width, 112},
                .resized_width = 32,
                .resized_height = 32
            };
            cr_assert_eq(augment_prepare(&a, (enum job_preprocess)family, &plan, 32, &needed, &e),
                         0);
            bool halved = family == TORCHVISION && width == 113;
            cr_expect_eq(needed.halved, halved);
            if (halved) /* 11 to 124 and 20 to 132 */
                cr_expect(needed.x == 5 && needed.width == 57 && needed.y == 10 &&
                          needed.height == 56);
        }
    augmenter_free(&a);
}

/* Where the four pixels that make one at half size are equal, the result is that of the whole
 * image, wherever the box begins and ends. */
Test(augment, half_the_size_gives_the_same_result_for_equal_pixels)
{
    struct jpeg_pixels half = random_pixels(150, 140, 4, 3), full = {NULL, 300, 280, 4};
    uint32_t *data = malloc(300 * 280 * sizeof *data);
    float whole[32 * 32 * 3], result[32 * 32 * 3];
    struct augmenter a = {0};
    struct error e;

    for (int i = 0; i < 300 * 280; i++)
        memcpy(&data[i], half.data + 4 * (i / 300 / 2 * 150 + i % 300 / 2), 4);
    full.data = (uint8_t *)data;
    for (int at = 0; at < 40; at++) {
        struct augment_plan plan = {
            .box = {at % 5, at % 7, 113 + 3 * at, 112 + 2 * at},
            .resized_width = 32,
            .resized_height = 32,
            .flip = at % 2
        };
        struct jpeg_rectangle part;
        apply_plan(&a, TORCHVISION, &plan, &full, 32, whole);
        cr_assert_eq(augment_prepare(&a, TORCHVISION, &plan, 32, &part, &e), 0);
        cr_assert(part.halved && part.x + part.width <= 150 && part.y + part.height <= 140);
        part = (struct jpeg_rectangle){0, 0, 150, 140, true, false};
        cr_assert_eq(augment_apply(&a, TORCHVISION, &plan, &half, &part, result, &e), 0);
        for (int i = 0; i < 32 * 32 * 3; i++) /* a rounded value may fall on the other side */
            cr_assert_float_eq(result[i], whole[i], 1.001 / 255 / 0.224, "%d: %d", at, i);
    }
    augmenter_free(&a);
    free(data);
    free((void *)half.data);
}

/* The pixels themselves, in three channels or in one. */
Test(augment, whole_takes_an_image_of_the_networks_size_as_it_is)
{
    uint8_t grey[28 * 28];
    struct jpeg_pixels in = {.data = grey, .width = 28, .height = 28, .channels = 1};
    struct jpeg_rectangle needed, all = {0, 0, 28, 28, false, true};
    struct augmenter a = {0};
    struct augment_plan plan;
    struct error e;
    float out[28 * 28 * 3];

    for (int i = 0; i < 28 * 28; i++)
        grey[i] = (uint8_t)(i * 7);
    for (int train = 0; train < 2; train++) {
        struct rng r = rng_stream(1, 0, 0, RNG_AUGMENT);
        struct augment_parts parts = {.crop = true};
        if (train)
            augment_plan_train(JOB_PREPROCESS_WHOLE, parts, 28, 28, 28, &r, &plan);
        else
            augment_plan_eval(JOB_PREPROCESS_WHOLE, 28, 28, 28, 0, &plan);
        cr_assert_eq(augment_prepare(&a, JOB_PREPROCESS_WHOLE, &plan, 28, &needed, &e), 0);
        cr_assert(needed.width == 28 && needed.height == 28 && !needed.halved);
        all.grey = !train;
        cr_assert_eq(augment_apply(&a, JOB_PREPROCESS_WHOLE, &plan, &in, &all, out, &e), 0);
        for (int i = 0; i < 28 * 28 * (train ? 3 : 1); i++)
            cr_assert_float_eq(out[i], grey[train ? i / 3 : i] / 255.0f, 1e-7);
    }
    augmenter_free(&a);
}
