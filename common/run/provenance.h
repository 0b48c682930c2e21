/* How two runs differ by provenance (RUN/provenance.json, worker/provenance), and whether that may
 * change bits. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#define PROVENANCE_NAME        "provenance.json" /* in the run directory */
#define PROVENANCE_LIMIT_BYTES ((size_t)16 << 20)

/* The last attempt with a result, else the last; NULL: none. */
const json_t *provenance_attempt(const json_t *file);

/* Compares attempts (NULL: not known). A new array of {"what": "machines.cpu", "words":
 * "processor", "values": [text or null], "may_change_bits"}, one for each fact that differs. */
json_t *provenance_differences(const json_t *const *attempts, size_t count);
