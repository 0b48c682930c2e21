/* "Did you mean ...?": the name nearest to a misspelt word. */
#ifndef TRAIND_COMMON_NEAREST_H
#define TRAIND_COMMON_NEAREST_H

#include <stddef.h>

/* The one of names with the fewest edits (insert, delete, replace, swap of neighbours; case is not counted),
 * if that is at most a third of the word's length, or the word is the name's beginning; else NULL. */
const char *nearest_name(const char *word, const char *const *names, size_t count);

#endif
