#include <stdint.h>
#include <string.h>

#include "prep/cmd.h"
#include "prep/parallel.h"
#include "prep/prep.h"

#define IMAGENET_SHARDS 1024 /* as imagenet_to_gcs.py; an eighth, 128, for the validation */

enum {
    KEY_IN = 1000,
    KEY_SHARDS,
    KEY_EVAL_SHARDS,
    KEY_SEED,
    KEY_FORCE,
    KEY_CLASSES,
    KEY_PAD,
    KEY_RESIZE,
    KEY_QUALITY,
    KEY_THREADS,
    KEY_JSON
};

static const struct argp_option convert_table[] = {
    {"from",                                                               'f', "KIND", 0,
     "imagenet (the tars as downloaded), folder (class folders of JPEGs), idx (MNIST-style files, "
     "plain or .gz) or cifar (the binary version)", 0},
    {"in",                                                              KEY_IN, "PATH", 0, "what to read: a folder; of cifar also its .tar.gz", 0},
    {"out",                        'o', "DIR", 0, "the folder to write: DIR/train, DIR/validation, DIR/manifest.json", 0},
    {"shards",                                                                    KEY_SHARDS, "N", 0, "training shards (imagenet: 1024 if not given)", 0},
    {"eval-shards", KEY_EVAL_SHARDS, "M", 0,
     "validation shards (default: an eighth of N, at least 1)", 0},
    {"seed",                                                                   KEY_SEED, "S", 0, "of the shuffle (default: 1)", 0},
    {"threads",                                                                   KEY_THREADS, "N", 0, "a shard each at a time (default: one a core)", 0},
    {"resize",                                                                KEY_RESIZE, "N", 0,
     "make the short side of larger images N pixels (default: keep them as they are)", 0},
    {"quality",                                                               KEY_QUALITY, "Q", 0, "of resized JPEGs, 1 to 100 (default: 95)", 0},
    {"classes", KEY_CLASSES, "FILE", 0,
     "names of the classes, one a line (idx; default: 0, 1, ...)", 0},
    {"pad",                                                                    KEY_PAD, "N", 0,
     "rows and columns of black around each image (idx and cifar; default: 0)", 0},
    {"force",KEY_FORCE, 0, 0, "replace an earlier conversion in DIR, finished or not", 0},
    {"json",                                                                   KEY_JSON, 0, 0, "print one JSON object", 0},
    {0                                                                  },
};

static error_t parse_convert(int key, char *arg, struct argp_state *state)
{
    struct convert_options *o = state->input;

    switch (key) {
    case 'f':
        o->from = arg;
        return 0;
    case KEY_IN:
        o->in = arg;
        return 0;
    case 'o':
        o->out = arg;
        return 0;
    case KEY_SHARDS:
        o->shards = (int)cmd_number(state, "--shards", arg, 1, 99999);
        return 0;
    case KEY_EVAL_SHARDS:
        o->eval_shards = (int)cmd_number(state, "--eval-shards", arg, 1, 99999);
        return 0;
    case KEY_SEED:
        o->seed = cmd_number(state, "--seed", arg, 0, INT64_MAX);
        return 0;
    case KEY_CLASSES:
        o->classes_file = arg;
        return 0;
    case KEY_PAD:
        o->pad = (int)cmd_number(state, "--pad", arg, 0, 1000);
        return 0;
    case KEY_RESIZE:
        o->resize = (int)cmd_number(state, "--resize", arg, 16, 10000);
        return 0;
    case KEY_QUALITY:
        o->quality = (int)cmd_number(state, "--quality", arg, 1, 100);
        return 0;
    case KEY_THREADS:
        o->threads = (int)cmd_number(state, "--threads", arg, 1, PARALLEL_THREADS_MAX);
        return 0;
    case KEY_FORCE:
        o->force = true;
        return 0;
    case KEY_JSON:
        o->json = true;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "unexpected argument %s", arg);
        return 0;
    case ARGP_KEY_END:
        if (o->from && !o->shards && strcmp(o->from, "imagenet") == 0)
            o->shards = IMAGENET_SHARDS;
        if (!o->from || !o->in || !o->out || !o->shards)
            argp_error(state, "--%s is missing",
                       !o->from  ? "from"
                       : !o->in  ? "in"
                       : !o->out ? "out"
                                 : "shards");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int cmd_convert(int argc, char **argv, struct error *e)
{
    static const struct argp argp = {convert_table,
                                     parse_convert,
                                     "",
                                     "Makes TFRecord shards of labelled JPEGs in the format of "
                                     "TensorFlow's imagenet_to_gcs, shuffled by "
                                     "seed. The same input and seed give the same bytes.",
                                     0,
                                     0,
                                     0};
    struct convert_options o = {.seed = 1, .quality = 95};

    argp_parse(&argp, argc, argv, 0, 0, &o);
    if (!o.threads)
        o.threads = parallel_default_threads();
    return convert(&o, e);
}
