#include "client/cmd.h"

#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "client/api.h"
#include "client/views/print.h"
#include "common/job/job_state.h"
#include "common/printable.h"
#include "common/run/event.h"
#include "common/suggest.h"
#include "config.h"

/* clang-format off */
static const struct cmd_option common_options[] = {
    {"server", 's', "ADDRESS", "the daemon: http://HOST:PORT, https://HOST:PORT or unix:PATH (also TRAINCTL_SERVER)"},
    {"json", 'j', NULL, "print the daemon's JSON"},
    {"no-color", 0, NULL, "no colours (also NO_COLOR)"},
    {"help", 'h', NULL, "show this help"},
    {"version", 'V', NULL, "show the version"},
};

static const struct cmd commands[] = {
    {"plan", "[--explain] [--set KEY=VALUE...] FILE|- | --diff FILE FILE", "show what a job document means, without a daemon", cmd_plan, 1, 2,
     {{"explain", 'e', NULL, "each number with its formula, inputs, source and what would change it"},
      {"diff", 'd', NULL, "where two documents and their plans differ"},
      {"set", 0, "KEY=VALUE", "change a key of the document first, as lr.base=0.2"},
      {"train-images", 0, "N", "there are N training images; count none"},
      {"eval-images", 0, "N", "there are N evaluation images"}}},
    {"predict", "[--nodes N,N...] [--deadline T] [--budget H] [--set KEY=VALUE...] FILE|-",
     "predict throughput, time to train and node-hours by number of nodes, without a daemon", cmd_predict, 1, 1,
     {{"set", 0, "KEY=VALUE", "change a key of the document first, as batch_per_worker=32"},
      {"nodes", 0, "N,N...", "numbers of nodes (1,2,4,8,16,32,64,128,256)"},
      {"deadline", 0, "T", "choose the cheapest that ends within T: 2h, 90min, 3d"},
      {"budget", 0, "H", "choose the fastest that costs at most H node-hours"},
      {"to-target", 0, NULL, "epochs that ResNet-50 needs for 75.9 % top-1 with each batch, not the job's"},
      {"node-speed", 0, "R", "one node alone does R images/s, instead of what was measured here"},
      {"hop-us", 0, "U", "microseconds of each of a ring's 2 (n-1) messages (400)"},
      {"link-gbit", 0, "G", "gigabits/s that an all-reduce gets out of a node's link (60)"},
      {"jitter", 0, "P", "standard deviation of a node's step, in percent (2)"},
      {"train-images", 0, "N", "there are N training images; count none"},
      {"eval-images", 0, "N", "there are N evaluation images"}}},
    {"bench", "[--arch A] [--image-size S] [--batch B] [--workers W] [--threads T] [--steps N] [--precision P] [--gemm G] [--eval]",
     "measure training or evaluation on this machine, without a daemon", cmd_bench, 0, 0,
     {{"arch", 0, "A", "the network (resnet50)"},
      {"image-size", 0, "S", "width and height of the images in pixels (224)"},
      {"batch", 0, "B", "images of a worker and step (16)"},
      {"workers", 0, "W", "MPI ranks (2)"},
      {"threads", 0, "T", "threads of a worker (0: cores / workers)"},
      {"steps", 0, "N", "steps that are measured, behind one to warm up (5)"},
      {"precision", 0, "P", "number format of the matrix products (fp32)"},
      {"gemm", 0, "G", "what multiplies convolutions: auto, openblas or own (auto)"},
      {"eval", 0, NULL, "measure evaluation: forward passes only"}}},
    {"scale", "--workers N,N... [--strong|--weak] [--steps N] [--set KEY=VALUE...] FILE|-",
     "measure how a job scales over this machine's workers, beside the prediction, without a daemon", cmd_scale, 1, 1,
     {{"set", 0, "KEY=VALUE", "change a key of the document first, as batch_per_worker=32"},
      {"workers", 0, "N,N...", "numbers of MPI ranks, as 1,2,4"},
      {"strong", 0, NULL, "only strong scaling: the global batch stays"},
      {"weak", 0, NULL, "only weak scaling: each worker keeps its batch"},
      {"steps", 0, "N", "steps that are measured, behind one to warm up (5)"},
      {"plot", 0, NULL, "also as curves over the workers in the terminal, with log axes"},
      {"oversubscribe", 0, NULL, "also more workers than there are slots"}}},
    {"presets", "[NAME]", "list the published recipes, or show what one sets, without a daemon", cmd_presets, 0, 1, {{0}}},
    {"submit", "[--set KEY=VALUE...] [--train-images N] [--eval-images N] [--wait|--watch|--print-sbatch] FILE|-", "submit a job document and print the job's id", cmd_submit, 1, 1,
     {{"set", 0, "KEY=VALUE", "change a key of the document first, as lr.base=0.2"},
      {"wait", 0, NULL, "wait for its end; exit with its outcome"},
      {"watch", 0, NULL, "watch it until its end; exit with its outcome"},
      {"print-sbatch", 0, NULL, "print the batch script of a job for Slurm instead of submitting it"},
      {"train-images", 0, "N", "there are N training images: data.train_images"},
      {"eval-images", 0, "N", "there are N evaluation images: data.eval_images"}}},
    {"list", "[--state S] [--user U] [--name N] [--sweep ID] [--find WORDS] [--sort KEY] [--limit N] [-o wide]", "list jobs, the newest first", cmd_list, 0, 0,
     {{"state", 0, "S", "only jobs in this state, or in one of several: running,queued"},
      {"user", 0, "U", "only jobs of this user or token"},
      {"name", 0, "N", "only jobs with this in their name"},
      {"sweep", 0, "ID", "only jobs of this sweep"},
      {"find", 0, "WORDS", "only jobs with these words in id, name, reason, user, network or data"},
      {"sort", 0, "KEY", "newest, name, priority, top1, loss, images_per_sec, ttt_seconds or finished_at"},
      {"output", 'o', "wide", "more columns, and nothing cut"},
      {"limit", 0, "N", "at most N jobs, the newest (20)"}}},
    {"show", "ID", "show one job", cmd_show, 1, 1, {{0}}},
    {"watch", "[ID]", "watch a job until it ends, and exit with its outcome; without ID the queue", cmd_watch, 0, 1, {{0}}},
    {"wait", "ID...", "wait until jobs have ended; exit with the outcome of the first that did not succeed", cmd_wait, 1, CMD_OPERANDS_MAX, {{0}}},
    {"events", "[--types A,B] ID", "print what happened to a job", cmd_events, 1, 1,
     {{"types", 0, "A,B", "which types, as state,eval (all but steps)"}}},
    {"logs", "[-f] [--attempt N] [--tail N] ID", "print a job's log", cmd_logs, 1, 1,
     {{"follow", 'f', NULL, "go on until the job ends"},
      {"attempt", 0, "N", "of this attempt (the newest)"},
      {"tail", 0, "N", "only its last N lines"}}},
    {"cancel", "ID...", "cancel jobs", cmd_cancel, 1, CMD_OPERANDS_MAX, {{0}}},
    {"clone", "[--set KEY=VALUE...] [--submit [--wait|--watch]] ID", "print a job's document with changes, or submit it as a new job", cmd_clone, 1, 1,
     {{"set", 0, "KEY=VALUE", "change a key, as lr.base=0.2"},
      {"submit", 0, NULL, "submit it instead of printing it"},
      {"wait", 0, NULL, "with --submit: wait for its end; exit with its outcome"},
      {"watch", 0, NULL, "with --submit: watch it until its end; exit with its outcome"}}},
    {"resume", "[--set KEY=VALUE...] ID", "go on with a job from its newest checkpoint", cmd_resume, 1, CMD_OPERANDS_MAX,
     {{"set", 0, "KEY=VALUE", "change a key of cluster or restart, or the priority, as cluster.workers_per_node=1"}}},
    {"rm", "ID...", "remove ended jobs with their run directories", cmd_rm, 1, CMD_OPERANDS_MAX, {{0}}},
    {"metrics", "[--names A,B] [--points N] [--csv|--plot] ID", "print or draw a job's metrics by step", cmd_metrics, 1, 1,
     {{"names", 0, "A,B", "which (loss,lr,images_per_sec)"},
      {"points", 0, "N", "at most N rows: means of the steps between"},
      {"csv", 0, NULL, "as comma-separated values"},
      {"plot", 'p', NULL, "as curves in the terminal"}}},
    {"compare", "ID ID...", "results of jobs side by side, and in which keys they differ", cmd_compare, 2, CMD_OPERANDS_MAX, {{0}}},
    {"checkpoints", "[--get STEP|newest [--output FILE]] ID", "list a job's checkpoints, or download one's weights", cmd_checkpoints, 1, 1,
     {{"get", 0, "STEP", "download the weights after this step, or the newest"},
      {"output", 'o', "FILE", "into this file; - is standard output (job-ID-step-STEP.safetensors)"}}},
    {"sweep", "FILE|- | show ID | wait ID | list | cancel ID", "search over job keys: submit one, show its results, wait, list, cancel", cmd_sweep, 1, 2, {{0}}},
    {"nodes", "[NAME]", "list the machines that train, or one with its checks", cmd_nodes, 0, 1, {{0}}},
    {"token", "create [--role R] [--expires T] NAME | list | revoke ID", "make, list and revoke tokens; over the unix socket, or with a token of role admin", cmd_token, 1, 2,
     {{"role", 0, "R", "what it may: read, submit, operator, node or admin (submit)"},
      {"expires", 0, "T", "it ends after this time, as 90m, 12h or 30d (never)"}}},
    {"backup", "FILE", "copy the daemon's database, while it works, into a file", cmd_backup, 1, 1, {{0}}},
    {"doctor", "[--slurm]", "look for what is wrong with an installation; exit 1 where something is", cmd_doctor, 0, 0,
     {{"slurm", 0, NULL, "also what is missing for jobs on Slurm: slurm.conf, prolog, settings, nodes"}}},
};
/* clang-format on */

/* Titles above the first command of each group: in the help, and in man/trainctl.1. */
static const struct {
    const char *first, *title;
} groups[] = {
    {"plan",    "Before a job"              },
    {"submit",  "Jobs"                      },
    {"metrics", "Results"                   },
    {"sweep",   "Searches"                  },
    {"nodes",   "The cluster and the daemon"},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const struct cmd *cmd_at(size_t i)
{
    return i < COUNT(commands) ? &commands[i] : NULL;
}

const char *cmd_title(const char *name)
{
    for (size_t i = 0; i < COUNT(groups); i++)
        if (strcmp(groups[i].first, name) == 0)
            return groups[i].title;
    return NULL;
}

const struct cmd *cmd_find(const char *name)
{
    for (size_t i = 0; i < COUNT(commands); i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

const struct cmd_option *cmd_common_at(size_t i)
{
    return i < COUNT(common_options) ? &common_options[i] : NULL;
}

const struct cmd_option *cmd_option_at(const struct cmd *cmd, size_t i)
{
    size_t own = 0;

    while (cmd && own < CMD_OPTIONS_MAX && cmd->options[own].name)
        own++;
    return i < own ? &cmd->options[i] : cmd_common_at(i - own);
}

#define OPTIONS_MAX (CMD_OPTIONS_MAX + COUNT(common_options))

/* getopt's two tables from ours. A long option's val is its index from 1000 on. */
#define LONG_BASE 1000
static void getopt_tables(const struct cmd *cmd, struct option *longs, char *letters)
{
    const struct cmd_option *option;
    size_t i = 0;

    /* "+" stops at the first operand (the command's name); ":" tells a missing value apart. */
    *letters++ = cmd ? ':' : '+';
    if (!cmd)
        *letters++ = ':';
    for (; (option = cmd_option_at(cmd, i)); i++) {
        longs[i] = (struct option){option->name, option->value ? required_argument : no_argument,
                                   NULL, LONG_BASE + (int)i};
        if (option->letter)
            *letters++ = option->letter;
        if (option->letter && option->value)
            *letters++ = ':';
    }
    longs[i] = (struct option){0};
    *letters = '\0';
}

static const struct cmd_option *cmd_find_option(const struct cmd *cmd, int found, size_t *index)
{
    const struct cmd_option *option;

    for (size_t i = 0; (option = cmd_option_at(cmd, i)); i++)
        if (found == LONG_BASE + (int)i || (option->letter && found == option->letter)) {
            *index = i;
            return option;
        }
    return NULL;
}

static int unknown_option(const struct cmd *cmd, const char *word)
{
    const struct cmd_option *option;
    char name[64];

    if (strncmp(word, "--", 2) != 0)
        return cmd_usage(cmd, "there is no option -%c", optopt ? optopt : word[1]);
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
    struct suggest near = {.word = name};
    for (size_t i = 0; (option = cmd_option_at(cmd, i)); i++)
        suggest_offer(&near, option->name);
    if (near.best)
        return cmd_usage(cmd, "there is no option --%s; did you mean --%s?", name, near.best);
    return cmd_usage(cmd, "there is no option --%s", name);
}

/* Carries out a common option; -1 to go on, else the exit code. */
static int take_common(const struct cmd *cmd, const struct cmd_option *option)
{
    if (strcmp(option->name, "server") == 0) {
        client.server = optarg;
    } else if (strcmp(option->name, "json") == 0) {
        client.json = true;
    } else if (strcmp(option->name, "no-color") == 0) {
        client.color = false;
    } else if (strcmp(option->name, "version") == 0) {
        puts("trainctl " PACKAGE_VERSION);
        return 0;
    } else {
        if (cmd)
            cmd_print_help(stdout, cmd);
        else
            cmd_print_overview(stdout);
        return 0;
    }
    return -1;
}

/* Keeps a command's own option; -1 to go on, else the exit code. */
static int take_own(const struct cmd *cmd, const struct cmd_option *option, size_t index,
                    struct cmd_args *args)
{
    args->values[index] = option->value ? optarg : "";
    if (!option->value || strcmp(option->value, "KEY=VALUE") != 0)
        return -1;
    if (args->repeated_count == CMD_REPEATED_MAX)
        return cmd_usage(cmd, "--%s is there more than %d times", option->name, CMD_REPEATED_MAX);
    args->repeated[args->repeated_count++] = optarg;
    return -1;
}

/* Options until getopt ends; args (may be NULL) takes those that are the command's own. */
static int cmd_parse_options(const struct cmd *cmd, struct cmd_args *args, int argc, char **argv)
{
    struct option longs[OPTIONS_MAX + 1];
    char letters[3 * OPTIONS_MAX + 3];
    const struct cmd_option *option;
    size_t index;
    int found, code;

    getopt_tables(cmd, longs, letters);
    optind = 0; /* GNU: start anew, also inside a second argv */
    opterr = 0;
    while ((found = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
        if (found == ':')
            return cmd_usage(cmd, "%s needs a value", argv[optind - 1]);
        option = cmd_find_option(cmd, found, &index);
        if (found == '?' || !option)
            return unknown_option(cmd, argv[optind - 1]);
        if (!args || !cmd || index >= CMD_OPTIONS_MAX || option != &cmd->options[index])
            code = take_common(cmd, option);
        else
            code = take_own(cmd, option, index, args);
        if (code >= 0)
            return code;
    }
    return -1;
}

int cmd_parse_common(int argc, char **argv, int *code)
{
    *code = cmd_parse_options(NULL, NULL, argc, argv);
    if (*code >= 0)
        return -1;
    if (optind < argc)
        return optind;
    cmd_print_overview(stderr);
    *code = error_type(ERR_USAGE)->exit_code;
    return -1;
}

int cmd_parse(struct cmd_args *args, int argc, char **argv)
{
    memset(args, 0, sizeof *args);
    args->cmd = cmd_find(argv[0]);
    int code = cmd_parse_options(args->cmd, args, argc, argv);
    if (code >= 0)
        return code;
    if (argc - optind < args->cmd->min_operands)
        return cmd_usage(args->cmd, "something is missing: trainctl %s %s", args->cmd->name,
                         args->cmd->synopsis);
    if (argc - optind > args->cmd->max_operands)
        return cmd_usage(args->cmd, "\"%s\" is one too many: trainctl %s %s",
                         argv[optind + args->cmd->max_operands], args->cmd->name,
                         args->cmd->synopsis);
    for (int i = optind; i < argc; i++)
        args->operands[args->operand_count++] = argv[i];
    return -1;
}

const char *cmd_value(const struct cmd_args *args, const char *option)
{
    for (size_t i = 0; i < CMD_OPTIONS_MAX && args->cmd->options[i].name; i++)
        if (strcmp(args->cmd->options[i].name, option) == 0)
            return args->values[i];
    return NULL;
}

bool cmd_flag(const struct cmd_args *args, const char *option)
{
    return cmd_value(args, option) != NULL;
}

#define HELP_COLUMN 27 /* of what an option or a command is for */

static void print_option(FILE *out, const struct cmd_option *option)
{
    char name[64], label[80];

    snprintf(name, sizeof name, "--%s%s%s", option->name, option->value ? " " : "",
             option->value ? option->value : "");
    if (option->letter)
        snprintf(label, sizeof label, "  -%c, %-20s ", option->letter, name);
    else
        snprintf(label, sizeof label, "      %-20s ", name);
    print_wrapped(out, label, HELP_COLUMN, option->help);
}

void cmd_print_help(FILE *out, const struct cmd *cmd)
{
    const struct cmd_option *option;
    char label[64];

    snprintf(label, sizeof label, "usage: trainctl %s%s", cmd->name, *cmd->synopsis ? " " : "");
    print_wrapped(out, label, 16, cmd->synopsis);
    fputc('\n', out);
    print_wrapped(out, "", 0, cmd->help);
    fputs(cmd->run ? "\nOptions:\n" : "(not supported by this version)\n\nOptions:\n", out);
    for (size_t i = 0; (option = cmd_option_at(cmd, i)); i++)
        print_option(out, option);
}

static void print_refused(FILE *out)
{
    const char *before = "\nnot supported by this version: ";

    for (size_t i = 0; i < COUNT(commands); i++)
        if (!commands[i].run) {
            fprintf(out, "%s%s", before, commands[i].name);
            before = " ";
        }
    if (*before == ' ')
        fputc('\n', out);
}

void cmd_print_overview(FILE *out)
{
    const struct cmd_option *option;
    char label[64];

    fputs("usage: trainctl [--server ADDRESS] [--json] COMMAND ...\n", out);
    for (size_t i = 0; i < COUNT(commands); i++) {
        if (cmd_title(commands[i].name))
            fprintf(out, "\n%s:\n", cmd_title(commands[i].name));
        snprintf(label, sizeof label, "  %-11s ", commands[i].name);
        if (commands[i].run)
            print_wrapped(out, label, 14, commands[i].help);
    }
    print_refused(out);
    fputs("\nOptions:\n", out);
    for (size_t i = 0; (option = cmd_common_at(i)); i++)
        print_option(out, option);
    fputs("\n\"trainctl COMMAND --help\" tells more; so does man trainctl.\n", out);
}

/* One line of JSON with nothing in it that a terminal would obey. */
static void print_error_json(const json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT), *safe = text ? printable_copy(text, "") : NULL;

    if (safe)
        fprintf(stderr, "%s\n", safe);
    free(safe);
    free(text);
}

int cmd_fail(const struct error *e)
{
    const struct error_type *type = error_type(e->code);

    fflush(stdout);
    if (client.json && api_problem()) {
        print_error_json(api_problem());
    } else if (client.json) {
        json_t *line = json_pack("{s:s, s:s, s:s}", "type", type->slug, "title", type->title,
                                 "detail", e->text);
        print_error_json(line);
        json_decref(line);
    } else {
        char *text = printable_copy(e->text, "\n\t");
        fprintf(stderr, "trainctl: %s\n", text);
        free(text);
    }
    return type->exit_code;
}

int cmd_usage(const struct cmd *cmd, const char *format, ...)
{
    struct error e;
    char words[512];
    va_list args;

    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    error_set(&e, ERR_USAGE, "%s\n  \"trainctl %s%s--help\" shows what there is", words,
              cmd ? cmd->name : "", cmd ? " " : "");
    return cmd_fail(&e);
}

/* ---- words of tables */

const char *cmd_state_at(size_t i)
{
    return i < JOB_STATE_COUNT ? job_state_name((enum job_state)i) : NULL;
}

const char *cmd_metric_at(size_t i)
{
    return event_metric_at(i) ? event_metric_at(i)->name : NULL;
}

const char *cmd_role_at(size_t i)
{
    static const char *const roles[] = {"read", "submit", "operator", "node", "admin"};

    return i < COUNT(roles) ? roles[i] : NULL;
}

int cmd_word(const char *word, const char *what, const char *name_at(size_t), struct error *e)
{
    struct suggest near = {.word = word};
    char all[512] = "";

    for (size_t i = 0; name_at(i); i++) {
        size_t used = strlen(all);
        if (strcmp(name_at(i), word) == 0)
            return 0;
        suggest_offer(&near, name_at(i));
        snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", name_at(i));
    }
    if (near.best)
        return error_set(e, ERR_USAGE, "there is no %s \"%s\"; did you mean \"%s\"?", what, word,
                         near.best);
    return error_set(e, ERR_USAGE, "there is no %s \"%.60s\"; there are %s", what, word, all);
}

int cmd_words(const char *list, const char *what, const char *name_at(size_t), struct error *e)
{
    char word[64];
    int status = 0;

    do {
        size_t length = strcspn(list, ",");
        snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1),
                 list);
        status = cmd_word(word, what, name_at, e);
        list += length;
    } while (!status && *list++);
    return status;
}

int cmd_job_id(const char *text, long *id, struct error *e)
{
    char *end;

    errno = 0;
    *id = strtol(text, &end, 10);
    if (end == text || *end || errno || *id < 1)
        return error_set(e, ERR_USAGE,
                         "\"%s\" is not a job's id: ids are numbers as in \"trainctl list\"", text);
    return 0;
}

int cmd_number(const char *text, const char *option, long minimum, long maximum, long *number,
               struct error *e)
{
    char *end;

    errno = 0;
    *number = strtol(text, &end, 10);
    if (end == text || *end || errno || *number < minimum || *number > maximum)
        return error_set(e, ERR_USAGE, "--%s must be a number from %ld to %ld, not \"%s\"", option,
                         minimum, maximum, text);
    return 0;
}

int cmd_duration(const struct cmd_args *args, const char *option, double *seconds, struct error *e)
{
    static const struct {
        const char *unit;
        double seconds;
    } units[] = {
        {"",    1    },
        {"s",   1    },
        {"m",   60   },
        {"min", 60   },
        {"h",   3600 },
        {"d",   86400}
    };
    const char *text = cmd_value(args, option);
    char *end;

    if (!text)
        return 0;
    errno = 0;
    double number = strtod(text, &end);
    for (size_t i = 0; i < COUNT(units); i++)
        if (!errno && end != text && number > 0 && isfinite(number) &&
            strcmp(end, units[i].unit) == 0) {
            *seconds = number * units[i].seconds;
            return 0;
        }
    return error_set(e, ERR_USAGE, "--%s must be a time as 2h, 90min or 3d, not \"%s\"", option,
                     text);
}
