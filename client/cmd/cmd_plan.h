#pragma once

#include "client/cmd.h"
#include "common/plan/plan.h"
#include "common/plan/workers.h"

struct planned {
    struct job_spec *spec;
    struct plan_workers workers; /* chosen by the plan */
    struct plan *plan;
};

/* Reads and plans a file ("-": standard input). Returns 0, or the exit code after printing the
 * problems. Zeroes *p first; clear it in either case. */
int plan_file(const char *path, const struct cmd_args *args, struct planned *p);
void planned_clear(struct planned *p);
void plan_print_warnings(FILE *out, const struct plan *plan);
