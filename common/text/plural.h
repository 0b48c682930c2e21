/* Words that are counted. */
#ifndef TRAIND_COMMON_TEXT_PLURAL_H
#define TRAIND_COMMON_TEXT_PLURAL_H

#include <stdint.h>

/* What ends a noun behind its number: "1 worker", "2 workers". */
static inline const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

#endif
