/* Compares the provenance of runs (RUN/provenance.json, worker/provenance) and determines whether a
 * difference may change the bits of results. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#define PROVENANCE_NAME        "provenance.json" /* in the run directory */
#define PROVENANCE_LIMIT_BYTES ((size_t)16 << 20)

/* Returns the last attempt with a result, or else the last attempt; NULL: there is none. */
const json_t *provenance_attempt(const json_t *file);

/* Compares attempts (NULL: unknown). Returns a new array of {"what": "machines.cpu", "words":
 * "processor", "values": [text or null], "may_change_bits"}, an item for each difference. */
json_t *provenance_differences(const json_t *const *attempts, size_t count);
