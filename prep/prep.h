#pragma once

#include "common/error.h"

struct prep_command {
    const char *name, *help;
    /* Returns an exit status, or a negative error code after filling *e. */
    int (*run)(int argc, char **argv, struct error *e);
};

extern const struct prep_command convert_command, show_command, audit_command, stage_command,
    extract_command;

/* Set by SIGINT and SIGTERM. Commands then stop at the next image with ERR_INTERRUPTED. */
extern volatile int prep_interrupted;
