#include "common/system/command_line.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

#define LONG_BASE    1000 /* getopt's value of a long option is this plus its index */
#define HELP_COLUMN  27
#define HELP_COLUMNS 80

static const struct command_option help_alone[] = {
    {.name = "help",            .letter = '?', .help = "show this help", .kind = OPTION_TAKEN, .ends = true},
    {0}
};

const struct command_option *command_line_option(const struct command_line *line, size_t i)
{
    const struct command_option *own = line->options;
    const struct command_option *common = line->common ? line->common : help_alone;

    for (; own && own->name; own++)
        if (i-- == 0)
            return own;
    for (; common->name && i; common++)
        i--;
    if (!common->name)
        return NULL;
    for (own = line->options; own && own->name; own++)
        if (strcmp(own->name, common->name) == 0)
            return NULL;
    return common;
}

static void command_line_tables(const struct command_line *line, struct option *longs,
                                char *letters)
{
    const struct command_option *o;

    if (line->stops)
        *letters++ = '+';
    *letters++ = ':'; /* makes getopt distinguish a missing value from an unknown option */
    for (size_t i = 0; (o = command_line_option(line, i)); i++) {
        longs[i] = (struct option){o->name, o->value ? required_argument : no_argument, NULL,
                                   LONG_BASE + (int)i};
        if (o->letter)
            *letters++ = o->letter;
        if (o->letter && o->value)
            *letters++ = ':';
    }
    *letters = '\0';
}

static int command_line_unknown(const struct command_line *line, const char *word, struct error *e)
{
    const struct command_option *o;
    char name[64];

    if (optopt >= LONG_BASE && (o = command_line_option(line, (size_t)(optopt - LONG_BASE))))
        return error_set(e, ERR_USAGE, "--%s takes no value", o->name);
    if (strncmp(word, "--", 2) != 0)
        return error_set(e, ERR_USAGE, "there is no option -%c%s", optopt ? optopt : word[1],
                         optopt == 'v' ? "; did you mean -V, --version?" : "");
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
    struct suggest near = {.word = name};
    for (size_t i = 0; (o = command_line_option(line, i)); i++)
        text_suggest(&near, o->name);
    return error_set(e, ERR_USAGE, "there is no option --%s%s%s%s", name,
                     near.best ? "; did you mean --" : "", near.best ? near.best : "",
                     near.best ? "?" : "");
}

static int command_line_store(const struct command_option *o, const char *text, void *field,
                              struct error *e)
{
    char *end;
    long long number;

    switch (o->kind) {
    case OPTION_TAKEN:
        return o->parse ? o->parse(o, text, field, e) : 0;
    case OPTION_FLAG:
        *(bool *)field = true;
        return 0;
    case OPTION_TEXT:
        *(const char **)field = text;
        return 0;
    default:
        errno = 0;
        number = strtoll(text, &end, 10);
        if (errno || end == text || *end || number < o->min || number > o->max)
            return error_set(e, ERR_USAGE, "--%s %s: expected a whole number from %lld to %lld",
                             o->name, text, (long long)o->min, (long long)o->max);
        if (o->kind == OPTION_INT)
            *(int *)field = (int)number;
        else
            *(int64_t *)field = number;
        return 0;
    }
}

static int command_line_check(const struct command_line *line, int argc, char **argv, char *fields,
                              struct error *e)
{
    const char **operand = (const char **)(void *)(fields + line->operand_offset);

    if (line->takes_operands)
        return 0;
    if (line->operand && optind < argc)
        *operand = argv[optind++];
    if (optind < argc)
        return error_set(e, ERR_USAGE, "unexpected argument \"%s\"", argv[optind]);
    if (line->operand && !*operand)
        return error_set(e, ERR_USAGE, "%s is missing", line->operand);
    for (const struct command_option *o = line->options; o->name; o++)
        if (o->required && !*(const char **)(void *)(fields + o->offset))
            return error_set(e, ERR_USAGE, "--%s is missing", o->name);
    return line->check ? line->check(fields, e) : 0;
}

int command_line_parse(const struct command_line *line, int argc, char **argv, void *fields,
                       const struct command_option **ended, struct error *e)
{
    struct option longs[COMMAND_LINE_OPTIONS_MAX + 1] = {0};
    char letters[3 * COMMAND_LINE_OPTIONS_MAX];
    int found, status = 0;

    command_line_tables(line, longs, letters);
    *ended = NULL;
    optind = 0; /* restarts GNU getopt, also for another argv */
    opterr = 0;
    while (optopt = 0, (found = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
        const char *word = argv[optind - 1];
        const struct command_option *o = NULL;
        size_t i = 0;
        if (found == ':')
            return error_set(e, ERR_USAGE, "%s needs a value", word);
        if (found != '?' || strcmp(word, "-?") == 0)
            while ((o = command_line_option(line, i)) && found != LONG_BASE + (int)i &&
                   found != o->letter)
                i++;
        if (!o)
            return command_line_unknown(line, word, e);
        status = line->take ? line->take(o, i, optarg, fields, e)
                            : command_line_store(o, optarg, (char *)fields + o->offset, e);
        if (status < 0)
            return status;
        if (o->ends) {
            *ended = o;
            return optind;
        }
    }
    status = command_line_check(line, argc, argv, fields, e);
    return status ? status : optind;
}

int command_line_fail(const struct command_line *line, const struct error *e)
{
    fprintf(stderr, "%s: %s\n  See \"%s --help\"\n", line->program, e->text, line->program);
    return error_type(e->code)->exit_code;
}

void command_line_print_options(FILE *out, int columns, const struct command_line *line)
{
    const struct command_option *o;
    char name[64], label[80];

    for (size_t i = 0; (o = command_line_option(line, i)); i++) {
        snprintf(name, sizeof name, "--%s%s%s", o->name, o->value ? " " : "",
                 o->value ? o->value : "");
        if (o->letter)
            snprintf(label, sizeof label, "  -%c, %-20s ", o->letter, name);
        else
            snprintf(label, sizeof label, "      %-20s ", name);
        text_wrap(out, columns, label, HELP_COLUMN, o->help);
    }
}

int command_line_read(const struct command_line *line, int argc, char **argv, void *fields)
{
    const struct command_option *ended;
    struct error e;

    if (command_line_parse(line, argc, argv, fields, &ended, &e) < 0)
        return command_line_fail(line, &e);
    if (ended && strcmp(ended->name, "help") == 0) {
        printf("%s\n", line->usage);
        text_wrap(stdout, HELP_COLUMNS, "", 0, line->doc);
        putchar('\n');
        command_line_print_options(stdout, HELP_COLUMNS, line);
        if (line->print_more)
            line->print_more(stdout);
        return 0;
    }
    if (ended && strcmp(ended->name, "version") == 0) {
        puts(line->version);
        return 0;
    }
    return -1;
}
