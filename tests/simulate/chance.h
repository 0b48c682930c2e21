/*
 * Choices of a simulated world: made from a seed, or read from a list. What was chosen is recorded,
 * so that a world that went wrong can be made again, and made smaller: 0 is always the choice of
 * nothing special, and behind the end of a list all choices are 0.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHOICES_MAX 20000

struct chance {
    uint64_t state;        /* of the generator */
    const uint8_t *script; /* NULL: by the generator */
    size_t script_count;
    bool calm; /* nothing special happens any more; nothing is recorded */
    uint8_t made[CHOICES_MAX];
    size_t count;
};

void chance_by_seed(struct chance *c, uint64_t seed);
void chance_by_script(struct chance *c, const uint8_t *script, size_t count);

/* [0, n), n at most 256. */
unsigned chance_of(struct chance *c, unsigned n);

/* True once in n times; never in a calm world. */
bool chance_once_in(struct chance *c, unsigned n);
