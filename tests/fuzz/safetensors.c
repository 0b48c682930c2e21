/* A file of weights. What was opened is whole: every tensor can be read, and found by its name. */
#include <stdlib.h>
#include <string.h>

#include "common/run/safetensors.h"
#include "tests/fuzz/fuzz.h"

#define BYTES_TRIED (1 << 20)

static void read_tensor(struct safetensors *s, size_t i, size_t file_bytes)
{
    const struct safetensors_tensor *t = safetensors_at(s, i);
    size_t bytes = safetensors_bytes(t);
    struct error e;

    FUZZ_CHECK(bytes <= file_bytes, "%s has %zu bytes in a file of %zu", t->name, bytes,
               file_bytes);
    FUZZ_CHECK(safetensors_find(s, t->name) == t, "%s is not found", t->name);
    FUZZ_CHECK(t->dims >= 0 && t->dims <= SAFETENSORS_DIMS_MAX, "%d dimensions", t->dims);
    uint8_t *data = malloc(bytes + 1);
    FUZZ_CHECK(data && safetensors_read(s, t, data, &e) == 0, "%s", e.text);
    free(data);
}

int fuzz_safetensors(const uint8_t *data, size_t bytes)
{
    const char *path = fuzz_file("x.safetensors", data, bytes);
    struct safetensors *s;
    struct error e;

    if (safetensors_open(path, &s, &e))
        return 0;
    for (size_t i = 0; i < safetensors_tensors(s); i++)
        read_tensor(s, i, bytes);
    FUZZ_CHECK(!safetensors_find(s, "no tensor has this name \x01"), "a tensor of no name");
    safetensors_metadata(s, "format");
    safetensors_close(s);
    return 0;
}
