/* The archive of a job, as it is sent to be imported: unpacked, and its documents read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/system/file.h"
#include "daemon/archive/job_archive.h"
#include "daemon/http/handlers/archive/import_documents.h"
#include "tests/fuzz/fuzz.h"

#define UNPACKED_BYTES (1u << 20)

static void read_documents(const char *folder)
{
    struct import_documents documents;
    struct store_import_event event;
    struct error e;

    if (import_documents_read(folder, 1, &documents, &e) == 0)
        while (import_documents_next(&documents, &event, &e) > 0)
            FUZZ_CHECK(event.attempt >= 0 && event.attempt <= 1 && *event.type &&
                           json_is_object(event.body),
                       "an event of attempt %lld", (long long)event.attempt);
    import_documents_clear(&documents);
}

int fuzz_archive(const uint8_t *data, size_t bytes)
{
    char folder[4096], hex[DIGEST_BYTES];
    json_t *manifest;
    struct error e;
    int in = memfd_create("archive", MFD_CLOEXEC);

    snprintf(folder, sizeof folder, "%s/archive", fuzz_folder());
    if (in < 0 || mkdir(folder, 0700) || file_write_all(in, data, bytes) || lseek(in, 0, SEEK_SET))
        abort();
    if (job_archive_read(in, folder, UNPACKED_BYTES, &manifest, hex, &e) == 0)
        FUZZ_CHECK(strlen(hex) == DIGEST_BYTES - 1, "the digest %s", hex);
    read_documents(folder); /* also those that the digests refuse: whoever writes these can */
    json_decref(manifest);
    close(in);
    FUZZ_CHECK(file_remove_tree(folder, &e) == 0, "%s", e.text);
    return 0;
}
