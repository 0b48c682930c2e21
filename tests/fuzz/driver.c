/* libFuzzer's side of the table: FUZZ_TARGET names the target. */
#include <stdio.h>
#include <stdlib.h>

#include "common/log.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static const struct fuzz_target *target;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *name = getenv("FUZZ_TARGET");

    (void)argc;
    (void)argv;
    target = name ? fuzz_target_find(name) : NULL;
    if (!target) {
        fprintf(stderr, "FUZZ_TARGET must be one of");
        for (size_t i = 0; fuzz_target_at(i); i++)
            fprintf(stderr, " %s", fuzz_target_at(i)->name);
        fprintf(stderr, "\n");
        exit(2);
    }
    log_set_level(LOG_LEVEL_ERROR);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    return bytes > target->most_bytes ? -1 : target->run(data, bytes);
}
