/* The command lines of train-prep's commands: options by glibc's argp, one table a command. Each
 * parses its own, does the work, and returns 0 or a negative error code with *e filled; stage
 * returns an exit status above 0 for failures that it has told of itself. */
#ifndef TRAIND_PREP_CMD_H
#define TRAIND_PREP_CMD_H

#include <argp.h>
#include <stdint.h>

#include "common/dataset/dataset.h"
#include "common/error.h"

int cmd_convert(int argc, char **argv, struct error *e);
int cmd_show(int argc, char **argv, struct error *e);
int cmd_extract(int argc, char **argv, struct error *e);
int cmd_audit(int argc, char **argv, struct error *e);
int cmd_stage(int argc, char **argv, struct error *e);

/* Values of options; a wrong one ends the program with status 2 and words. */
int64_t cmd_number(struct argp_state *state, const char *option, const char *text, int64_t least,
                   int64_t most);
enum dataset_role cmd_role(struct argp_state *state, const char *text);

#endif
