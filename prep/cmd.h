/* train-prep's commands: each reads its command line by a table of options, does the work, and
 * returns an exit status, or a negative error code with *e filled. */
#pragma once

#include "common/error.h"
#include "common/system/command_line.h"

int cmd_convert(int argc, char **argv, struct error *e);
int cmd_show(int argc, char **argv, struct error *e);
int cmd_extract(int argc, char **argv, struct error *e);
int cmd_audit(int argc, char **argv, struct error *e);
int cmd_stage(int argc, char **argv, struct error *e);
