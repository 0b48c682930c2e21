#include <stdint.h>
#include <string.h>

#include "prep/cmd.h"
#include "prep/parallel.h"
#include "prep/prep.h"

#define IMAGENET_SHARDS 1024 /* as imagenet_to_gcs.py; an eighth, 128, for the validation */
#define SHARDS_MAX      99999

#define AT(field) offsetof(struct convert_options, field)

/* clang-format off */
static const struct command_option convert_table[] = {
    {.name = "from", .letter = 'f', .value = "KIND", .kind = OPTION_TEXT, .offset = AT(from), .required = true,
     .help = "imagenet (the downloaded tar files), folder (class folders of JPEG and PNG files), idx (MNIST-style files, "
             "plain or .gz) or cifar (the binary version)"},
    {.name = "in", .value = "PATH", .kind = OPTION_TEXT, .offset = AT(in), .required = true,
     .help = "input folder; for cifar also its .tar.gz"},
    {.name = "out", .letter = 'o', .value = "DIR", .kind = OPTION_TEXT, .offset = AT(out), .required = true,
     .help = "output folder, for DIR/train, DIR/validation, DIR/manifest.json"},
    {.name = "shards", .value = "N", .kind = OPTION_INT, .offset = AT(shards), .least = 1, .most = SHARDS_MAX,
     .help = "number of training shards (default for imagenet: 1024)"},
    {.name = "eval-shards", .value = "M", .kind = OPTION_INT, .offset = AT(eval_shards), .least = 1, .most = SHARDS_MAX,
     .help = "number of validation shards (default: an eighth of N, at least 1)"},
    {.name = "seed", .value = "S", .kind = OPTION_INT64, .offset = AT(seed), .most = INT64_MAX,
     .help = "seed of the shuffle (default: 1)"},
    {.name = "threads", .value = "N", .kind = OPTION_INT, .offset = AT(threads), .least = 1, .most = PARALLEL_THREADS_MAX,
     .help = "shards to write in parallel (default: one per core)"},
    {.name = "resize", .value = "N", .kind = OPTION_INT, .offset = AT(resize), .least = 16, .most = 10000,
     .help = "reduce the short side of larger images to N pixels (default: keep the size)"},
    {.name = "quality", .value = "Q", .kind = OPTION_INT, .offset = AT(quality), .least = 1, .most = 100,
     .help = "quality of resized JPEGs, 1 to 100 (default: 95)"},
    {.name = "classes", .value = "FILE", .kind = OPTION_TEXT, .offset = AT(classes_file),
     .help = "names of the classes, one per line (idx; default: 0, 1, ...)"},
    {.name = "pad", .value = "N", .kind = OPTION_INT, .offset = AT(pad), .most = 1000,
     .help = "width of a black border around each image (idx and cifar; default: 0)"},
    {.name = "force", .kind = OPTION_FLAG, .offset = AT(force),
     .help = "replace an earlier conversion in DIR, finished or not"},
    {.name = "json", .kind = OPTION_FLAG, .offset = AT(json),
     .help = "print one JSON object"},
    {0},
};
/* clang-format on */

static int convert_check_options(void *fields, struct error *e)
{
    struct convert_options *o = fields;

    if (!o->shards && strcmp(o->from, "imagenet") == 0)
        o->shards = IMAGENET_SHARDS;
    if (!o->shards)
        return error_set(e, ERR_USAGE, "--shards is missing");
    if (!o->threads)
        o->threads = parallel_default_threads();
    return 0;
}

int cmd_convert(int argc, char **argv, struct error *e)
{
    static const struct command_line line = {
        .program = "train-prep convert",
        .usage = "Usage: train-prep convert [OPTION...]",
        .options = convert_table,
        .common = command_line_common,
        .doc = "Makes TFRecord shards of labelled JPEGs in the format of TensorFlow's "
               "imagenet_to_gcs, shuffled by seed. The same input and seed give the same bytes.",
        .check = convert_check_options,
    };
    struct convert_options o = {.seed = 1, .quality = 95};

    int rc = command_line_read(&line, argc, argv, &o);
    return rc >= 0 ? rc : convert(&o, e);
}
