/* train-worker's command line. */
#pragma once

#include "worker/start/start.h"

/* Returns -1 to go on with a run, or an exit status: of what was asked for instead (--help,
 * --self-check, --probe, ...) and is done, or of wrong usage, which has been told. */
int command_line(int argc, char **argv, struct start_options *options);
