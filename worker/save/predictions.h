/* attempt-N/predictions.csv: file,label,top1,p, a line per image in the order of the data set */
#pragma once

#include "worker/data/loader.h"
#include "worker/run.h"

struct predictions;

struct predictions *predictions_create(const struct run *r);
void predictions_destroy(struct predictions *p); /* accepts NULL */

/* Adds a batch; logits: (n, classes). No effect if p is NULL. */
int predictions_add(struct predictions *p, const struct loader_batch *batch, const float *logits,
                    int classes, struct error *e);

/* Gathers the lines of all ranks; rank 0 writes the file. Collective. */
int predictions_write(struct predictions *p, struct run *r, struct error *e);
