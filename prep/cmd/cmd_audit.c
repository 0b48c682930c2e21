#include <stdint.h>

#include "prep/cmd.h"
#include "prep/parallel.h"
#include "prep/prep.h"

#define SAMPLE_DEFAULT 10000

#define AT(field) offsetof(struct audit_options, field)

/* clang-format off */
static const struct command_option audit_table[] = {
    {.name = "sample", .value = "N", .kind = OPTION_INT64, .offset = AT(sample), .most = INT64_MAX,
     .help = "decode N images, chosen at random (default: 10000)"},
    {.name = "all", .kind = OPTION_FLAG, .offset = AT(all),
     .help = "decode every image"},
    {.name = "plan", .value = "FILE", .kind = OPTION_TEXT, .offset = AT(plan),
     .help = "also check whether the workers of this job divide the data evenly"},
    {.name = "threads", .value = "N", .kind = OPTION_INT, .offset = AT(threads), .least = 1, .most = PARALLEL_THREADS_MAX,
     .help = "shards to read in parallel (default: one per core)"},
    {.name = "json", .kind = OPTION_FLAG, .offset = AT(json),
     .help = "print one JSON object"},
    {0},
};
/* clang-format on */

static int audit_check_options(void *fields, struct error *e)
{
    struct audit_options *o = fields;

    if (o->all && o->sample != SAMPLE_DEFAULT)
        return error_set(e, ERR_USAGE, "--all and --sample exclude each other");
    if (!o->threads)
        o->threads = parallel_default_threads();
    return 0;
}

int cmd_audit(int argc, char **argv, struct error *e)
{
    static const struct command_line line = {
        .program = "train-prep audit",
        .usage = "Usage: train-prep audit [OPTION...] DIR",
        .options = audit_table,
        .common = command_line_common,
        .operand = "DIR",
        .operand_offset = AT(dir),
        .doc = "Checks TFRecord shards: every checksum, a sample of the pictures, classes, "
               "duplicates, mixing of classes, and the manifest. Exit status: 0 OK (or only "
               "warnings), 1 problems, 2 wrong use.",
        .check = audit_check_options,
    };
    struct audit_options o = {.sample = SAMPLE_DEFAULT};
    bool problems;

    int rc = command_line_read(&line, argc, argv, &o);
    if (rc >= 0)
        return rc;
    rc = audit(&o, &problems, e);
    if (rc == 0 && problems)
        rc = error_set(e, ERR_CORRUPT, "%s has problems", o.dir);
    return rc;
}
