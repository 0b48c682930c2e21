/* predictions.csv of an evaluation: file,label,top1,p - one line an image, in the data's order. */
#pragma once

#include "worker/data/loader.h"
#include "worker/run.h"

struct predictions;

int predictions_create(const struct run *r, struct predictions **out, struct error *e);
void predictions_destroy(struct predictions *p); /* NULL is fine */

/* logits (n, classes) of a batch. p NULL: does nothing. */
int predictions_add(struct predictions *p, const struct loader_batch *batch, const float *logits,
                    int classes, struct error *e);

/* Gathers all ranks' lines on rank 0, which writes attempt-N/predictions.csv. Collective. */
int predictions_write(struct predictions *p, struct run *r, struct error *e);
