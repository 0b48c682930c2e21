#pragma once

#include <stdbool.h>

/* Waits until the job ends and prints how it ended. progress: also shows its progress, full-screen
 * on a terminal. Returns the exit code: the job's outcome, or that of an error (printed). */
int watch_until_end(long id, bool progress);
