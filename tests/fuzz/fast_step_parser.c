/* The line of a step: what the fast reader takes, jansson reads the same way. */
#include "tests/fuzz/fuzz.h"
#include "tests/unit/daemon/ingest/same_step.h"

int fuzz_fast_step(const uint8_t *data, size_t bytes)
{
    struct store_event event;
    char *line = fuzz_text(data, bytes);
    size_t own;

    if (fast_step_parse(line, &event, &own)) {
        const char *wrong = same_step_wrong(line, &event, own);
        FUZZ_CHECK(!wrong, "%s of %s", wrong, line);
    }
    free(line);
    return 0;
}
