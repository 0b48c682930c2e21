#pragma once

#include <stdbool.h>

/* Prints how the job ended. progress: shows its progress, on a terminal in full screen. Returns the
 * exit code: the job's outcome, or that of an error, which was printed. */
int watch_until_end(long id, bool progress);
