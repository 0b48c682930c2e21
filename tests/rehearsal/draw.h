/*
 * Pictures with a class that a network can learn: each class is a character, drawn at a place,
 * size, angle, slant, weight and colour that chance gives, on a ground with shapes and letters in
 * it, some of them in front, with blur and noise. Picture i of class c is a function of (seed, c,
 * i) alone, whatever was drawn before it, on one machine with one FreeType.
 */
#pragma once

#include <stdint.h>

#include "common/error.h"

#define DRAW_CLASSES 1000

struct artist; /* of one thread */

/* font: a file with at least DRAW_CLASSES Chinese characters; class c is the character at c
 * thousandths of those that it has. ERR_NOT_FOUND, ERR_INVALID (no font, or one with too few). */
int artist_create(const char *font, struct artist **out, struct error *e);
void artist_destroy(struct artist *a); /* NULL is fine */

struct drawing {
    const uint8_t *pixels; /* (height, width, channels); the artist's, until its next picture */
    int width, height;
    int channels; /* 3, or 1: one picture in 70 is grey, as of ImageNet's */
    int quality;  /* that its JPEG should have: 70 to 95 */
};

/* series: pictures of different series (training, validation) have nothing in common. short_side:
 * that of the average picture, pixels; the sides are in proportions as ImageNet's, most 4:3. */
int artist_draw(struct artist *a, int64_t seed, int series, int class, int64_t i, int short_side,
                struct drawing *out, struct error *e);
