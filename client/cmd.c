#include "client/cmd.h"

#include <curl/curl.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "client/api.h"
#include "client/views/print.h"
#include "common/buffer.h"
#include "common/job/job_state.h"
#include "common/xalloc.h"
#include "common/text.h"
#include "common/run/attempt.h"
#include "config.h"

/* clang-format off */
static const struct cmd_option common_options[] = {
    {"server", 's', "ADDRESS", "the daemon: http://HOST:PORT, https://HOST:PORT, HOST:PORT or unix:PATH (also TRAINCTL_SERVER)", NULL},
    {"context", 0, "NAME", "use the daemon of this context (also TRAINCTL_CONTEXT; trainctl context lists them)", "context"},
    {"json", 'j', NULL, "print JSON", NULL},
    {"no-color", 0, NULL, "do not use colours (also NO_COLOR)", NULL},
    {"help", 'h', NULL, "show this help", NULL},
    {"version", 'V', NULL, "show the version", NULL},
    {"output", 'o', "json", "the same as --json", "json|"}, /* last: commands may have their own */
};
/* clang-format on */

#define CMD_ADDRESS(name) &cmd_##name##_entry,
static const struct cmd *const commands[] = {CMD_ALL(CMD_ADDRESS)};

/* Titles above the first command of each group: in the help, and in man/trainctl.1. */
static const struct {
    const char *first, *title;
} groups[] = {
    {"submit",  "Everyday"                                },
    {"resume",  "Changes to jobs"                         },
    {"metrics", "Results"                                 },
    {"plan",    "Plans and measurements, without a daemon"},
    {"sweep",   "Sweeps"                                  },
    {"nodes",   "Cluster"                                 },
    {"doctor",  "Administration"                          },
    {"login",   "Set-up"                                  },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const struct cmd *cmd_at(size_t i)
{
    return i < COUNT(commands) ? commands[i] : NULL;
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
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
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
    if (i < own)
        return &cmd->options[i];
    const struct cmd_option *common = cmd_common_at(i - own);
    for (size_t k = 0; common && k < own; k++)
        if (strcmp(cmd->options[k].name, common->name) == 0)
            return NULL;
    return common;
}

#define OPTIONS_MAX (CMD_OPTIONS_MAX + COUNT(common_options))

/* getopt's two tables from ours. A long option's val is its index from 1000 on. */
#define LONG_BASE   1000
#define USAGE_SHORT 60 /* a longer one stands in --help alone */
static void cmd_getopt_tables(const struct cmd *cmd, struct option *longs, char *letters)
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

static int cmd_unknown_option(const struct cmd *cmd, const char *word)
{
    const struct cmd_option *option;
    char name[64];

    if (optopt >= LONG_BASE && (option = cmd_option_at(cmd, (size_t)(optopt - LONG_BASE))))
        return cmd_usage(cmd, "--%s takes no value", option->name);
    if (strncmp(word, "--", 2) != 0)
        return cmd_usage(cmd, "there is no option -%c%s", optopt ? optopt : word[1],
                         optopt == 'v' ? "; did you mean -V, --version?" : "");
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
    struct suggest near = {.word = name};
    for (size_t i = 0; (option = cmd_option_at(cmd, i)); i++)
        text_suggest(&near, option->name);
    if (near.best)
        return cmd_usage(cmd, "there is no option --%s; did you mean --%s?", name, near.best);
    return cmd_usage(cmd, "there is no option --%s", name);
}

/* Carries out a common option; -1 to go on, else the exit code. */
static int cmd_take_common(const struct cmd *cmd, const struct cmd_option *option)
{
    if (strcmp(option->name, "server") == 0) {
        client.server = optarg;
    } else if (strcmp(option->name, "context") == 0) {
        client.context = optarg;
    } else if (strcmp(option->name, "json") == 0) {
        client.json = true;
    } else if (strcmp(option->name, "no-color") == 0) {
        client.color = false;
    } else if (strcmp(option->name, "output") == 0) {
        if (strcmp(optarg, "json") != 0)
            return cmd_usage(cmd, "--output takes json, not \"%s\"", optarg);
        client.json = true;
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
static int cmd_take_own(const struct cmd *cmd, const struct cmd_option *option, size_t index,
                        struct cmd_args *args)
{
    args->values[index] = option->value ? optarg : "";
    if (!option->value || strcmp(option->value, "KEY=VALUE") != 0)
        return -1;
    if (args->repeated_count == CMD_REPEATED_MAX)
        return cmd_usage(cmd, "--%s is given more than %d times", option->name, CMD_REPEATED_MAX);
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

    cmd_getopt_tables(cmd, longs, letters);
    optind = 0; /* GNU: start anew, also inside a second argv */
    opterr = 0;
    while ((found = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
        if (found == ':')
            return cmd_usage(cmd, "%s needs a value", argv[optind - 1]);
        option = cmd_find_option(cmd, found, &index);
        if (found == '?' || !option)
            return cmd_unknown_option(cmd, argv[optind - 1]);
        if (!args || !cmd || index >= CMD_OPTIONS_MAX || option != &cmd->options[index])
            code = cmd_take_common(cmd, option);
        else
            code = cmd_take_own(cmd, option, index, args);
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

/* word NULL: one is missing. With the usage where that is short. */
static int cmd_wrong_operand(const struct cmd *cmd, const char *word)
{
    const char *synopsis = cmd->synopsis, *quote = word ? "\"" : "";
    bool brief = strlen(synopsis) <= USAGE_SHORT;

    return cmd_usage(cmd, "%s argument%s%s%s%s%s%s%s%s", word ? "unexpected" : "missing",
                     word ? " " : "", quote, word ? word : "", quote,
                     brief ? ". Usage: trainctl " : "", brief ? cmd->name : "",
                     brief && *synopsis ? " " : "", brief ? synopsis : "");
}

int cmd_parse(struct cmd_args *args, int argc, char **argv)
{
    memset(args, 0, sizeof *args);
    args->cmd = cmd_find(argv[0]);
    int code = cmd_parse_options(args->cmd, args, argc, argv);
    if (code >= 0)
        return code;
    if (argc - optind < args->cmd->operands[0])
        return cmd_wrong_operand(args->cmd, NULL);
    if (argc - optind > args->cmd->operands[1])
        return cmd_wrong_operand(args->cmd, argv[optind + args->cmd->operands[1]]);
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

static void cmd_print_option(FILE *out, const struct cmd_option *option)
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
    fputs("\nOptions:\n", out);
    for (size_t i = 0; (option = cmd_option_at(cmd, i)); i++)
        cmd_print_option(out, option);
    fprintf(out, "\nExample:\n  %s\n", cmd->example);
}

void cmd_print_overview(FILE *out)
{
    const struct cmd_option *option;
    char label[64];

    fputs("usage: trainctl [--server ADDRESS] [--json] COMMAND ...\n", out);
    for (size_t i = 0; i < COUNT(commands); i++) {
        if (cmd_title(commands[i]->name))
            fprintf(out, "\n%s:\n", cmd_title(commands[i]->name));
        snprintf(label, sizeof label, "  %-11s ", commands[i]->name);
        print_wrapped(out, label, 14, commands[i]->help);
    }
    fputs("\nOptions:\n", out);
    for (size_t i = 0; (option = cmd_common_at(i)); i++)
        cmd_print_option(out, option);
    fputs("\nSee \"trainctl COMMAND --help\" and man trainctl.\n", out);
}

int cmd_fail_json(const struct error *e, json_t *errors)
{
    const struct error_type *type = error_type(e->code);
    json_t *line = json_pack("{s:s+, s:s, s:s, s:i}", "type", "urn:traind:problem:", type->slug,
                             "title", type->title, "detail", e->text, "status", type->http_status);

    if (errors)
        json_object_set_new(line, "errors", errors);
    print_json_line(stderr, line);
    json_decref(line);
    return type->exit_code;
}

int cmd_fail(const struct error *e)
{
    const struct error_type *type = error_type(e->code);

    fflush(stdout);
    if (client.json && api_problem()) {
        print_json_line(stderr, api_problem());
    } else if (client.json) {
        cmd_fail_json(e, NULL);
    } else {
        char *text = text_escape_copy(api_error_words(e), "\n\t");
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
    error_set(&e, ERR_USAGE, "%s\n  See \"trainctl %s%s--help\"", words, cmd ? cmd->name : "",
              cmd ? " " : "");
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
        text_suggest(&near, name_at(i));
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

bool cmd_whole(const char *text, const char **end, long long *number)
{
    const char *digits = text + (*text == '-');
    char *behind;

    errno = 0;
    *number = strtoll(text, &behind, 10);
    *end = behind;
    return *digits >= '0' && *digits <= '9' && (*digits != '0' || behind == text + 1) && !errno;
}

bool cmd_decimal(const char *text, const char **end, double *number)
{
    bool plain = *text == '.' || (*text >= '0' && *text <= '9');
    char *behind;

    errno = 0;
    *number = strtod(text, &behind);
    *end = behind;
    return plain && text[1] != 'x' && text[1] != 'X' && behind != text && !errno;
}

char *cmd_query(const struct cmd_args *args, const char *path, const char *const *options,
                size_t count)
{
    struct buffer query = BUFFER((size_t)8 << 20);

    buffer_printf(&query, "%s", path);
    for (size_t i = 0; i < count; i++) {
        const char *value = cmd_value(args, options[i]);
        char *escaped = value ? curl_easy_escape(NULL, value, 0) : NULL;
        if (escaped)
            buffer_printf(&query, "%c%s=%s", strchr(query.data, '?') ? '&' : '?',
                          strcmp(options[i], "find") == 0 ? "q" : options[i], escaped);
        curl_free(escaped);
    }
    return must_alloc(buffer_take(&query, NULL));
}

int cmd_show_answer(json_t *answer, void (*print)(const json_t *answer))
{
    if (client.json)
        print_json(answer);
    else
        print(answer);
    json_decref(answer);
    return 0;
}

int cmd_tell(json_t *answer, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (client.json)
        print_json(answer);
    else
        vprintf(format, args);
    va_end(args);
    json_decref(answer);
    return 0;
}

int cmd_show_path(const char *path, void (*print)(const json_t *answer))
{
    struct error e;
    json_t *answer;

    return api_get(path, &answer, &e) < 0 ? cmd_fail(&e) : cmd_show_answer(answer, print);
}

int cmd_show_document(const struct cmd_args *args)
{
    return cmd_show_path(args->cmd->document, args->cmd->print);
}

int cmd_number(const char *text, const char *option, long minimum, long maximum, long *number,
               struct error *e)
{
    const char *end;
    long long value;

    if (!cmd_whole(text, &end, &value) || *end || value < minimum || value > maximum)
        return error_set(e, ERR_USAGE, "--%s must be a number from %ld to %ld, not \"%s\"", option,
                         minimum, maximum, text);
    *number = (long)value;
    return 0;
}

bool cmd_agrees(const char *question)
{
    char line[80] = "";

    fprintf(stderr, "%s [y/N] ", question);
    return fgets(line, sizeof line, stdin) && (*line == 'y' || *line == 'Y');
}

int cmd_duration(const struct cmd_args *args, const char *option, double *seconds, struct error *e)
{
    static const struct {
        const char *unit;
        double seconds;
    } units[] = {
        {"s",   1    },
        {"m",   60   },
        {"min", 60   },
        {"h",   3600 },
        {"d",   86400}
    };
    const char *text = cmd_value(args, option);
    const char *end;
    double number;

    if (!text)
        return 0;
    bool good = cmd_decimal(text, &end, &number) && number > 0 && isfinite(number);
    for (size_t i = 0; i < COUNT(units); i++)
        if (good && strcmp(end, units[i].unit) == 0) {
            *seconds = number * units[i].seconds;
            return 0;
        }
    return error_set(e, ERR_USAGE,
                     "--%s must be a time with its unit, e.g. 90min, 2h or 90d, not \"%s\"", option,
                     text);
}
