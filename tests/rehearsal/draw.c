#include "tests/rehearsal/draw.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <ft2build.h>
#include FT_FREETYPE_H
#include FT_OUTLINE_H

#include "common/rng.h"

#define CHINESE_FIRST 0x4E00
#define CHINESE_LAST  0x9FFF
#define GREY_ONE_IN   70

struct colour {
    float rgb[3];
};

struct artist {
    FT_Library library;
    FT_Face face;
    FT_UInt glyphs[DRAW_CLASSES]; /* by class */
    struct rng rng;               /* of the picture that is drawn */
    int width, height;
    uint8_t *pixels, *blurred; /* (height, width, 3) */
    uint8_t *ink;              /* (height, width): how much of a character covers a pixel */
    size_t room;               /* pixels */
};

/* ---- the font */

static int artist_choose(struct artist *a, const char *font, struct error *e)
{
    int count = 0;

    for (FT_ULong code = CHINESE_FIRST; code <= CHINESE_LAST; code++)
        count += FT_Get_Char_Index(a->face, code) != 0;
    if (count < DRAW_CLASSES)
        return error_set(e, ERR_INVALID,
                         "%s has %d Chinese characters; %d are needed, as Debian's fonts-vlgothic "
                         "has",
                         font, count, DRAW_CLASSES);
    int class = 0, seen = 0;
    for (FT_ULong code = CHINESE_FIRST; code <= CHINESE_LAST && class < DRAW_CLASSES; code++) {
        FT_UInt glyph = FT_Get_Char_Index(a->face, code);
        if (glyph && seen++ >= class * count / DRAW_CLASSES)
            a->glyphs[class ++] = glyph;
    }
    return 0;
}

int artist_create(const char *font, struct artist **out, struct error *e)
{
    struct artist *a = calloc(1, sizeof *a);
    int rc = 0;

    *out = NULL;
    if (!a)
        return error_set(e, ERR_NO_MEMORY, "no memory to draw");
    if (FT_Init_FreeType(&a->library))
        rc = error_set(e, ERR_INTERNAL, "FreeType does not start");
    if (rc == 0 && FT_New_Face(a->library, font, 0, &a->face))
        rc = error_set(e, ERR_NOT_FOUND,
                       "%s cannot be read as a font: name one with --font, or install Debian's "
                       "fonts-vlgothic",
                       font);
    if (rc == 0)
        rc = artist_choose(a, font, e);
    if (rc) {
        artist_destroy(a);
        return rc;
    }
    *out = a;
    return 0;
}

void artist_destroy(struct artist *a)
{
    if (!a)
        return;
    if (a->face)
        FT_Done_Face(a->face);
    if (a->library)
        FT_Done_FreeType(a->library);
    free(a->pixels);
    free(a->blurred);
    free(a->ink);
    free(a);
}

/* ---- the ground */

static float chance(struct artist *a, double from, double to)
{
    return (float)rng_range(&a->rng, from, to);
}

static struct colour any_colour(struct artist *a)
{
    return (struct colour){
        {chance(a, 0, 255), chance(a, 0, 255), chance(a, 0, 255)}
    };
}

/* Four colours, one in each corner, of which a part is common to all. */
static void fill_ground(struct artist *a)
{
    struct colour common = any_colour(a), corner[4];
    float share = chance(a, 0.3, 0.9);

    for (int k = 0; k < 4; k++) {
        corner[k] = any_colour(a);
        for (int c = 0; c < 3; c++)
            corner[k].rgb[c] = share * common.rgb[c] + (1 - share) * corner[k].rgb[c];
    }
    for (int y = 0; y < a->height; y++) {
        float down = (float)y / (float)a->height;
        uint8_t *row = a->pixels + (size_t)y * (size_t)a->width * 3;
        for (int c = 0; c < 3; c++) {
            float left = corner[0].rgb[c] + down * (corner[2].rgb[c] - corner[0].rgb[c]);
            float right = corner[1].rgb[c] + down * (corner[3].rgb[c] - corner[1].rgb[c]);
            float step = (right - left) / (float)a->width;
            for (int x = 0; x < a->width; x++)
                row[3 * x + c] = (uint8_t)(left + step * (float)x);
        }
    }
}

static void blend(uint8_t *pixel, const struct colour *colour, float share)
{
    for (int c = 0; c < 3; c++)
        pixel[c] = (uint8_t)((float)pixel[c] + share * (colour->rgb[c] - (float)pixel[c]));
}

/* An ellipse or a rectangle at any angle; size: of its longer side, as a share of the short side of
 * the picture. */
static void put_shape(struct artist *a, double least, double most)
{
    float side = (float)(a->width < a->height ? a->width : a->height);
    float half = side * chance(a, least, most) / 2, other = half * chance(a, 0.1, 1);
    float angle = chance(a, 0, 2 * M_PI), cosine = cosf(angle), sine = sinf(angle);
    float x0 = chance(a, 0, a->width), y0 = chance(a, 0, a->height), share = chance(a, 0.3, 1);
    struct colour colour = any_colour(a);
    bool round = rng_below(&a->rng, 2);
    int reach = (int)(half * 1.5f) + 1;

    for (int y = (int)y0 - reach < 0 ? 0 : (int)y0 - reach; y < a->height && y < y0 + reach; y++)
        for (int x = (int)x0 - reach < 0 ? 0 : (int)x0 - reach; x < a->width && x < x0 + reach;
             x++) {
            float dx = (float)x - x0, dy = (float)y - y0;
            float u = (cosine * dx + sine * dy) / half, v = (cosine * dy - sine * dx) / other;
            if (round ? u * u + v * v < 1 : fabsf(u) < 1 && fabsf(v) < 1)
                blend(a->pixels + 3 * ((size_t)y * (size_t)a->width + (size_t)x), &colour, share);
        }
}

/* ---- characters */

struct strokes {
    float size; /* height of the character, pixels */
    float angle, slant, wide, weight;
    float x, y; /* of its middle */
};

static FT_Fixed fixed(double value)
{
    return (FT_Fixed)lrint(value * 65536);
}

/* The outline, turned, slanted and scaled, with its middle at (x, y), as ink. */
static int put_ink(struct artist *a, FT_UInt glyph, const struct strokes *s, struct error *e)
{
    FT_Bitmap bitmap = {.rows = (unsigned)a->height,
                        .width = (unsigned)a->width,
                        .pitch = a->width,
                        .buffer = a->ink,
                        .num_grays = 256,
                        .pixel_mode = FT_PIXEL_MODE_GRAY};
    double cosine = cos(s->angle), sine = sin(s->angle);
    FT_Matrix turn = {fixed(cosine * s->wide), fixed(cosine * s->slant - sine),
                      fixed(sine * s->wide), fixed(sine * s->slant + cosine)};
    FT_BBox box;

    memset(a->ink, 0, (size_t)a->width * (size_t)a->height);
    if (FT_Set_Char_Size(a->face, 0, (FT_F26Dot6)lrintf(s->size * 64), 72, 72) ||
        FT_Load_Glyph(a->face, glyph, FT_LOAD_NO_HINTING | FT_LOAD_NO_BITMAP))
        return error_set(e, ERR_INVALID, "the font has a character that FreeType cannot read");
    FT_Outline *outline = &a->face->glyph->outline;
    FT_Outline_Embolden(outline, lrintf(s->weight * s->size * 64));
    FT_Outline_Transform(outline, &turn);
    FT_Outline_Get_CBox(outline, &box);
    FT_Outline_Translate(outline, lrintf(s->x * 64) - (box.xMin + box.xMax) / 2,
                         lrintf(s->y * 64) - (box.yMin + box.yMax) / 2);
    if (FT_Outline_Get_Bitmap(a->library, outline, &bitmap))
        return error_set(e, ERR_INVALID, "the font has a character that FreeType cannot draw");
    return 0;
}

static void colour_ink(struct artist *a, const struct colour *colour, float share)
{
    for (size_t i = 0; i < (size_t)a->width * (size_t)a->height; i++)
        if (a->ink[i])
            blend(a->pixels + 3 * i, colour, share * (float)a->ink[i] / 255);
}

static float luma(const float rgb[3])
{
    return 0.299f * rgb[0] + 0.587f * rgb[1] + 0.114f * rgb[2];
}

/* One that can be seen on what is in the middle of the picture now. */
static struct colour visible_colour(struct artist *a)
{
    float sum[3] = {0};
    int count = 0;

    for (int y = a->height / 4; y < a->height * 3 / 4; y += 2)
        for (int x = a->width / 4; x < a->width * 3 / 4; x += 2, count++)
            for (int c = 0; c < 3; c++)
                sum[c] += a->pixels[3 * ((size_t)y * (size_t)a->width + (size_t)x) + (size_t)c];
    float ground = luma(sum) / (float)count;
    struct colour colour = any_colour(a);
    for (int tries = 0; tries < 50 && fabsf(luma(colour.rgb) - ground) < 70; tries++)
        colour = any_colour(a);
    return colour;
}

static int put_class(struct artist *a, int class, struct error *e)
{
    float side = (float)(a->width < a->height ? a->width : a->height);
    struct strokes s = {
        .size = side * chance(a, 0.55, 0.95),
        .angle = chance(a, -0.3, 0.3),
        .slant = chance(a, -0.25, 0.25),
        .wide = chance(a, 0.8, 1.2),
        .weight = chance(a, 0, 0.05),
        .x = (float)a->width / 2 + chance(a, -0.15, 0.15) * (float)a->width,
        .y = (float)a->height / 2 + chance(a, -0.15, 0.15) * (float)a->height,
    };
    struct colour colour = visible_colour(a);
    int rc = put_ink(a, a->glyphs[class], &s, e);
    if (rc == 0)
        colour_ink(a, &colour, chance(a, 0.75, 1));
    return rc;
}

/* A small letter, which says nothing of the class. */
static int put_letter(struct artist *a, struct error *e)
{
    float side = (float)(a->width < a->height ? a->width : a->height);
    FT_UInt glyph = FT_Get_Char_Index(a->face, 'A' + rng_below(&a->rng, 26));
    struct strokes s = {.size = side * chance(a, 0.1, 0.3),
                        .angle = chance(a, 0, 6.28),
                        .wide = 1,
                        .x = chance(a, 0, a->width),
                        .y = chance(a, 0, a->height)};
    struct colour colour = any_colour(a);
    int rc = put_ink(a, glyph, &s, e);
    if (rc == 0)
        colour_ink(a, &colour, chance(a, 0.3, 1));
    return rc;
}

/* ---- the camera */

/* Each pixel becomes the mean of the 3 x 3 around it. */
static void blur(struct artist *a)
{
    size_t row = (size_t)a->width * 3;

    memcpy(a->blurred, a->pixels, row * (size_t)a->height);
    for (size_t y = 1; y + 1 < (size_t)a->height; y++)
        for (size_t x = 3; x + 3 < row; x++) {
            const uint8_t *p = a->pixels + y * row + x;
            int sum = 0;
            for (const uint8_t *line = p - row; line <= p + row; line += row)
                sum += line[-3] + line[0] + line[3];
            a->blurred[y * row + x] = (uint8_t)(sum / 9);
        }
    uint8_t *other = a->pixels;
    a->pixels = a->blurred;
    a->blurred = other;
}

/* Up to so much more or less in each colour of each pixel. By a generator of its own: Philox would
 * take longer than all the rest. */
static void add_noise(struct artist *a, int most)
{
    uint32_t x = rng_u32(&a->rng) | 1;

    for (size_t i = 0; most && i < 3 * (size_t)a->width * (size_t)a->height; i++) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        int value = a->pixels[i] + (int)((x >> 16) * (uint32_t)(2 * most + 1) >> 16) - most;
        a->pixels[i] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
    }
}

static void take_colour_away(struct artist *a)
{
    for (size_t i = 0; i < (size_t)a->width * (size_t)a->height; i++) {
        const float rgb[3] = {a->pixels[3 * i], a->pixels[3 * i + 1], a->pixels[3 * i + 2]};
        a->pixels[i] = (uint8_t)luma(rgb);
    }
}

/* ---- a picture */

/* Half of ImageNet's pictures are 500 x 375, and most of the others near it or upright. */
static int choose_size(struct artist *a, int short_side, struct error *e)
{
    static const float longer[] = {1.333f, 1.333f, 1.333f, 1.333f, 1.5f, 1, 1.333f, 1.5f};
    uint32_t kind = rng_below(&a->rng, 8);
    float narrow = (float)short_side * chance(a, 0.8, 1.2);
    float ratio = longer[kind] * (kind == 4 ? chance(a, 0.7, 1.3) : 1);
    int other = (int)(narrow * (ratio < 1 ? 1 : ratio));
    bool upright = kind >= 6;

    a->width = upright ? (int)narrow : other;
    a->height = upright ? other : (int)narrow;
    size_t pixels = (size_t)a->width * (size_t)a->height;
    if (pixels <= a->room)
        return 0;
    free(a->pixels);
    free(a->blurred);
    free(a->ink);
    a->room = pixels;
    a->pixels = malloc(3 * pixels);
    a->blurred = malloc(3 * pixels);
    a->ink = malloc(pixels);
    if (a->pixels && a->blurred && a->ink)
        return 0;
    a->room = 0;
    return error_set(e, ERR_NO_MEMORY, "no memory for a picture of %zu pixels", pixels);
}

static int draw_scene(struct artist *a, int class, struct error *e)
{
    int behind = 2 + (int)rng_below(&a->rng, 6), letters = (int)rng_below(&a->rng, 3);
    int before = (int)rng_below(&a->rng, 3), rc = 0;

    fill_ground(a);
    for (int k = 0; k < behind; k++)
        put_shape(a, 0.1, 0.8);
    for (int k = 0; k < letters && rc == 0; k++)
        rc = put_letter(a, e);
    if (rc == 0)
        rc = put_class(a, class, e);
    for (int k = 0; k < before && rc == 0; k++)
        put_shape(a, 0.05, 0.2);
    return rc;
}

int artist_draw(struct artist *a, int64_t seed, int series, int class, int64_t i, int short_side,
                struct drawing *out, struct error *e)
{
    a->rng = rng_stream(seed, series * (int64_t)DRAW_CLASSES + class, i, RNG_SYNTHETIC);
    int rc = choose_size(a, short_side, e);
    if (rc == 0)
        rc = draw_scene(a, class, e);
    if (rc)
        return rc;
    bool grey = rng_below(&a->rng, GREY_ONE_IN) == 0;
    if (rng_below(&a->rng, 5) < 2)
        blur(a);
    add_noise(a, (int)rng_below(&a->rng, 16));
    if (grey)
        take_colour_away(a);
    *out = (struct drawing){a->pixels, a->width, a->height, grey ? 1 : 3,
                            70 + (int)rng_below(&a->rng, 26)};
    return 0;
}
