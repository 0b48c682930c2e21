/* What an evaluation predicted for each image: the cells of its confusion matrix, how well its
 * probabilities are calibrated, and attempt-N/predictions.csv: file,label,top1,p, a line per image
 * in the order of the data set */
#pragma once

#include "worker/data/loader.h"
#include "worker/run.h"

struct predictions;

struct predictions *predictions_create(const struct run *r);
void predictions_destroy(struct predictions *p); /* accepts NULL */

/* Adds a batch; logits: (n, classes). No effect if p is NULL. */
int predictions_add(struct predictions *p, const struct loader_batch *batch, const float *logits,
                    int classes, struct error *e);

/* Gathers the predictions of all ranks; rank 0 writes predictions.csv with PREDICTIONS_FILE, and
 * `confusion` events, and once a warning if data.eval lacks classes, with PREDICTIONS_CELLS. It
 * also gets the expected calibration error: the mean distance between the probability of the
 * predicted class and the share of right predictions, in 15 bins of equal width, (i/15, (i+1)/15],
 * weighted by their images (Guo et al., arXiv:1706.04599, section 2). The probability is the
 * softmax's, also for bce; images that did not decode do not count; NAN without others. Collective.
 */
enum { PREDICTIONS_CELLS = 1, PREDICTIONS_FILE = 2 };
int predictions_finish(struct predictions *p, struct run *r, int64_t step, int with,
                       double *calibration_error, struct error *e);
