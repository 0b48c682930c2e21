#include "client/complete.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/context.h"
#include "client/job.h"
#include "client/views/print.h"
#include "common/job/job_options.h"
#include "common/job/recipe/preset.h"
#include "common/net/arch.h"
#include "common/run/attempt.h"

#define HURRY_MS    700
#define JOBS_MAX    100
#define PLAIN_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.,:+=@/"

/* The word at the cursor. Its first `kept` bytes ("--state=", "running,") are repeated in each
 * candidate. */
struct cursor {
    const char *word;
    size_t kept;
    bool list;   /* a list whose items are separated by commas */
    size_t item; /* start of the list, whose items are not offered again */
};

static bool complete_has_item(const struct cursor *c, const char *candidate)
{
    size_t length = strlen(candidate);

    for (size_t i = c->item; i < c->kept; i += strcspn(c->word + i, ",") + 1)
        if (strncmp(c->word + i, candidate, length) == 0 && c->word[i + length] == ',')
            return true;
    return false;
}

static void complete_offer(const struct cursor *c, const char *candidate, const char *remark)
{
    const char *typed = c->word + c->kept;

    if (strncmp(candidate, typed, strlen(typed)) != 0 || complete_has_item(c, candidate))
        return;
    printf("%.*s%s\t%s\n", (int)c->kept, c->word, candidate, remark ? remark : "");
}

static void complete_offer_options(const struct cursor *c, const struct cmd *cmd)
{
    const struct command_option *option;
    char text[64];

    for (size_t i = 0; (option = cmd_option_at(cmd, i)); i++) {
        snprintf(text, sizeof text, "--%s", option->name);
        complete_offer(c, text, option->help);
    }
}

static void complete_offer_words(const struct cursor *c, const char *words, size_t length)
{
    char word[64];

    for (size_t i = 0; i < length;) {
        size_t end = strcspn(words + i, "|: ");
        snprintf(word, sizeof word, "%.*s", (int)(end < sizeof word ? end : sizeof word - 1),
                 words + i);
        if (*word)
            complete_offer(c, word, "");
        i += strcspn(words + i, "| ") + 1;
    }
}

static void complete_offer_names(const struct cursor *c, const char *name_at(size_t))
{
    for (size_t i = 0; name_at(i); i++)
        complete_offer(c, name_at(i), "");
}

static void complete_offer_jobs(const struct cursor *c)
{
    char id[32], remark[256];
    struct error ignored;
    const json_t *item;
    json_t *answer;
    struct job job;
    size_t i;

    api_hurry(HURRY_MS);
    if (api_call("GET", &answer, &ignored, "/v1/jobs?limit=%d", JOBS_MAX))
        return;
    json_array_foreach (json_object_get(answer, "jobs"), i, item) {
        job_read(item, &job);
        snprintf(id, sizeof id, "%ld", job.id);
        snprintf(remark, sizeof remark, "%s %.100s", job.state, job.name);
        complete_offer(c, id, remark);
        if (c->word[c->kept] && *job.name && !job.name[strspn(job.name, PLAIN_CHARS)])
            complete_offer(c, job.name, id);
    }
    json_decref(answer);
    if (c->word[c->kept])
        complete_offer(c, "latest", "the newest job");
}

static void complete_offer_list(const struct cursor *c, const char *path, const char *list,
                                const char *key, const char *remark)
{
    struct error ignored;
    json_t *answer;
    const json_t *item;
    size_t i;

    api_hurry(HURRY_MS);
    if (api_get_pages(path, list, &answer, &ignored))
        return;
    json_array_foreach (json_object_get(answer, list), i, item) {
        if (json_is_null(json_object_get(item, key)))
            continue;
        char *word = print_value(json_object_get(item, key));
        complete_offer(c, word, json_string_value(json_object_get(item, remark)));
        free(word);
    }
    json_decref(answer);
}

static void complete_offer_contexts(const struct cursor *c)
{
    struct error ignored;
    json_t *all = contexts_read(&ignored), *context;
    const char *name;

    json_object_foreach (json_object_get(all, "contexts"), name, context)
        complete_offer(c, name, json_string_value(json_object_get(context, "server")));
    json_decref(all);
}

static void complete_offer_choices(const struct cursor *c, const char *pointer)
{
    const struct job_option *option = job_option_find(pointer);
    const char *choice;

    for (size_t i = 0; option && (choice = job_option_choice(option, i)); i++)
        complete_offer(c, choice, "");
    if (option && option->type == JOB_OPTION_BOOLEAN)
        complete_offer_words(c, "true|false", strlen("true|false"));
}

static void complete_offer_presets(const struct cursor *c)
{
    json_t *presets = preset_list(), *preset;
    size_t i;

    json_array_foreach (presets, i, preset)
        complete_offer(c, json_string_value(json_object_get(preset, "name")),
                       json_string_value(json_object_get(preset, "description")));
    json_decref(presets);
}

/* Completes KEY=VALUE: keys as lr.base=, or after a slash as /lr/base=; then the allowed values of
 * a key. */
static void complete_offer_keys(struct cursor c)
{
    const char *typed = c.word + c.kept, *equals = strchr(typed, '=');
    const struct job_option *option;
    char key[128];

    for (size_t i = 0; (option = job_option_at(i)); i++) {
        snprintf(key, sizeof key, "%s=", option->pointer + (*typed != '/'));
        for (char *at = key; *typed != '/' && (at = strchr(at, '/'));)
            *at = '.';
        if (!equals) {
            complete_offer(&c, key, option->help);
        } else if (strncmp(key, typed, (size_t)(equals + 1 - typed)) == 0 &&
                   key[equals + 1 - typed] == '\0') {
            c.kept = (size_t)(equals + 1 - c.word);
            if (strcmp(option->pointer, "/preset") == 0)
                complete_offer_presets(&c);
            else
                complete_offer_choices(&c, option->pointer);
            return;
        }
    }
}

static void complete_offer_kind(struct cursor c, const char *kind, size_t length)
{
    const char *comma = strrchr(c.word + c.kept, ',');
    struct cursor part = c; /* after the last comma */

    part.item = c.kept;
    if (comma)
        part.kept = (size_t)(comma + 1 - c.word);

    if (strncmp(kind, "job", length) == 0)
        complete_offer_jobs(&c);
    else if (strncmp(kind, "file", length) == 0)
        puts(":file");
    else if (strncmp(kind, "state", length) == 0)
        complete_offer_names(&part, cmd_state_at);
    else if (strncmp(kind, "metric", length) == 0)
        complete_offer_names(&part, cmd_metric_at);
    else if (strncmp(kind, "event", length) == 0)
        complete_offer_names(&part, event_kind_at);
    else if (strncmp(kind, "role", length) == 0)
        complete_offer_names(&c, cmd_role_at);
    else if (strncmp(kind, "preset", length) == 0)
        complete_offer_presets(&c);
    else if (strncmp(kind, "key", length) == 0)
        complete_offer_keys(c);
    else if (strncmp(kind, "node", length) == 0)
        complete_offer_list(&c, "/v1/nodes?limit=1000", "nodes", "name", "verdict");
    else if (strncmp(kind, "tag", length) == 0)
        complete_offer_list(&part, "/v1/jobs?group=tag&limit=200", "groups", "value", "");
    else if (strncmp(kind, "sweep", length) == 0)
        complete_offer_list(&c, "/v1/sweeps?limit=1000", "sweeps", "id", "name");
    else if (strncmp(kind, "context", length) == 0)
        complete_offer_contexts(&c);
    else if (strncmp(kind, "token", length) == 0)
        complete_offer_list(&c, "/v1/tokens", "tokens", "id", "name");
    else if (*kind == '/')
        complete_offer_choices(&c, kind);
    else if (memchr(kind, '|', length))
        complete_offer_words(c.list ? &part : &c, kind, length);
}

static void complete_offer_kinds(struct cursor c, const char *kinds)
{
    while (kinds && *kinds) {
        size_t length = strcspn(kinds, " ,");
        complete_offer_kind(c, kinds, length);
        if (kinds[length] != ' ')
            break;
        kinds += length + 1;
    }
}

/* Completes what follows the first word of a command, as given after its colon. */
static void complete_offer_behind_word(struct cursor c, const char *words, const char *first)
{
    size_t length = strlen(first);

    for (const char *at = words; *at && *at != ' ';) {
        size_t end = strcspn(at, "| ");
        if (end > length && strncmp(at, first, length) == 0 && at[length] == ':')
            complete_offer_kind(c, at + length + 1, end - length - 1);
        at += end + (at[end] == '|');
    }
}

struct place {
    const char *command;
    const struct cmd *cmd;
    const struct command_option *option; /* the next word is its value */
    const char *operand;
    int operands;
    bool no_options;
};

static const struct command_option *complete_find_option(const struct cmd *cmd, const char *word)
{
    const struct command_option *option;
    bool is_long = strncmp(word, "--", 2) == 0;
    size_t length = is_long ? strcspn(word + 2, "=") : 0;

    for (size_t i = 0; (option = cmd_option_at(cmd, i)); i++)
        if (is_long ? strlen(option->name) == length && strncmp(option->name, word + 2, length) == 0
                    : option->letter == word[1] && !word[2])
            return option;
    return NULL;
}

static void complete_pass(struct place *p, const char *word)
{
    if (p->option) {
        if (p->option == cmd_common_at(0)) /* --server */
            client.server = word;
        p->option = NULL;
    } else if (!p->no_options && strcmp(word, "--") == 0) {
        p->no_options = true;
    } else if (!p->no_options && word[0] == '-' && word[1]) {
        const struct command_option *option = complete_find_option(p->cmd, word);
        if (option && option->value && !strchr(word, '='))
            p->option = option;
        else if (option == cmd_common_at(0))
            client.server = strchr(word, '=') + 1;
    } else if (!p->command) {
        p->command = word;
        p->cmd = cmd_find(word);
    } else {
        p->operands++;
        p->operand = p->operand ? p->operand : word;
    }
}

static void complete_offer_operand(struct cursor c, const struct place *p)
{
    const char *kinds = p->cmd->completion;
    bool words = kinds && strcspn(kinds, "|") < strcspn(kinds, " ");

    if (p->operands >= p->cmd->operands[1])
        return;
    if (p->operand && words) {
        if (p->operands == 1)
            complete_offer_behind_word(c, kinds, p->operand);
        return;
    }
    for (int i = 0; kinds && i < p->operands && strchr(kinds, ','); i++)
        kinds = strchr(kinds, ',') + 1;
    complete_offer_kinds(c, kinds);
}

int complete(int argc, char **argv)
{
    struct place p = {0};
    struct cursor c = {.word = argc > 0 ? argv[argc - 1] : ""};

    for (int i = 0; i + 1 < argc; i++)
        complete_pass(&p, argv[i]);
    server_choose();
    if (!p.option && !p.no_options && strncmp(c.word, "--", 2) == 0 && strchr(c.word, '=')) {
        p.option = complete_find_option(p.cmd, c.word);
        c.kept = (size_t)(strchr(c.word, '=') + 1 - c.word);
        if (!p.option)
            return 0;
    }
    c.list = p.option && p.option->value && strchr(p.option->value, ',');
    if (p.option)
        complete_offer_kinds(c, p.option->completion);
    else if (!p.no_options && c.word[0] == '-')
        complete_offer_options(&c, p.cmd);
    else if (!p.command || (strcmp(p.command, "help") == 0 && !p.operand))
        for (size_t i = 0; cmd_at(i); i++)
            complete_offer(&c, cmd_at(i)->name, cmd_at(i)->help);
    else if (p.cmd)
        complete_offer_operand(c, &p);
    if (!p.option && !p.command && (p.no_options || c.word[0] != '-'))
        complete_offer(&c, "help", "show a command's help");
    return 0;
}

extern const char
    *const cmd_completions[][2]; /* shell, script; generated by etc/completions/embed.sh */

static const char *complete_shell_at(size_t i)
{
    return cmd_completions[i][0];
}

static int complete_print_script(const struct cmd_args *args)
{
    const char *shell = args->operands[0];
    struct error e;

    if (cmd_word(shell, "script for the shell", complete_shell_at, &e))
        return cmd_fail(&e);
    for (size_t i = 0; cmd_completions[i][0]; i++)
        if (strcmp(cmd_completions[i][0], shell) == 0)
            fputs(cmd_completions[i][1], stdout);
    return 0;
}

/* clang-format off */
const struct cmd cmd_completion_entry = {
    .name = "completion", .synopsis = "bash|zsh|fish",
    .help = "print a completion script, e.g. source <(trainctl completion bash)", .example = "trainctl completion bash",
    .run = complete_print_script, .completion = "bash|zsh|fish", .operands = {1, 1},
};
/* clang-format on */
