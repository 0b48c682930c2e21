#include "client/cmd.h"

#include <curl/curl.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/api.h"
#include "client/job.h"
#include "client/views/print.h"
#include "common/buffer.h"
#include "common/job/job_state.h"
#include "common/json.h"
#include "common/number.h"
#include "common/run/attempt.h"
#include "common/text.h"
#include "common/xalloc.h"
#include "config.h"

/* clang-format off */
static const struct command_option common_options[] = {
    {.name = "server", .letter = 's', .value = "ADDRESS", .help = "the daemon: http://HOST:PORT, https://HOST:PORT, HOST:PORT or unix:PATH (also TRAINCTL_SERVER)"},
    {.name = "context", .value = "NAME", .help = "use the daemon of this context (also TRAINCTL_CONTEXT; trainctl context lists them)", .completion = "context"},
    {.name = "json", .letter = 'j', .help = "print JSON"},
    {.name = "no-color", .help = "do not use colours (also NO_COLOR)"},
    {.name = "help", .letter = 'h', .help = "show this help", .ends = true},
    {.name = "version", .letter = 'V', .help = "show the version", .ends = true},
    {.name = "output", .letter = 'o', .value = "json", .help = "the same as --json", .completion = "json|"}, /* last, because commands may define their own */
    {0},
};
/* clang-format on */

#define CMD_ADDRESS(name) &cmd_##name##_entry,
static const struct cmd *const commands[] = {CMD_ALL(CMD_ADDRESS)};

/* Group titles, each shown above this command, in the help and in man/trainctl.1. */
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

const struct command_option *cmd_common_at(size_t i)
{
    return cmd_option_at(NULL, i);
}

static struct command_line cmd_line(const struct cmd *cmd)
{
    return (struct command_line){.options = cmd ? cmd->options : NULL, .common = common_options};
}

const struct command_option *cmd_option_at(const struct cmd *cmd, size_t i)
{
    struct command_line line = cmd_line(cmd);

    return command_line_option(&line, i);
}

static int cmd_take_option(const struct command_option *option, size_t i, const char *text,
                           void *fields, struct error *e)
{
    struct cmd_args *args = fields;

    if (args->cmd && option == &args->cmd->options[i]) {
        args->values[i] = option->value ? text : "";
        if (!option->value || strcmp(option->value, "KEY=VALUE") != 0)
            return 0;
        if (args->repeated_count == CMD_REPEATED_MAX)
            return error_set(e, ERR_USAGE, "--%s was given more than %d times", option->name,
                             CMD_REPEATED_MAX);
        args->repeated[args->repeated_count++] = text;
    } else if (strcmp(option->name, "server") == 0) {
        client.server = text;
    } else if (strcmp(option->name, "context") == 0) {
        client.context = text;
    } else if (strcmp(option->name, "no-color") == 0) {
        client.color = false;
    } else if (strcmp(option->name, "json") == 0) {
        client.json = true;
    } else if (strcmp(option->name, "output") == 0) {
        if (strcmp(text, "json") != 0)
            return error_set(e, ERR_USAGE, "--output takes json, not \"%s\"", text);
        client.json = true;
    }
    return 0;
}

/* Returns -1 to continue with the operands from *first on, or the exit code. */
static int cmd_parse_options(struct cmd_args *args, int argc, char **argv, int *first)
{
    struct command_line line = cmd_line(args->cmd);
    const struct command_option *ended;
    struct error e;

    line.takes_operands = true;
    line.stops = !args->cmd;
    line.take = cmd_take_option;
    *first = command_line_parse(&line, argc, argv, args, &ended, &e);
    if (*first < 0)
        return cmd_usage(args->cmd, "%s", e.text);
    if (!ended)
        return -1;
    if (strcmp(ended->name, "version") == 0)
        puts("trainctl " PACKAGE_VERSION);
    else if (args->cmd)
        cmd_print_help(stdout, args->cmd);
    else
        cmd_print_overview(stdout);
    return 0;
}

int cmd_parse_common(int argc, char **argv, int *code)
{
    struct cmd_args none = {0};
    int first;

    *code = cmd_parse_options(&none, argc, argv, &first);
    if (*code >= 0)
        return -1;
    if (first < argc)
        return first;
    cmd_print_overview(stderr);
    *code = error_type(ERR_USAGE)->exit_code;
    return -1;
}

#define USAGE_SHORT 60

/* word NULL: an operand is missing. Shows the usage if it is short. */
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
    int first;

    *args = (struct cmd_args){.cmd = cmd_find(argv[0])};
    int code = cmd_parse_options(args, argc, argv, &first);
    if (code >= 0)
        return code;
    if (argc - first < args->cmd->operands[0])
        return cmd_wrong_operand(args->cmd, NULL);
    if (argc - first > args->cmd->operands[1])
        return cmd_wrong_operand(args->cmd, argv[first + args->cmd->operands[1]]);
    for (int i = first; i < argc; i++)
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

static void cmd_print_options(FILE *out, const struct cmd *cmd)
{
    struct command_line line = cmd_line(cmd);

    fputs("\nOptions:\n", out);
    command_line_print_options(out, print_columns(), &line);
}

void cmd_print_help(FILE *out, const struct cmd *cmd)
{
    char label[64];

    snprintf(label, sizeof label, "usage: trainctl %s%s", cmd->name, *cmd->synopsis ? " " : "");
    print_wrapped(out, label, 16, cmd->synopsis);
    fputc('\n', out);
    print_wrapped(out, "", 0, cmd->help);
    cmd_print_options(out, cmd);
    fprintf(out, "\nExample:\n  %s\n", cmd->example);
}

void cmd_print_overview(FILE *out)
{
    char label[64];

    fputs("usage: trainctl [--server ADDRESS] [--json] COMMAND ...\n", out);
    for (size_t i = 0; i < COUNT(commands); i++) {
        if (cmd_title(commands[i]->name))
            fprintf(out, "\n%s:\n", cmd_title(commands[i]->name));
        snprintf(label, sizeof label, "  %-11s ", commands[i]->name);
        print_wrapped(out, label, 14, commands[i]->help);
    }
    cmd_print_options(out, NULL);
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

/* ---- values from tables */

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
    bool good = number_read(text, &end, &number) && number > 0 && isfinite(number);
    for (size_t i = 0; i < COUNT(units); i++)
        if (good && strcmp(end, units[i].unit) == 0) {
            *seconds = number * units[i].seconds;
            return 0;
        }
    return error_set(e, ERR_USAGE,
                     "--%s must be a time with its unit, e.g. 90min, 2h or 90d, not \"%s\"", option,
                     text);
}

#define SEARCH_ITEMS 1000

/* A kind of object with ids and names; GET path lists the newest first. */
struct id_kind {
    const char *what, *path, *list;
    const char *filter;
};
static const struct id_kind jobs = {"job", "/v1/jobs", "jobs", "&name="};
static const struct id_kind sweeps = {"sweep", "/v1/sweeps", "sweeps", ""};

int cmd_id(const char *text, const char *what, const char *list, long *id, struct error *e)
{
    const char *end;
    long long number;

    if (!cmd_whole(text, &end, &number) || *end || number < 1)
        return error_set(e, ERR_USAGE, "\"%s\" is not the id of a %s: see \"trainctl %s\"", text,
                         what, list);
    *id = (long)number;
    return 0;
}

/* Finds the first item with this name; 0: none. ERR_CONFLICT if it and another are both active. */
static int cmd_id_of_name(const struct id_kind *kind, const json_t *items, const char *name,
                          long *id, struct error *e)
{
    const json_t *item;
    bool active = false;
    size_t i;

    *id = 0;
    json_array_foreach (items, i, item) {
        struct job job = {.state = json_get_text(item, "state", "")};
        if (strcmp(json_get_text(item, "name", ""), name) != 0)
            continue;
        if (active && !job_ended(&job))
            return error_set(e, ERR_CONFLICT,
                             "%ss %ld and %lld are both named \"%s\" and have not ended: use an id",
                             kind->what, *id, json_get_integer(item, "id", 0), name);
        active = active || (!*id && !job_ended(&job));
        *id = *id ? *id : (long)json_get_integer(item, "id", 0);
    }
    return 0;
}

static int cmd_find_id(const struct id_kind *kind, const char *name, const char *list, long *id,
                       struct error *e)
{
    bool latest = strcmp(name, "latest") == 0;
    char *escaped = curl_easy_escape(NULL, name, 0), path[1024];
    json_t *answer;

    snprintf(path, sizeof path, "%s?limit=%d%s%s", kind->path, latest ? 1 : SEARCH_ITEMS,
             latest ? "" : kind->filter, latest || !*kind->filter ? "" : escaped);
    curl_free(escaped);
    if (api_get(path, &answer, e))
        return -(int)e->code;
    const json_t *items = json_object_get(answer, kind->list);
    int status = latest ? 0 : cmd_id_of_name(kind, items, name, id, e);
    if (latest)
        *id = (long)json_get_integer(json_array_get(items, 0), "id", 0);
    if (!status && !*id)
        status = latest ? error_set(e, ERR_NOT_FOUND, "there are no %ss yet", kind->what)
                        : error_set(e, ERR_NOT_FOUND, "no %s is named \"%s\": see \"trainctl %s\"",
                                    kind->what, name, list);
    json_decref(answer);
    return status;
}

/* Text that consists only of digits, signs and blanks is not a name. */
static int cmd_read_id(const struct id_kind *kind, const char *text, const char *list, long *id,
                       struct error *e)
{
    return text[strspn(text, "0123456789+- \t")] ? cmd_find_id(kind, text, list, id, e)
                                                 : cmd_id(text, kind->what, list, id, e);
}

int cmd_job_id(const char *text, long *id, struct error *e)
{
    return cmd_read_id(&jobs, text, "list", id, e);
}

int cmd_sweep_id(const char *text, long *id, struct error *e)
{
    return cmd_read_id(&sweeps, text, "sweep list", id, e);
}

int cmd_job_ids(const struct cmd_args *args, long *ids, struct error *e)
{
    int status = 0;

    for (int i = 0; i < args->operand_count && !status; i++)
        status = cmd_job_id(args->operands[i], &ids[i], e);
    return status;
}

int cmd_show_of_job(const struct cmd_args *args)
{
    struct error e;
    char path[64];
    long id;

    if (cmd_job_id(args->operands[0], &id, &e) < 0)
        return cmd_fail(&e);
    snprintf(path, sizeof path, "/v1/jobs/%ld%s", id, args->cmd->document);
    return cmd_show_path(path, args->cmd->print);
}

int cmd_each_job(const struct cmd_args *args)
{
    struct error e;
    long ids[CMD_OPERANDS_MAX];
    int code = 0;

    if (cmd_job_ids(args, ids, &e) < 0)
        return cmd_fail(&e);
    for (int i = 0; i < args->operand_count; i++)
        if (args->cmd->one(ids[i], &e) < 0)
            code = cmd_fail(&e);
    return code;
}
