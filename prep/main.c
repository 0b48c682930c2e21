/* train-prep: makes and shows data sets. Options by glibc's argp, one table a command. */
#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "prep/prep.h"

volatile int prep_interrupted;

static void on_signal(int number)
{
    (void)number;
    prep_interrupted = 1;
}

static int64_t number(struct argp_state *state, const char *option, const char *text, int64_t least,
                      int64_t most)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || end == text || *end || value < least || value > most)
        argp_error(state, "%s %s: expected a whole number from %lld to %lld", option, text,
                   (long long)least, (long long)most);
    return value;
}

enum {
    KEY_IN = 1000,
    KEY_SHARDS,
    KEY_EVAL_SHARDS,
    KEY_SEED,
    KEY_FORCE,
    KEY_CLASSES,
    KEY_PAD,
    KEY_JSON,
    KEY_ROLE
};

static const struct argp_option convert_table[] = {
    {"from",                                                                     'f', "KIND", 0,
     "idx (MNIST-style files, plain or .gz) or folder (class folders of JPEGs)", 0},
    {"in",                                                                    KEY_IN, "PATH", 0, "the folder to read", 0},
    {"out", 'o', "DIR", 0, "the folder to write: DIR/train, DIR/validation, DIR/manifest.json", 0},
    {"shards",                                                                          KEY_SHARDS, "N", 0, "training shards", 0},
    {"eval-shards", KEY_EVAL_SHARDS, "M", 0,
     "validation shards (default: an eighth of N, at least 1)", 0},
    {"seed",                                                                         KEY_SEED, "S", 0, "of the shuffle (default: 1)", 0},
    {"classes",                                                                         KEY_CLASSES, "FILE", 0,
     "names of the classes, one a line (idx; default: 0, 1, ...)", 0},
    {"pad",                                                                      KEY_PAD, "N", 0, "rows and columns of black around each image (idx; default: 0)", 0},
    {"force",                                                                     KEY_FORCE, 0, 0, "replace an earlier conversion in DIR", 0},
    {0      },
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
        o->shards = (int)number(state, "--shards", arg, 1, 99999);
        return 0;
    case KEY_EVAL_SHARDS:
        o->eval_shards = (int)number(state, "--eval-shards", arg, 1, 99999);
        return 0;
    case KEY_SEED:
        o->seed = number(state, "--seed", arg, 0, INT64_MAX);
        return 0;
    case KEY_CLASSES:
        o->classes_file = arg;
        return 0;
    case KEY_PAD:
        o->pad = (int)number(state, "--pad", arg, 0, 1000);
        return 0;
    case KEY_FORCE:
        o->force = true;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "unexpected argument %s", arg);
        return 0;
    case ARGP_KEY_END:
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

static int run_convert(int argc, char **argv, struct error *e)
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
    struct convert_options o = {.seed = 1};
    argp_parse(&argp, argc, argv, 0, 0, &o);
    return convert(&o, e);
}

static enum dataset_role role(struct argp_state *state, const char *text)
{
    if (strcmp(text, "train") != 0 && strcmp(text, "validation") != 0)
        argp_error(state, "--role %s: expected train or validation", text);
    return strcmp(text, "train") == 0 ? DATASET_TRAIN : DATASET_EVAL;
}

static const struct argp_option show_table[] = {
    {"limit",                                   'n', "N", 0, "at most so many records (default: all)", 0},
    {"role",                                      KEY_ROLE, "ROLE", 0, "train (default) or validation, of a folder that holds both", 0},
    {"json", KEY_JSON, 0, 0, "one JSON object a line", 0},
    {0                                        },
};

static error_t parse_show(int key, char *arg, struct argp_state *state)
{
    struct show_options *o = state->input;

    switch (key) {
    case 'n':
        o->limit = number(state, "--limit", arg, 1, INT64_MAX);
        return 0;
    case KEY_ROLE:
        o->role = role(state, arg);
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
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int run_show(int argc, char **argv, struct error *e)
{
    static const struct argp argp = {
        show_table, parse_show,
        "DIR",      "Lists the records of a data set in file order; checksums are verified.",
        0,          0,
        0};
    struct show_options o = {0};
    argp_parse(&argp, argc, argv, 0, 0, &o);
    return show(&o, e);
}

static const struct argp_option extract_table[] = {
    {"out",                     'o', "FOLDER", 0, "the folder to write to", 0},
    {"limit",                 'n', "N", 0, "at most so many images (default: all)", 0},
    {"role", KEY_ROLE, "ROLE", 0, "train (default) or validation, of a folder that holds both", 0},
    {0                        },
};

static error_t parse_extract(int key, char *arg, struct argp_state *state)
{
    struct extract_options *o = state->input;

    switch (key) {
    case 'o':
        o->out = arg;
        return 0;
    case 'n':
        o->limit = number(state, "--limit", arg, 1, INT64_MAX);
        return 0;
    case KEY_ROLE:
        o->role = role(state, arg);
        return 0;
    case ARGP_KEY_ARG:
        if (o->dir)
            argp_error(state, "unexpected argument %s", arg);
        o->dir = arg;
        return 0;
    case ARGP_KEY_END:
        if (!o->dir || !o->out)
            argp_error(state, !o->dir ? "DIR is missing" : "--out is missing");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int run_extract(int argc, char **argv, struct error *e)
{
    static const struct argp argp = {
        extract_table,
        parse_extract,
        "DIR",
        "Writes the images of a data set as JPEG files, just as they are stored.",
        0,
        0,
        0};
    struct extract_options o = {0};
    argp_parse(&argp, argc, argv, 0, 0, &o);
    return extract(&o, e);
}

static int run_audit(int argc, char **argv, struct error *e)
{
    (void)argc;
    (void)argv;
    return error_set(e, ERR_UNSUPPORTED, "audit is not supported by this version");
}

static const struct command {
    const char *name, *help;
    int (*run)(int argc, char **argv, struct error *e);
} commands[] = {
    {"convert", "make TFRecord shards from IDX files or class folders", run_convert},
    {"show",    "list the records of a data set",                       run_show   },
    {"extract", "write the images of a data set as JPEG files",         run_extract},
    {"audit",   "not supported by this version",                        run_audit  },
};
#define COMMANDS (sizeof commands / sizeof *commands)

static void print_help(FILE *to)
{
    fputs("Usage: train-prep COMMAND [OPTION...]\nMakes and shows data sets for traind.\n\n", to);
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(to, "  %-9s %s\n", commands[i].name, commands[i].help);
    fputs("\n'train-prep COMMAND --help' shows a command's options; train-prep(1) tells more.\n"
          "Exit status: 0 done, 1 failed, 2 wrong use or input, 3 not found, 4 not allowed, 130 "
          "interrupted.\n",
          to);
}

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(name, commands[i].name) == 0)
            return &commands[i];
    return NULL;
}

static int run(const struct command *command, int argc, char **argv)
{
    char name[64];
    struct error e;

    snprintf(name, sizeof name, "train-prep %s", command->name);
    argv[1] = name; /* argp's messages begin with it */
    int rc = command->run(argc - 1, argv + 1, &e);
    if (rc == 0)
        return 0;
    fprintf(stderr, "train-prep: %s\n", e.text);
    return error_type(e.code)->exit_code;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND};
    const struct command *command = argc > 1 ? find_command(argv[1]) : NULL;

    argp_err_exit_status = 2;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0)) {
        print_help(stdout);
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        puts("train-prep " PACKAGE_VERSION);
        return 0;
    }
    if (!command) {
        if (argc > 1)
            fprintf(stderr, "train-prep: there is no command %s\n\n", argv[1]);
        print_help(stderr);
        return 2;
    }
    return run(command, argc, argv);
}
