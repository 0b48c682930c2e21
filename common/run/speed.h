/* Speeds measured on this machine, by job key and processor, as a base for predictions. Those of
 * finished jobs are in the daemon's database, those of `trainctl bench` in speeds.jsonl in the
 * user's cache folder (file_cache_folder). */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/job/job_spec.h"
#include "common/plan/predict.h"

#define SPEED_KEY_BYTES 128
#define SPEED_CPU_BYTES 96

/* Writes a key such as "resnet50-small-32-fp32-t1": architecture, stem, image size, precision,
 * threads per worker; "-direct" without model.winograd, "-w2" with model.width 2. Returns key. */
char *speed_key(const struct job_spec *spec, int64_t threads, char key[SPEED_KEY_BYTES]);

bool speed_cpu_has(const char *flag);

char *speed_cpu(char cpu[SPEED_CPU_BYTES]);

json_t *speed_sample_to_json(const struct plan_sample *sample);
/* Speeds within these bounds yield finite predictions. */
#define SPEED_BOUNDS                                                                               \
    "image_seconds must be a number from 1e-9 to 86400, update_seconds and exchange_seconds "      \
    "numbers from 0 to 86400, workers an integer from 1 to 1024, batch one from 1 to 65536"
bool speed_sample_is_sound(const struct plan_sample *sample);
bool speed_sample_read(const json_t *json, struct plan_sample *sample);

/* Appends a line to speeds.jsonl, which keeps the newest thousand. */
int speed_cache_add(const char *key, const struct plan_sample *sample, struct error *e);

/* Store and read what `trainctl scale` measured between machines over an interface (NULL: the
 * default one), in network.json beside speeds.jsonl. speed_network_find does not change *network if
 * nothing is known. */
int speed_network_keep(const char *interface, const struct plan_network *network, struct error *e);
void speed_network_find(const char *interface, struct plan_network *network);

/* Returns at most `max` samples, newest first; 0 if the cache cannot be read. */
size_t speed_cache_find(const char *key, struct plan_sample *samples, size_t max);
