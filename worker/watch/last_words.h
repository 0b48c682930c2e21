/*
 * What a rank still says when it crashes or MPI ends it: whether it was short of memory. Open MPI,
 * the C library and the growth of a stack meet a lack of memory with a crash or with an "internal
 * error", which does not tell anyone that memory is what the run needs.
 */
#pragma once

#include "worker/comm/traincomm.h"

/* Once, behind MPI's start: it keeps MPI's own handlers of signals, which follow. */
void last_words_prepare(struct traincomm *comm);
