#include "worker/provenance/chain.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { NUMBERS_MAX = 8 };

void chain_add(struct chain *c, const double *numbers, int count)
{
    char link[DIGEST_BYTES + NUMBERS_MAX * sizeof(double)];
    size_t before = strlen(c->hex), bytes = (size_t)count * sizeof *numbers;

    if (count > NUMBERS_MAX || strcmp(c->hex, CHAIN_UNKNOWN) == 0)
        return;
    memcpy(link, c->hex, before);
    memcpy(link + before, numbers, bytes);
    digest_text(link, before + bytes, c->hex);
}

void chain_take_up(struct chain *c, const char *text)
{
    bool whole = text && strspn(text, "0123456789abcdef") == DIGEST_BYTES - 1 &&
                 strlen(text) == DIGEST_BYTES - 1;
    bool nothing = text && !*text;

    snprintf(c->hex, sizeof c->hex, "%s", whole ? text : nothing ? "" : CHAIN_UNKNOWN);
}

const char *chain_text(const struct chain *c)
{
    return *c->hex && strcmp(c->hex, CHAIN_UNKNOWN) != 0 ? c->hex : NULL;
}
