/* A tar, whose members are indexed by where they lie, and whose small ones are read. */
#include <stdlib.h>

#include "prep/prep.h"
#include "prep/source/archive.h"
#include "tests/fuzz/fuzz.h"

volatile int prep_interrupted; /* of train-prep's main file: nobody interrupts a target */

static void tar_index(const uint8_t *map, uint64_t from, uint64_t bytes, int depth)
{
    struct archive_index index = {0};
    struct error e;

    if (archive_index(map, from, bytes, "input", &index, &e) == 0)
        for (size_t i = 0; i < index.count; i++) {
            const struct archive_member *m = &index.members[i];
            FUZZ_CHECK(m->name && (m->bytes == 0 || (m->offset >= from && m->bytes <= bytes &&
                                                     m->offset + m->bytes <= from + bytes)),
                       "a member at %llu of %llu bytes", (unsigned long long)m->offset,
                       (unsigned long long)m->bytes);
            if (depth == 0 && m->bytes)
                tar_index(map, m->offset, m->bytes, 1);
        }
    archive_index_free(&index);
}

int fuzz_tar(const uint8_t *data, size_t bytes)
{
    struct archive_blob blobs[] = {{.name = "a.txt"}, {.name = "b"}};
    struct error e;

    tar_index(data, 0, bytes, 0);
    if (archive_pick(fuzz_file("x.tar", data, bytes), blobs, 2, 65536, &e) == 0)
        for (int i = 0; i < 2; i++)
            FUZZ_CHECK(!blobs[i].data || blobs[i].data[blobs[i].bytes] == '\0', "no end");
    archive_blobs_free(blobs, 2);
    return 0;
}
