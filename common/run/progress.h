/*
 * Work that this process has done, in whatever unit is at hand: images read or evaluated, files
 * listed, pieces of a file written. Only whether it grows is of interest: a long phase that grows
 * lives (worker/watch/stall.h).
 */
#pragma once

#include <stdint.h>

void progress_add(uint64_t units); /* any thread */
uint64_t progress_total(void);
