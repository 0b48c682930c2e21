#include "worker/kernels/memory.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>

/* Read by AddressSanitizer, whose allocator otherwise ends the process instead of saying no. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

Test(memory, is_zeroed_and_aligned)
{
    static const size_t sizes[] = {0, 4, 64, 100, 2 << 20, (5 << 20) + 12};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned char *p = memory_allocate(sizes[i]), any = 0;
        cr_assert_not_null(p);
        cr_assert_eq((uintptr_t)p % 64, 0, "%zu bytes", sizes[i]);
        for (size_t k = 0; k < sizes[i]; k++)
            any |= p[k];
        cr_assert_eq(any, 0, "%zu bytes", sizes[i]);
        free(p);
    }
}

Test(memory, says_when_there_is_none)
{
    cr_assert_null(memory_allocate(SIZE_MAX / 2));
}
