/* The records of a data set that a user has chosen, one after the other. */
#pragma once

#include <jansson.h>

#include "prep/prep.h"

/* Called for record i. An error ends the visit. */
typedef int record_taker(struct dataset *d, int64_t i, const struct dataset_image *image,
                         void *context, struct error *e);

/* Opens what is chosen: ERR_INVALID if it has no such record. *end: the record behind the last. */
int records_open(const char *dir, const struct record_choice *choice, struct dataset **out,
                 int64_t *end, struct error *e);

/* Of class chosen, in file order; the checksum of each record read is verified. *taken counts them.
 * ERR_NOT_FOUND: the class has none; ERR_INTERRUPTED. */
int records_visit(struct dataset *d, const struct record_choice *choice, int64_t end,
                  record_taker *take, void *context, int64_t *taken, struct error *e);

/* Prints a record's JSON object on one line and frees it; NULL is what json_pack made of a name
 * that is not UTF-8: ERR_CORRUPT. */
int records_print(int64_t i, json_t *line, struct error *e);
