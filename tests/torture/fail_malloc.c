/*
 * For LD_PRELOAD: the FAIL_NTH-th allocation of the program named FAIL_PROGRAM finds no memory, and
 * with FAIL_LATER all after it. With FAIL_OWN only calls by the program itself and its own
 * libraries count, as MPI and BLAS end a process that has no memory. What was met is written into
 * the file FAIL_MARK: who called, as addr2line reads it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static long nth; /* 0: none fails */
static bool later, own;
static const char *mark;
static atomic_long count;
static _Thread_local bool inside;

__attribute__((constructor)) static void begin(void)
{
    const char *program = getenv("FAIL_PROGRAM"), *number = getenv("FAIL_NTH");

    later = getenv("FAIL_LATER") != NULL;
    own = getenv("FAIL_OWN") != NULL;
    mark = getenv("FAIL_MARK");
    if (program && number && mark && !strcmp(program_invocation_short_name, program))
        nth = atol(number);
}

static bool is_own(const void *caller)
{
    Dl_info place;

    if (!dladdr(caller, &place) || !place.dli_fname)
        return false;
    return strstr(place.dli_fname, program_invocation_short_name) ||
           strstr(place.dli_fname, "libtrain");
}

static void write_mark(const void *caller)
{
    char line[512];
    Dl_info place;
    int file = open(mark, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    if (file < 0)
        return;
    if (!dladdr(caller, &place) || !place.dli_fname)
        place = (Dl_info){.dli_fname = "?"};
    int length = snprintf(line, sizeof line, "%s %#tx %s\n", place.dli_fname,
                          (const char *)caller - (const char *)place.dli_fbase,
                          place.dli_sname ? place.dli_sname : "");
    if (write(file, line, (size_t)length) < 0)
        _exit(99);
    close(file);
}

static bool fails(const void *caller)
{
    if (nth == 0 || inside)
        return false;
    inside = true;
    int before = errno;
    bool failing = false;
    if (!own || is_own(caller)) {
        long now = atomic_fetch_add(&count, 1) + 1;
        failing = now == nth || (later && now > nth);
        if (now == nth)
            write_mark(caller);
    }
    inside = false;
    errno = failing ? ENOMEM : before;
    return failing;
}

#define CALLER __builtin_return_address(0)

void *malloc(size_t size)
{
    return fails(CALLER) ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return fails(CALLER) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
    return fails(CALLER) ? NULL : __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return fails(CALLER) ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    void *made = fails(CALLER) ? NULL : __libc_memalign(alignment, size);

    if (!made)
        return ENOMEM;
    *out = made;
    return 0;
}
