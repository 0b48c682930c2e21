/* What the files self_check*.c share. Each adds its figures to the report and its verdicts to the
 * list (common/check.h). */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "common/digest.h"

#define DATA_WORDS_BYTES 512

/*
 * self_check_speed.c. Figures:
 *   cores               hardware threads this process may use
 *   gflops              SGEMM on all of them at once, product after product, each waiting for the
 *                       slowest, as a step does
 *   core_types          [{"type", "cores", "gflops"}]: one core of each type by itself
 *   memory_gb_per_sec   copying on all of them (read and written bytes)
 *   clock_ghz           of dependent additions, one a cycle on the processors of today
 */
void self_check_speed(json_t *report, json_t *list);

/*
 * self_check_data.c: one data set, looked at here or by another user's process. What that one says
 * is a line, as its job may have written anything there: ok SHARDS CLASSES IMAGES MANIFEST numbers,
 * and 32 hex digits or "-" bad WORDS
 */
struct data_found {
    bool ok;
    long long shards, classes, images;
    char manifest[DIGEST_BYTES];  /* of manifest.json; "" for none */
    char words[DATA_WORDS_BYTES]; /* what is wrong with it */
};

void data_look(const char *path, struct data_found *found);
void data_print_line(FILE *out, const struct data_found *found);

/* Takes the next line off *text. What is not such a line is a data set that is not ok. */
void data_read_line(char **text, struct data_found *found);

/* Adds {"path", "ok", "shards", "classes", "manifest", "images"} to the report's array "data", and
 * an item to the list. */
void data_note(const char *path, const struct data_found *found, json_t *report, json_t *list);
