/*
 * What of a run's provenance (RUN/provenance.json, worker/provenance) two runs can differ in, in
 * words, and whether it may be why their bits do. One table, for the daemon's answers and
 * trainctl.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#define PROVENANCE_NAME        "provenance.json" /* in the run directory */
#define PROVENANCE_LIMIT_BYTES ((size_t)16 << 20)

/* The attempt that tells most of a file: the last with a result, else the last; NULL: none. */
const json_t *provenance_attempt(const json_t *file);

/* Of count attempts (NULL: one that is not known): a new array of {"what": "machines.cpu", "words":
 * "processor", "values": [a text or null each], "may_change_bits"} for each fact in which those
 * that have it differ. */
json_t *provenance_differences(const json_t *const *attempts, size_t count);
