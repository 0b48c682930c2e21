#include "common/system/core_dump.h"

#include <stdbool.h>
#include <sys/resource.h>

static struct rlimit given; /* the caller's */
static bool forbidden;

void core_dump_forbid(void)
{
    if (forbidden || getrlimit(RLIMIT_CORE, &given))
        return;
    struct rlimit none = {0, given.rlim_max};
    forbidden = setrlimit(RLIMIT_CORE, &none) == 0;
}

void core_dump_allow_again(void)
{
    if (forbidden)
        setrlimit(RLIMIT_CORE, &given);
}
