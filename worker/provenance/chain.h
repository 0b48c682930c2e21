/*
 * A digest of all numbers so far, in the order they came: each is of the one before and the new
 * numbers. So a checkpoint needs to keep nothing but the hex, and a resumed run ends with the same
 * one as a run that was never stopped.
 */
#pragma once

#include "common/digest.h"

/* "": of nothing yet; CHAIN_UNKNOWN: goes on from a checkpoint that has none. */
struct chain {
    char hex[DIGEST_BYTES];
};
#define CHAIN_UNKNOWN "?"

/* The numbers by their bits. What is unknown stays so. */
void chain_add(struct chain *c, const double *numbers, int count);

/* From what a checkpoint says; text NULL: it says nothing. */
void chain_take_up(struct chain *c, const char *text);

/* NULL: of nothing, or not known. */
const char *chain_text(const struct chain *c);
