#include "worker/team/memory.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "worker/team/parallel.h"

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

enum { THREADS = 4, BIG = 64 << 20 };

static long faults[THREADS];

/* Of the calling thread, since it was last asked. */
static void note_faults(struct parallel_share share, void *context)
{
    static _Thread_local long before;
    struct rusage usage;

    (void)context;
    getrusage(RUSAGE_THREAD, &usage);
    faults[share.part] = usage.ru_minflt - before;
    before = usage.ru_minflt;
}

static void expect_shared(const unsigned char *p, size_t bytes)
{
    long most = 0, least = LONG_MAX;

    parallel_team(THREADS, note_faults, NULL);
    for (int t = 0; t < THREADS; t++) {
        most = faults[t] > most ? faults[t] : most;
        least = faults[t] < least ? faults[t] : least;
    }
    cr_expect(least > 0 && most < 4 * least, "pages touched first: %ld to %ld a thread", least,
              most);
    unsigned char any = 0;
    for (size_t i = 0; i < bytes; i++)
        any |= p[i];
    cr_assert_eq(any, 0);
}

/* Where each page then lies is Linux's doing, and takes a machine of two sockets to be seen. Huge
 * pages are off: one thread may get some, and another, when they are gone, small ones. */
Test(memory, is_touched_first_by_the_threads_that_share_it)
{
    cr_assert_eq(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
    struct memory_extent parts[] = {
        {0,       BIG / 2},
        {BIG / 2, BIG / 2}
    };
    void *each[THREADS];

    parallel_team(THREADS, note_faults, NULL);
    unsigned char *p = memory_allocate_shared(BIG, parts, 2, THREADS);
    expect_shared(p, BIG);
    memory_allocate_each(each, BIG / THREADS, THREADS);
    expect_shared(each[THREADS - 1], BIG / THREADS);
    for (int t = 0; t < THREADS; t++)
        free(each[t]);
    free(p);
    memory_allocate_each(each, SIZE_MAX / 2, 1);
    cr_assert_null(each[0]);
}

Test(memory, says_when_there_is_none)
{
    cr_assert_null(memory_allocate(SIZE_MAX / 2));
}
