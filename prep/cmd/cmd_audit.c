#include <stdint.h>

#include "prep/cmd.h"
#include "prep/parallel.h"
#include "prep/prep.h"

#define SAMPLE_DEFAULT 10000

#define AT(field) offsetof(struct audit_options, field)

/* clang-format off */
static const struct cmd_option audit_table[] = {
    {.name = "sample", .value = "N", .kind = CMD_INT64, .offset = AT(sample), .most = INT64_MAX,
     .help = "decode N images, chosen at random (default: 10000)"},
    {.name = "all", .kind = CMD_FLAG, .offset = AT(all),
     .help = "decode every image"},
    {.name = "plan", .value = "FILE", .kind = CMD_TEXT, .offset = AT(plan),
     .help = "also check whether the workers of this job divide the data evenly"},
    {.name = "threads", .value = "N", .kind = CMD_INT, .offset = AT(threads), .least = 1, .most = PARALLEL_THREADS_MAX,
     .help = "shards to read in parallel (default: one per core)"},
    {.name = "json", .kind = CMD_FLAG, .offset = AT(json),
     .help = "print one JSON object"},
    {0},
};
/* clang-format on */

static void audit_check_options(void *fields, struct argp_state *state)
{
    struct audit_options *o = fields;

    if (o->all && o->sample != SAMPLE_DEFAULT)
        argp_error(state, "--all and --sample exclude each other");
    if (!o->threads)
        o->threads = parallel_default_threads();
}

int cmd_audit(int argc, char **argv, struct error *e)
{
    static const struct cmd_line line = {
        .options = audit_table,
        .operand = "DIR",
        .operand_offset = AT(dir),
        .doc = "Checks TFRecord shards: every checksum, a sample of the pictures, classes, "
               "duplicates, mixing of classes, and the manifest. Exit status: 0 OK (or only "
               "warnings), 1 problems, 2 wrong use.",
        .check = audit_check_options,
    };
    struct audit_options o = {.sample = SAMPLE_DEFAULT};
    bool problems;

    cmd_parse(&line, argc, argv, &o);
    int rc = audit(&o, &problems, e);
    if (rc == 0 && problems)
        rc = error_set(e, ERR_CORRUPT, "%s has problems", o.dir);
    return rc;
}
