/* Command line of train-worker */
#pragma once

#include "worker/start/start.h"

/* Returns -1 if a run is to start, or an exit status: of --help, --self-check, --probe etc., which
 * have been executed, or of an error in the command line, which has been printed. */
int command_line(int argc, char **argv, struct start_options *options);
