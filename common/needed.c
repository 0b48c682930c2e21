#include "common/needed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void *needed(void *memory)
{
    if (memory)
        return memory;
    dprintf(STDERR_FILENO, "%s: out of memory\n", program_invocation_short_name);
    _exit(EXIT_FAILURE);
}
