/* Words that are counted. */
#pragma once

#include <stdint.h>

/* What ends a noun behind its number: "1 worker", "2 workers". */
static inline const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}
