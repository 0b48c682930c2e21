#include "common/notify/rule.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/document.h"
#include "common/notify/target.h"
#include "common/text.h"
#include "common/xalloc.h"

static const char *const kind_names[NOTICE_KINDS] = {
    [NOTICE_SUCCEEDED] = "succeeded",
    [NOTICE_FAILED] = "failed", /* and will not be restarted */
    [NOTICE_CANCELLED] = "cancelled",
    [NOTICE_ATTEMPT_FAILED] = "attempt_failed", /* also if a restart follows */
    [NOTICE_TARGET_MET] = "target_met",     /* eval.target_top1 was reached for the first time */
    [NOTICE_STRAGGLER] = "straggler",       /* once per attempt */
    [NOTICE_STALLED] = "stalled",           /* once per attempt */
    [NOTICE_NODE_DRAINED] = "node_drained", /* with the job that ran on it, if any */
    [NOTICE_SWEEP_DONE] = "sweep_done",
    [NOTICE_TEST] = "test", /* sent by trainctl notify test */
};
static const char *const notice_format_words[NOTICE_FORMATS + 1] = {
    [NOTICE_JSON] = "json", [NOTICE_TEXT] = "text"};

const char *notice_kind_name(size_t kind)
{
    return kind < NOTICE_KINDS ? kind_names[kind] : NULL;
}

enum notice_kind notice_kind_of(const char *name)
{
    size_t i = 0;

    while (i < NOTICE_KINDS && (!name || strcmp(name, kind_names[i]) != 0))
        i++;
    return (enum notice_kind)i;
}

const char *notice_format_name(size_t format)
{
    return format < NOTICE_FORMATS ? notice_format_words[format] : NULL;
}

enum notice_format notice_format_of(const char *name)
{
    size_t i = 0;

    while (i < NOTICE_FORMATS && (!name || strcmp(name, notice_format_words[i]) != 0))
        i++;
    return (enum notice_format)i;
}

/* clang-format off */
static const struct document_key rule_keys[] = {
#define ADMIN_KEYS 2 /* number of first keys that only administrators may use */
    {.name = "by", .type = DOCUMENT_TEXT, .expects = "must be a text that is not empty"},
    {.name = "secret", .type = DOCUMENT_TEXT, .expects = "must be a text that is not empty"},
    {.name = "to"}, {.name = "on"},
    {.name = "format", .type = DOCUMENT_WORD, .choices = notice_format_words, .expects = "must be \"json\" or \"text\""},
    {0}
};
/* clang-format on */

static void rule_check_to(const json_t *to, const char *pointer, struct problems *problems)
{
    struct notice_target target;
    const char *text = json_string_value(to), *why;
    char *at = problem_pointer(pointer, "to");

    if (!text || strlen(text) != json_string_length(to))
        problems_add(problems, at, NULL,
                     "is required: where to send it, \"https://HOST/...\" or \"mailto:NAME@HOST\"");
    else if (!notice_target_parse(text, &target, &why))
        problems_add(problems, at, NULL, "%s", why);
    free(at);
}

static void rule_list_kinds(char *text, size_t bytes)
{
    size_t used = 0;

    for (size_t i = 0; i < NOTICE_RULE_KINDS && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s\"%s\"", i ? ", " : "",
                                 notice_kind_name(i));
}

static void rule_check_on(const json_t *on, const char *pointer, struct problems *problems)
{
    char *at = problem_pointer(pointer, "on"), names[256];

    rule_list_kinds(names, sizeof names);
    if (on && json_array_size(on) == 0)
        problems_add(problems, at, NULL, "must be a list of %s", names);
    for (size_t i = 0; i < json_array_size(on) && i < 2 * NOTICE_RULE_KINDS; i++) {
        const char *name = json_string_value(json_array_get(on, i));
        if (notice_kind_of(name) < NOTICE_RULE_KINDS)
            continue;
        struct suggest near = {.word = name};
        char index[128];
        for (size_t k = 0; name && k < NOTICE_RULE_KINDS; k++)
            text_suggest(&near, notice_kind_name(k));
        snprintf(index, sizeof index, "%s/%zu", at, i);
        problems_add(problems, index, near.best, "must be one of %s", names);
    }
    free(at);
}

void notice_rule_check(const json_t *rule, const char *pointer, bool admin,
                       struct problems *problems)
{
    if (!json_is_object(rule)) {
        problems_add(problems, pointer, NULL, "must be an object with to, on and format");
        return;
    }
    /* Does not change the rule, because no key has a default. */
    document_check((json_t *)(uintptr_t)rule, pointer, rule_keys + (admin ? 0 : ADMIN_KEYS),
                   "is not a key of a rule of notify", problems);
    rule_check_to(json_object_get(rule, "to"), pointer, problems);
    rule_check_on(json_object_get(rule, "on"), pointer, problems);
}

void notice_rules_expect(char *text, size_t bytes)
{
    snprintf(text, bytes,
             "a list of at most %d objects such as {\"to\": \"mailto:eve@example.org\", "
             "\"on\": [\"failed\"], \"format\": \"text\"}",
             NOTICE_RULES_MAX);
}

bool notice_rules_check(const json_t *list, const char *pointer, struct problems *problems)
{
    size_t before = problems->count;
    char at[64];

    for (size_t i = 0; i < json_array_size(list); i++) {
        snprintf(at, sizeof at, "%s/%zu", pointer, i);
        notice_rule_check(json_array_get(list, i), at, false, problems);
    }
    return problems->count == before;
}

struct notice_rule notice_rule_read(const json_t *rule)
{
    const json_t *on = json_object_get(rule, "on");
    const char *format = json_string_value(json_object_get(rule, "format"));
    struct notice_rule r = {
        .to = xstrdup(json_string_value(json_object_get(rule, "to"))),
        .kinds = on ? 0 : NOTICE_DEFAULT_KINDS,
        .format = format ? notice_format_of(format) : NOTICE_JSON,
    };

    for (size_t i = 0; i < json_array_size(on); i++)
        r.kinds |= NOTICE_BIT(notice_kind_of(json_string_value(json_array_get(on, i))));
    return r;
}

void notice_rules_read(const json_t *list, struct notice_rules *rules)
{
    *rules = (struct notice_rules){0};
    for (size_t i = 0; i < json_array_size(list) && i < NOTICE_RULES_MAX; i++)
        rules->at[rules->count++] = notice_rule_read(json_array_get(list, i));
}

json_t *notice_rules_to_json(const struct notice_rules *rules)
{
    json_t *list = json_array();

    for (size_t i = 0; i < rules->count; i++) {
        const struct notice_rule *r = &rules->at[i];
        json_t *on = json_array();
        for (size_t k = 0; k < NOTICE_RULE_KINDS; k++)
            if (r->kinds & NOTICE_BIT(k))
                json_array_append_new(on, json_string(notice_kind_name(k)));
        json_array_append_new(list, json_pack("{s:s, s:o, s:s}", "to", r->to, "on", on, "format",
                                              notice_format_name(r->format)));
    }
    return list;
}

void notice_rules_clear(struct notice_rules *rules)
{
    for (size_t i = 0; i < rules->count; i++)
        free(rules->at[i].to);
    *rules = (struct notice_rules){0};
}

json_t *notice_rule_schema(void)
{
    json_t *kinds = json_array(), *formats = json_array();

    for (size_t i = 0; i < NOTICE_RULE_KINDS; i++)
        json_array_append_new(kinds, json_string(notice_kind_name(i)));
    for (size_t i = 0; notice_format_name(i); i++)
        json_array_append_new(formats, json_string(notice_format_name(i)));
    return json_pack("{s:s, s:b, s:[s], s:{s:{s:s, s:i, s:s}, s:{s:s, s:{s:o}, s:i}, s:{s:o, "
                     "s:s}}}",
                     "type", "object", "additionalProperties", 0, "required", "to", "properties",
                     "to", "type", "string", "maxLength", NOTICE_TARGET_BYTES - 1, "pattern",
                     NOTICE_TARGET_PATTERN, "on", "type", "array", "items", "enum", kinds,
                     "minItems", 1, "format", "enum", formats, "default", "json");
}
