/*
 * The sum of the gradients of the ranks of one machine, through memory that they share, in pieces:
 * each rank copies its piece there, adds up its own part of all ranks', and copies the sums of the
 * others back. So a rank moves the same bytes whatever their number, and waits once a piece.
 *
 * Numbers are added in pairs, (0 + 1) + (2 + 3), as two machines of two ranks would; in bf16 in the
 * order of the ranks, as narrow.h does: the same bits on every rank, and as the other ways give.
 */
#ifndef TRAINCOMM_SHARED_SUM_H
#define TRAINCOMM_SHARED_SUM_H

#include "worker/comm/internal.h"

struct shared_sum;

/* Of at most `count` floats. Collective over all ranks of c. */
int shared_sum_create(struct traincomm *c, size_t count, struct shared_sum **out);
void shared_sum_destroy(struct shared_sum *s); /* NULL is fine. Collective */

/* gradients (count) become the sums. Returns the number of pieces. Collective over the machine. */
int shared_sum(struct shared_sum *s, float *gradients, size_t count, bool narrow);

#endif
