/* The nearest right word to one mistyped. */
#ifndef TRAIND_CLIENT_SUGGEST_H
#define TRAIND_CLIENT_SUGGEST_H

#include <stddef.h>

/* Keeps the best of the candidates offered one by one. Zero-initialise, then set word. */
struct suggest {
    const char *word;
    const char *best; /* NULL: nothing near enough */
    size_t distance;
};

void suggest_offer(struct suggest *s, const char *candidate);

#endif
