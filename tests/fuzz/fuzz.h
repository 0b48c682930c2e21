/*
 * What reads bytes that others made, as targets for a fuzzer: one table (targets.c), one file a
 * target. libFuzzer drives them (driver.c, make fuzz), and so does replay.c, which needs no clang:
 * the corpus, then changes of it that are drawn from a seed.
 *
 * A target judges what was read with FUZZ_CHECK; the sanitizers judge the rest.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int fuzz_function(const uint8_t *data, size_t bytes);

struct fuzz_target {
    const char *name;
    fuzz_function *run;
    size_t most_bytes;    /* of an input */
    unsigned in_a_second; /* about so many can be tried, with the sanitizers: replay's share */
};

const struct fuzz_target *fuzz_target_at(size_t i); /* NULL behind the last */
const struct fuzz_target *fuzz_target_find(const char *name);

fuzz_function fuzz_job, fuzz_http, fuzz_config, fuzz_manifest, fuzz_index, fuzz_records, fuzz_jpeg,
    fuzz_png, fuzz_safetensors, fuzz_state, fuzz_events, fuzz_fast_step, fuzz_idx, fuzz_tar,
    fuzz_slurm, fuzz_tokens, fuzz_notices;

/* ---- for targets: support.c */

/* Ends the process with the words, as a sanitizer would: what was read makes no sense. */
#define FUZZ_CHECK(condition, ...)                                                                 \
    ((condition) ? (void)0 : fuzz_fail(__FILE__, __LINE__, #condition, __VA_ARGS__))
_Noreturn void fuzz_fail(const char *file, int line, const char *condition, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* A private folder in memory, where there is one; it goes with the process. */
const char *fuzz_folder(void);
/* Writes a file of it, and gives its path, which lives until the next call. */
const char *fuzz_file(const char *name, const void *data, size_t bytes);
/* A copy with a NUL behind it: the caller frees it. */
char *fuzz_text(const uint8_t *data, size_t bytes);
