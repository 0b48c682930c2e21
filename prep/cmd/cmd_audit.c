#include <stdint.h>
#include <stdlib.h>

#include "prep/cmd.h"
#include "prep/parallel.h"
#include "prep/prep.h"

#define SAMPLE_DEFAULT 10000

enum { KEY_JSON = 1000, KEY_SAMPLE, KEY_ALL, KEY_PLAN, KEY_THREADS };

static const struct argp_option audit_table[] = {
    {"sample",                                              KEY_SAMPLE, "N", 0, "decode N images, chosen at random (default: 10000)", 0},
    {"all",                                                  KEY_ALL, 0, 0, "decode every image", 0},
    {"plan", KEY_PLAN, "FILE", 0, "also check whether this job's ranks divide the data evenly", 0},
    {"threads",                                                     KEY_THREADS, "N", 0, "a shard each at a time (default: one a core)", 0},
    {"json",KEY_JSON, 0, 0, "print one JSON object", 0},
    {0                                                   },
};

static error_t parse_audit(int key, char *arg, struct argp_state *state)
{
    struct audit_options *o = state->input;

    switch (key) {
    case KEY_SAMPLE:
        o->sample = cmd_number(state, "--sample", arg, 0, INT64_MAX);
        return 0;
    case KEY_ALL:
        o->all = true;
        return 0;
    case KEY_PLAN:
        o->plan = arg;
        return 0;
    case KEY_THREADS:
        o->threads = (int)cmd_number(state, "--threads", arg, 1, PARALLEL_THREADS_MAX);
        return 0;
    case KEY_JSON:
        o->json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (o->dir)
            argp_error(state, "unexpected argument %s", arg);
        o->dir = arg;
        return 0;
    case ARGP_KEY_END:
        if (!o->dir)
            argp_error(state, "DIR is missing");
        if (o->all && o->sample != SAMPLE_DEFAULT)
            argp_error(state, "--all and --sample exclude each other");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int cmd_audit(int argc, char **argv, struct error *e)
{
    static const struct argp argp = {
        audit_table,
        parse_audit,
        "DIR",
        "Checks TFRecord shards: every checksum, a sample of the pictures, classes, duplicates, "
        "how well classes are mixed, and what the manifest says. Exit status: 0 fine (or only "
        "warnings), 1 problems, 2 wrong use.",
        0,
        0,
        0};
    struct audit_options o = {.sample = SAMPLE_DEFAULT};
    bool problems;

    argp_parse(&argp, argc, argv, 0, 0, &o);
    if (!o.threads)
        o.threads = parallel_default_threads();
    int rc = audit(&o, &problems, e);
    if (rc == 0 && problems)
        rc = error_set(e, ERR_CORRUPT, "%s has problems", o.dir);
    return rc;
}
