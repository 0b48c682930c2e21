/* train-worker's command line. */
#ifndef TRAIND_WORKER_START_COMMAND_LINE_H
#define TRAIND_WORKER_START_COMMAND_LINE_H

#include "worker/start/start.h"

/* Returns -1 to go on with a run, or an exit status: of what was asked for instead (--help,
 * --self-check, --probe, ...) and is done, or of wrong usage, which has been told. */
int command_line(int argc, char **argv, struct start_options *options);

#endif
