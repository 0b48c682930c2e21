#include "daemon/launch/failure_rules.h"

#include <ctype.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/assert_always.h"
#include "common/buffer.h"
#include "common/text.h"
#include "common/run/attempt.h"
#include "common/system/file.h"

#define FILE_BYTES_MAX (256 * 1024)

struct failure_rule {
    char label[FAILURE_LABEL_BYTES];
    enum failure_again again;
    enum failure_drain drain;
    char *notify; /* notice target; NULL: none */
    enum notice_format notify_format;
    char *text; /* of the pattern */
    regex_t pattern;
    bool shipped;
    int64_t count; /* matches since the daemon's start */
};

#define FAILURE_RULES_MAGIC 0xfa117e5au

struct failure_rules {
    unsigned magic;
    struct failure_rule items[FAILURE_RULES_MAX];
    size_t count;
    int64_t unlabelled;
};

/* The built-in rules. Their order matters: a full disk can cause a failure to map memory, and a
 * lost host a connection reset. */
static const char *const rules_shipped =
    "disk-full       -           No space left on device|Disk quota exceeded\n"
    "out-of-memory   no-restart  OUT_OF_MEMORY|oom-kill|oom_kill|Out of memory|Cannot allocate "
    "memory|^(no|out of) memory for\n"
    "bus-error       -           signal 7 \\(SIGBUS|Bus error\n"
    "bad-node        drain       ^host [^ ]+ (no longer answers|does not answer)|"
    "\\[(NODE_FAIL|BOOT_FAIL)\\]|JobLaunchFailure\n"
    "diverged        no-restart  ^diverged at step|of a run that diverged\n"
    "time-limit      -           ^Slurm's job [0-9]+ reached its time limit\n"
    "stalled         -           all ranks wait for each other|does not report while others "
    "wait|no "
    "rank reports any more|mpirun does not end by itself\n"
    "mpi-transport   -           Connection reset by peer|Transport retry count exceeded|"
    "btl_tcp_(frag|endpoint|component)|UCX +ERROR|local QP operation error|MPI_ERR_PROC_FAILED|PML "
    "add procs "
    "failed|TCP connection .*(failed|closed)|lost communication with a remote daemon\n";

static const struct rules_action {
    const char *word;
    enum failure_again again;
    enum failure_drain drain;
} rules_actions[] = {
    {"restart",          FAILURE_AGAIN,       FAILURE_NO_DRAIN      },
    {"no-restart",       FAILURE_NOT_AGAIN,   FAILURE_NO_DRAIN      },
    {"drain",            FAILURE_AGAIN_USUAL, FAILURE_DRAIN_VERIFIED},
    {"drain-unverified", FAILURE_AGAIN_USUAL, FAILURE_DRAIN_LOG     },
};
#define ACTION_COUNT (sizeof rules_actions / sizeof rules_actions[0])

static int rules_bad_action(const char *word, struct error *e)
{
    struct suggest nearest = {.word = word};

    for (size_t i = 0; i < ACTION_COUNT; i++)
        text_suggest(&nearest, rules_actions[i].word);
    return error_set(e, ERR_USAGE,
                     "there is no action \"%.40s\"%s%s%s: the actions are restart, no-restart, "
                     "drain, drain-unverified, notify=TARGET and notify-text=TARGET, with commas "
                     "between, or -",
                     word, nearest.best ? "; did you mean \"" : "",
                     nearest.best ? nearest.best : "", nearest.best ? "\"?" : "");
}

/* Returns 1 if it was a notify action, 0 if not. */
static int rules_take_notify(struct failure_rule *rule, const char *word, struct error *e)
{
    static const char *const prefixes[NOTICE_FORMATS] = {
        [NOTICE_JSON] = "notify=", [NOTICE_TEXT] = "notify-text="};
    struct notice_target target;
    const char *why;

    for (size_t i = 0; i < NOTICE_FORMATS; i++) {
        const char *to = word + strlen(prefixes[i]);
        if (strncmp(word, prefixes[i], strlen(prefixes[i])) != 0)
            continue;
        if (rule->notify)
            return error_set(
                e, ERR_USAGE,
                "a rule has only one target: use notify_rules with \"attempt_failed\" for more");
        if (!notice_target_parse(to, &target, &why))
            return error_set(e, ERR_USAGE, "%.*s \"%.80s\" %s", (int)strlen(prefixes[i]) - 1,
                             prefixes[i], to, why);
        rule->notify = xstrdup(to);
        rule->notify_format = (enum notice_format)i;
        return 1;
    }
    return 0;
}

static int rules_take_action(struct failure_rule *rule, const char *word, struct error *e)
{
    int taken = rules_take_notify(rule, word, e);

    if (taken)
        return taken < 0 ? taken : 0;
    for (size_t i = 0; i < ACTION_COUNT; i++) {
        const struct rules_action *a = &rules_actions[i];
        if (strcmp(a->word, word) != 0)
            continue;
        if ((a->again && rule->again) || (a->drain && rule->drain))
            return error_set(e, ERR_USAGE, "\"%s\" cannot be combined with the action before it",
                             word);
        rule->again = a->again ? a->again : rule->again;
        rule->drain = a->drain ? a->drain : rule->drain;
        return 0;
    }
    return rules_bad_action(word, e);
}

static int rules_read_actions(struct failure_rule *rule, const char *words, struct error *e)
{
    char word[NOTICE_TARGET_BYTES + 16];

    if (strcmp(words, "-") == 0)
        return 0;
    for (const char *at = words; *at; at += strcspn(at, ","), at += *at == ',') {
        snprintf(word, sizeof word, "%.*s", (int)strcspn(at, ","), at);
        if (rules_take_action(rule, word, e))
            return -(int)e->code;
    }
    return 0;
}

static bool rules_is_label(const char *text)
{
    size_t length = strlen(text);

    return length > 0 && length < FAILURE_LABEL_BYTES && text[0] != '-' &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == length &&
           strcmp(text, FAILURE_NO_LABEL) != 0;
}

/* Rejects back references, because their matching time is unbounded. */
static bool rules_refers_back(const char *pattern)
{
    for (const char *c = pattern; *c; c++)
        if (*c == '\\' && c[1] && isdigit((unsigned char)*++c))
            return true;
    return false;
}

static int rules_compile(struct failure_rule *rule, const char *pattern, struct error *e)
{
    char why[128];

    if (!*pattern)
        return error_set(e, ERR_USAGE, "the pattern is missing: LABEL ACTIONS PATTERN");
    if (strlen(pattern) >= FAILURE_PATTERN_BYTES)
        return error_set(e, ERR_USAGE, "the pattern must have at most %d characters",
                         FAILURE_PATTERN_BYTES - 1);
    if (rules_refers_back(pattern))
        return error_set(
            e, ERR_USAGE,
            "the pattern must not contain back references, whose matching time is unbounded");
    int code = regcomp(&rule->pattern, pattern, REG_EXTENDED | REG_NOSUB);
    if (code) {
        regerror(code, &rule->pattern, why, sizeof why);
        return error_set(e, ERR_USAGE,
                         "\"%.80s\" is not a POSIX extended regular expression (regex(7)): %s",
                         pattern, why);
    }
    if (regexec(&rule->pattern, "", 0, NULL, 0) == 0) {
        regfree(&rule->pattern);
        return error_set(e, ERR_USAGE, "the pattern \"%.80s\" matches every line", pattern);
    }
    rule->text = xstrdup(pattern);
    return 0;
}

static bool rules_has(const struct failure_rules *r, const char *label, bool shipped)
{
    for (size_t i = 0; i < r->count; i++)
        if (r->items[i].shipped == shipped && strcmp(r->items[i].label, label) == 0)
            return true;
    return false;
}

/* Returns 0 also for an overridden built-in rule. Modifies line. */
static int rules_read_line(struct failure_rules *r, char *line, bool shipped, struct error *e)
{
    struct failure_rule rule = {.shipped = shipped};
    char *rest = line, *label = strsep(&rest, " \t"), *actions;

    if (rest)
        rest += strspn(rest, " \t");
    actions = rest && *rest ? strsep(&rest, " \t") : NULL;
    if (rest)
        rest += strspn(rest, " \t");
    if (!rules_is_label(label))
        return error_set(
            e, ERR_USAGE,
            "the label must be 1 to %d lower-case letters, digits and hyphens, but not "
            "\"" FAILURE_NO_LABEL "\": \"%.40s\" is not valid",
            FAILURE_LABEL_BYTES - 1, label);
    if (shipped && rules_has(r, label, false))
        return 0;
    if (r->count == FAILURE_RULES_MAX)
        return error_set(e, ERR_USAGE, "there are more than %d rules, including traind's own",
                         FAILURE_RULES_MAX);
    if (!actions)
        return error_set(e, ERR_USAGE, "the actions are missing: LABEL ACTIONS PATTERN");
    if (rules_read_actions(&rule, actions, e) || rules_compile(&rule, rest ? rest : "", e)) {
        free(rule.notify);
        return -(int)e->code;
    }
    snprintf(rule.label, sizeof rule.label, "%s", label);
    r->items[r->count++] = rule;
    return 0;
}

static int rules_read(struct failure_rules *r, char *text, bool shipped, struct buffer *bad)
{
    struct error e;
    int number = 0;

    for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
        number++;
        line += strspn(line, " \t");
        size_t length = strlen(line);
        while (length && isspace((unsigned char)line[length - 1]))
            line[--length] = '\0';
        if (*line && *line != '#' && rules_read_line(r, line, shipped, &e))
            buffer_printf(bad, "%sline %d: %s", bad->bytes ? "; " : "", number, e.text);
    }
    return bad->bytes ? -(int)ERR_USAGE : 0;
}

int failure_rules_load(const char *path, struct failure_rules **out, struct error *e)
{
    struct failure_rules *r = xcalloc(1, sizeof *r);
    r->magic = FAILURE_RULES_MAGIC;
    struct buffer bad = BUFFER(ERROR_TEXT_BYTES - 512);
    char *text = NULL, *shipped = xstrdup(rules_shipped);
    size_t bytes;
    int status = 0;

    *out = NULL;
    if (path && file_read_text(path, FILE_BYTES_MAX, &text, &bytes, e)) {
        error_prefix(e, "failure_rules");
        e->code = ERR_USAGE;
        status = -(int)ERR_USAGE;
    }
    if (text && rules_read(r, text, false, &bad))
        status = error_set(e, ERR_USAGE, "failure_rules: %.200s, %s", path, bad.data);
    buffer_clear(&bad);
    if (!status && rules_read(r, shipped, true, &bad))
        status = error_set(e, ERR_USAGE, "failure_rules: %.200s, followed by traind's own: %s",
                           path ? path : "-", bad.data);
    buffer_clear(&bad);
    free(shipped);
    free(text);
    if (status)
        failure_rules_destroy(r);
    else
        *out = r;
    return status;
}

void failure_rules_destroy(struct failure_rules *r)
{
    if (!r)
        return;
    assert_object_ends(r, FAILURE_RULES_MAGIC);
    for (size_t i = 0; i < r->count; i++) {
        regfree(&r->items[i].pattern);
        free(r->items[i].text);
        free(r->items[i].notify);
    }
    free(r);
}

static const char *rules_last_lines(const char *log)
{
    const char *at = log + strlen(log);

    for (int lines = 0; at > log; at--)
        if (at[-1] == '\n' && at[0] && ++lines == FAILURE_RULES_LINES)
            break;
    return at;
}

static bool rules_fits(const struct failure_rule *rule, const char *text, size_t length)
{
    char line[FAILURE_RULES_LINE_BYTES + 1];

    snprintf(line, sizeof line, "%.*s", (int)(length < sizeof line ? length : sizeof line - 1),
             text);
    return *line && regexec(&rule->pattern, line, 0, NULL, 0) == 0;
}

int failure_rules_find(const struct failure_rules *r, const char *reason, const char *log)
{
    const char *lines = rules_last_lines(log);

    assert_object(r, FAILURE_RULES_MAGIC);
    for (size_t i = 0; i < r->count; i++)
        if (rules_fits(&r->items[i], reason, strlen(reason)))
            return (int)i;
    for (size_t i = 0; i < r->count; i++)
        for (const char *at = lines; *at; at += strcspn(at, "\n"), at += *at == '\n')
            if (rules_fits(&r->items[i], at, strcspn(at, "\n")))
                return (int)i;
    return -1;
}

void failure_rules_apply(const struct failure_rules *r, const char *attempt_dir, struct verdict *v)
{
    assert_object(r, FAILURE_RULES_MAGIC);
    if (v->state != JOB_FAILED || v->goes_on)
        return;
    char *log = attempt_dir ? attempt_read_tail(attempt_dir, "stdout.log") : NULL;
    int i = failure_rules_find(r, v->reason, log ? log : "");

    free(log);
    if (i < 0)
        return;
    memcpy(v->label, r->items[i].label, sizeof v->label);
    v->again = r->items[i].again;
    v->drain = r->items[i].drain;
    snprintf(v->notify, sizeof v->notify, "%s", r->items[i].notify ? r->items[i].notify : "");
    v->notify_format = r->items[i].notify_format;
}

static void rules_add(struct failure_rules *r, const char *label, int64_t count)
{
    for (size_t i = 0; i < r->count; i++) {
        if (strcmp(r->items[i].label, label) == 0) {
            r->items[i].count += count;
            return;
        }
    }
    r->unlabelled += count;
}

void failure_rules_count(struct failure_rules *r, const char *label)
{
    assert_object(r, FAILURE_RULES_MAGIC);
    rules_add(r, label, 1);
}

void failure_rules_inherit(struct failure_rules *r, const struct failure_rules *before)
{
    assert_object(r, FAILURE_RULES_MAGIC);
    r->unlabelled += before->unlabelled;
    for (size_t i = 0; i < before->count; i++)
        rules_add(r, before->items[i].label, before->items[i].count);
}

json_t *failure_rules_to_json(const struct failure_rules *r, int64_t *unlabelled)
{
    static const char *const drains[] = {[FAILURE_NO_DRAIN] = "no",
                                         [FAILURE_DRAIN_VERIFIED] = "verified",
                                         [FAILURE_DRAIN_LOG] = "unverified"};
    json_t *list = json_array();

    assert_object(r, FAILURE_RULES_MAGIC);
    for (size_t i = 0; i < r->count; i++) {
        const struct failure_rule *rule = &r->items[i];
        json_t *restart = rule->again ? json_boolean(rule->again == FAILURE_AGAIN) : json_null();
        json_array_append_new(list,
                              json_pack("{s:s, s:o, s:s, s:b, s:s, s:b, s:I}", "label", rule->label,
                                        "restart", restart, "drain", drains[rule->drain], "notify",
                                        rule->notify != NULL, "pattern", rule->text, "shipped",
                                        rule->shipped, "count", (json_int_t)rule->count));
    }
    *unlabelled = r->unlabelled;
    return list;
}
