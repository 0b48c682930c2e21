#include "worker/data/distort.h"

#include <math.h>
#include <string.h>

enum { BINS = 31, ERASE_ATTEMPTS = 10 };

static uint8_t distort_clip(double x)
{
    return x <= 0 ? 0 : x >= 255 ? 255 : (uint8_t)x;
}

/* Pillow's convert("L") of a pixel */
static int distort_grey(const uint8_t *p, int channels)
{
    return channels == 1 ? p[0] : (p[0] * 19595 + p[1] * 38470 + p[2] * 7471 + 0x8000) >> 16;
}

/* Pillow's Image.blend in single precision, without fused steps: from `from`, beyond `to` if the
 * factor is above 1 */
static uint8_t distort_blend(int from, int to, float factor)
{
    float change = (float)((double)factor * (to - from));

    return distort_clip((float)((double)from + (double)change));
}

/* ---- places */

/* Reads output pixel (x, y) from (m[0] x + m[1] y + m[2], m[3] x + m[4] y + m[5]), by Pillow's
 * fixed-point steps for nearest neighbours. */
static void distort_affine(const double m[6], uint8_t *pixels, int size, int channels,
                           uint8_t *scratch)
{
    int64_t fixed[6];
    size_t bytes = (size_t)channels;

    memcpy(scratch, pixels, (size_t)size * (size_t)size * bytes);
    for (int i = 0; i < 6; i++)
        fixed[i] = (int64_t)floor(
            (i % 3 == 2 ? m[i] + m[i - 2] * 0.5 + m[i - 1] * 0.5 : m[i]) * 65536 + 0.5);
    for (int y = 0; y < size; y++) {
        int64_t xx = fixed[2] + y * fixed[1], yy = fixed[5] + y * fixed[4];
        for (int x = 0; x < size; x++, xx += fixed[0], yy += fixed[3], pixels += bytes) {
            int64_t from_x = xx >> 16, from_y = yy >> 16;
            if (from_x < 0 || from_x >= size || from_y < 0 || from_y >= size)
                memset(pixels, 0, bytes);
            else
                memcpy(pixels, scratch + (size_t)(from_y * size + from_x) * bytes, bytes);
        }
    }
}

static double distort_round_15(double x)
{
    return round(x * 1e15) / 1e15; /* as Pillow's rotate */
}

static void distort_rotate(double degrees, uint8_t *pixels, int size, int channels,
                           uint8_t *scratch)
{
    double angle = -degrees * M_PI / 180, centre = size / 2.0;
    double c = distort_round_15(cos(angle)), s = distort_round_15(sin(angle));
    double m[6] = {c, s, centre - c * centre - s * centre, -s, c, centre + s * centre - c * centre};

    distort_affine(m, pixels, size, channels, scratch);
}

/* ---- values */

static void distort_look_up(const uint8_t table[256], int channel, uint8_t *pixels, size_t count,
                            int channels)
{
    for (size_t i = (size_t)channel; i < count; i += (size_t)channels)
        pixels[i] = table[pixels[i]];
}

static void distort_brightness(float factor, uint8_t *pixels, size_t count)
{
    uint8_t table[256];

    for (int v = 0; v < 256; v++)
        table[v] = distort_blend(0, v, factor);
    distort_look_up(table, 0, pixels, count, 1);
}

static void distort_color(float factor, uint8_t *pixels, size_t count, int channels)
{
    for (size_t i = 0; i < count; i += (size_t)channels) {
        int grey = distort_grey(pixels + i, channels);
        for (int k = 0; k < channels; k++)
            pixels[i + (size_t)k] = distort_blend(grey, pixels[i + (size_t)k], factor);
    }
}

static void distort_contrast(float factor, uint8_t *pixels, size_t count, int channels)
{
    uint8_t table[256];
    int64_t sum = 0;

    for (size_t i = 0; i < count; i += (size_t)channels)
        sum += distort_grey(pixels + i, channels);
    int mean = (int)((double)sum / (double)(count / (size_t)channels) + 0.5);
    for (int v = 0; v < 256; v++)
        table[v] = distort_blend(mean, v, factor);
    distort_look_up(table, 0, pixels, count, 1);
}

/* The other end is Pillow's ImageFilter.SMOOTH, which leaves the edge as it is. */
static void distort_sharpness(float factor, uint8_t *pixels, int size, int channels,
                              uint8_t *scratch)
{
    int row = size * channels;

    memcpy(scratch, pixels, (size_t)(size * row));
    for (int y = 1; y < size - 1; y++)
        for (int k = y * row + channels; k < (y + 1) * row - channels; k++) {
            const uint8_t *p = scratch + k;
            int sum = 4 * p[0];
            for (int at = -row; at <= row; at += row)
                sum += p[at - channels] + p[at] + p[at + channels];
            pixels[k] = distort_blend((2 * sum + 13) / 26, p[0], factor);
        }
}

static void distort_auto_contrast(uint8_t *pixels, size_t count, int channels)
{
    for (int c = 0; c < channels; c++) {
        uint8_t table[256], low = 255, high = 0;
        for (size_t i = (size_t)c; i < count; i += (size_t)channels) {
            low = pixels[i] < low ? pixels[i] : low;
            high = pixels[i] > high ? pixels[i] : high;
        }
        if (high <= low)
            continue;
        double scale = 255.0 / (high - low), offset = -low * scale;
        for (int v = 0; v < 256; v++) {
            volatile double scaled = v * scale; /* not fused with the sum, as in Pillow */
            table[v] = distort_clip(scaled + offset);
        }
        distort_look_up(table, c, pixels, count, channels);
    }
}

static void distort_equalize(uint8_t *pixels, size_t count, int channels)
{
    for (int c = 0; c < channels; c++) {
        int64_t histogram[256] = {0}, all = 0, last = 0, used = 0;
        uint8_t table[256];
        for (size_t i = (size_t)c; i < count; i += (size_t)channels)
            histogram[pixels[i]]++;
        for (int v = 0; v < 256; v++) {
            all += histogram[v];
            used += histogram[v] > 0;
            last = histogram[v] ? histogram[v] : last;
        }
        int64_t step = (all - last) / 255, sum = step / 2;
        if (used <= 1 || step == 0)
            continue;
        for (int v = 0; v < 256; v++) {
            table[v] = distort_clip((double)(sum / step));
            sum += histogram[v];
        }
        distort_look_up(table, c, pixels, count, channels);
    }
}

/* Pillow's conversions to HSV and back, of 8 bits each */
static void distort_hue_of(uint8_t *p, uint8_t shift)
{
    int r = p[0], g = p[1], b = p[2], max = r > g ? r : g, min = r < g ? r : g;
    uint8_t hue = 0;

    max = b > max ? b : max;
    min = b < min ? b : min;
    if (max == min)
        return;
    float range = (float)(max - min), s = range / (float)max;
    float rc = (float)(max - r) / range, gc = (float)(max - g) / range,
          bc = (float)(max - b) / range;
    double h = r == max   ? (double)(bc - gc)
               : g == max ? 2.0 + (double)rc - (double)bc
                          : 4.0 + (double)gc - (double)rc;
    hue = (uint8_t)((uint8_t)(int)((double)(float)fmod((double)(float)h / 6.0 + 1.0, 1.0) * 255.0) +
                    shift);
    double saturation = (double)((float)(uint8_t)(int)((double)s * 255.0)) / 255.0;
    int sector = (int)floor(hue * 6.0 / 255.0);
    double fraction = hue * 6.0 / 255.0 - sector;
    uint8_t v = (uint8_t)max, low = distort_clip(round(max * (1 - saturation))),
            falls = distort_clip(round(max * (1 - saturation * fraction))),
            rises = distort_clip(round(max * (1 - saturation * (1 - fraction))));
    const uint8_t sectors[6][3] = {
        {v,     rises, low  },
        {falls, v,     low  },
        {low,   v,     rises},
        {low,   falls, v    },
        {rises, low,   v    },
        {v,     low,   falls}
    };
    memcpy(p, saturation == 0 ? (uint8_t[3]){v, v, v} : sectors[sector % 6], 3);
}

void distort_apply(enum distort_op op, double magnitude, uint8_t *pixels, int size, int channels,
                   uint8_t *scratch)
{
    size_t count = (size_t)size * (size_t)size * (size_t)channels;
    float factor = (float)(1 + magnitude);
    uint8_t table[256];

    switch (op) {
    case DISTORT_IDENTITY:
        return;
    case DISTORT_SHEAR_X:
        distort_affine((double[]){1, magnitude, 0, 0, 1, 0}, pixels, size, channels, scratch);
        return;
    case DISTORT_SHEAR_Y:
        distort_affine((double[]){1, 0, 0, magnitude, 1, 0}, pixels, size, channels, scratch);
        return;
    case DISTORT_TRANSLATE_X:
        distort_affine((double[]){1, 0, -trunc(magnitude), 0, 1, 0}, pixels, size, channels,
                       scratch);
        return;
    case DISTORT_TRANSLATE_Y:
        distort_affine((double[]){1, 0, 0, 0, 1, -trunc(magnitude)}, pixels, size, channels,
                       scratch);
        return;
    case DISTORT_ROTATE:
        distort_rotate(magnitude, pixels, size, channels, scratch);
        return;
    case DISTORT_BRIGHTNESS:
        distort_brightness(factor, pixels, count);
        return;
    case DISTORT_COLOR:
        distort_color(factor, pixels, count, channels);
        return;
    case DISTORT_CONTRAST:
        distort_contrast(factor, pixels, count, channels);
        return;
    case DISTORT_SHARPNESS:
        distort_sharpness(factor, pixels, size, channels, scratch);
        return;
    case DISTORT_POSTERIZE:
    case DISTORT_SOLARIZE:
        for (int v = 0; v < 256; v++)
            table[v] = (uint8_t)(op == DISTORT_SOLARIZE ? v < magnitude ? v : 255 - v
                                                        : v & ~((1 << (8 - (int)magnitude)) - 1));
        distort_look_up(table, 0, pixels, count, 1);
        return;
    case DISTORT_AUTO_CONTRAST:
        distort_auto_contrast(pixels, count, channels);
        return;
    case DISTORT_EQUALIZE:
        distort_equalize(pixels, count, channels);
        return;
    case DISTORT_HUE:
        for (size_t i = 0; channels == 3 && i < count; i += 3)
            distort_hue_of(pixels + i, (uint8_t)(int)(magnitude * 255));
        return;
    }
}

/* ---- what is drawn */

static double distort_magnitude(enum job_auto_augment kind, enum distort_op op, int bin, int size)
{
    bool trivial = kind == JOB_AUTO_AUGMENT_TRIVIAL;
    double share = bin / (BINS - 1.0);

    switch (op) {
    case DISTORT_SHEAR_X:
    case DISTORT_SHEAR_Y:
        return share * (trivial ? 0.99 : 0.3);
    case DISTORT_TRANSLATE_X:
    case DISTORT_TRANSLATE_Y:
        return share * (trivial ? 32 : 150.0 / 331 * size);
    case DISTORT_ROTATE:
        return share * (trivial ? 135 : 30);
    case DISTORT_POSTERIZE:
        return 8 - rint(share * (trivial ? 6 : 4)); /* half to even, as torch */
    case DISTORT_SOLARIZE:
        return 255 * (1 - share);
    case DISTORT_BRIGHTNESS:
    case DISTORT_COLOR:
    case DISTORT_CONTRAST:
    case DISTORT_SHARPNESS:
        return share * (trivial ? 0.99 : 0.9);
    default:
        return 0;
    }
}

bool distort_changes_pixels(const struct distort_config *c)
{
    return c->auto_augment != JOB_AUTO_AUGMENT_NONE || c->color_jitter > 0 || c->hue_jitter > 0;
}

static void distort_draw_op(const struct distort_config *c, struct rng *r, uint8_t *pixels,
                            int size, int channels, uint8_t *scratch)
{
    bool trivial = c->auto_augment == JOB_AUTO_AUGMENT_TRIVIAL;
    enum distort_op op = (enum distort_op)rng_below(r, DISTORT_OPS);
    int bin = trivial ? (int)rng_below(r, BINS) : c->magnitude;
    double magnitude = distort_magnitude(c->auto_augment, op, bin, size);
    bool negative = rng_below(r, 2);

    if (negative && op >= DISTORT_SHEAR_X && op <= DISTORT_SHARPNESS)
        magnitude = -magnitude;
    distort_apply(op, magnitude, pixels, size, channels, scratch);
}

void distort_pixels(const struct distort_config *c, struct rng *r, uint8_t *pixels, int size,
                    int channels, uint8_t *scratch)
{
    static const enum distort_op jitter[] = {DISTORT_BRIGHTNESS, DISTORT_CONTRAST, DISTORT_COLOR};
    int ops = c->auto_augment == JOB_AUTO_AUGMENT_NONE      ? 0
              : c->auto_augment == JOB_AUTO_AUGMENT_TRIVIAL ? 1
                                                            : c->ops;

    for (int i = 0; i < ops; i++)
        distort_draw_op(c, r, pixels, size, channels, scratch);
    for (int i = 0; i < 3 && c->color_jitter > 0; i++)
        distort_apply(jitter[i], rng_range(r, -c->color_jitter, c->color_jitter), pixels, size,
                      channels, scratch);
    if (c->hue_jitter > 0)
        distort_apply(DISTORT_HUE, rng_range(r, -c->hue_jitter, c->hue_jitter), pixels, size,
                      channels, scratch);
}

void distort_erase(const struct distort_config *c, struct rng *r, float *image, int size,
                   int channels)
{
    if (c->erasing <= 0 || rng_unit(r) >= c->erasing)
        return;
    for (int attempt = 0; attempt < ERASE_ATTEMPTS; attempt++) {
        double area = (double)size * size * rng_range(r, 0.02, 0.33);
        double aspect = exp(rng_range(r, log(0.3), log(3.3)));
        int height = (int)rint(sqrt(area * aspect)), width = (int)rint(sqrt(area / aspect));
        if (height < 1 || width < 1 || height >= size || width >= size)
            continue;
        int top = (int)rng_below(r, (uint32_t)(size - height + 1)),
            left = (int)rng_below(r, (uint32_t)(size - width + 1));
        for (int y = top; y < top + height; y++)
            memset(image + (y * size + left) * channels, 0,
                   (size_t)(width * channels) * sizeof *image);
        return;
    }
}
