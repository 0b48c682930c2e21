/* The nearest right word to one mistyped. */
#pragma once

#include <stddef.h>

/* Longer words are never near anything: bounds what a hostile document can cost. */
#define SUGGEST_WORD_MAX 64

/* Keeps the best of the candidates offered one by one. Zero-initialise, then set word. */
struct suggest {
    const char *word;
    const char *best; /* NULL: nothing near enough */
    size_t distance;
};

void suggest_offer(struct suggest *s, const char *candidate);

/* Edits to get from a to b, a swap of neighbours counting as one (optimal string alignment); the
 * case of letters and "-" for "_" cost nothing. SUGGEST_WORD_MAX if a word is longer than that. */
size_t suggest_distance(const char *a, const char *b);
