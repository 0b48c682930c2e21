/*
 * Speeds measured on this machine, which predictions are made from: under a key (what makes two
 * jobs equally fast for an image) and the processor's name. Finished jobs' are in the daemon's
 * database, those of `trainctl bench` in a file of the user's cache folder, one JSON object a line:
 * $XDG_CACHE_HOME/traind/speeds.jsonl, or ~/.cache/traind/speeds.jsonl.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/job/job_spec.h"
#include "common/plan/predict.h"

#define SPEED_KEY_BYTES 128
#define SPEED_CPU_BYTES 96

/* "resnet50-small-32-fp32-t1": architecture, stem, image size, precision, threads of a worker;
 * "-direct" behind it without model.winograd, "-w2" with model.width 2. */
char *speed_key(const struct job_spec *spec, int64_t threads, char key[SPEED_KEY_BYTES]);

/* As /proc/cpuinfo names it; "unknown" where it does not. */
/* The processor has this of /proc/cpuinfo's flags. */
bool speed_cpu_has(const char *flag);

char *speed_cpu(char cpu[SPEED_CPU_BYTES]);

json_t *speed_sample_to_json(const struct plan_sample *sample);
/* Within the bounds that SPEED_BOUNDS says; predictions from such speeds are finite. */
#define SPEED_BOUNDS                                                                               \
    "image_seconds must be a number from 1e-9 to 86400, update_seconds and exchange_seconds "      \
    "numbers from 0 to 86400, workers an integer from 1 to 1024, batch one from 1 to 65536"
bool speed_sample_is_sound(const struct plan_sample *sample);
/* False: it is none, or not sound. */
bool speed_sample_read(const json_t *json, struct plan_sample *sample);

/* Adds a line; the file keeps the newest thousand. */
int speed_cache_add(const char *key, const struct plan_sample *sample, struct error *e);

/* What `trainctl scale` measured between machines over an interface (NULL: the usual one), kept in
 * network.json beside it. find leaves what is not known. */
int speed_network_keep(const char *interface, const struct plan_network *network, struct error *e);
void speed_network_find(const char *interface, struct plan_network *network);

/* The newest first, at most `most`. A cache that cannot be read holds none. */
size_t speed_cache_find(const char *key, struct plan_sample *samples, size_t most);
