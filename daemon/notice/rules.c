#include "daemon/notice/rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/json.h"
#include "common/xalloc.h"
#include "common/notify/target.h"

/* ---------------------------------------------------------------- rules */

static void rules_check(const json_t *list, struct problems *problems)
{
    char pointer[32];

    if (!json_is_array(list) || json_array_size(list) > NOTICE_RULES_FILE_MAX) {
        problems_add(problems, "", NULL, "must be a JSON list of at most %d rules",
                     NOTICE_RULES_FILE_MAX);
        return;
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *rule = json_array_get(list, i);
        snprintf(pointer, sizeof pointer, "/rule/%zu", i); /* people read rule[1].to */
        notice_rule_check(rule, pointer, true, problems);
    }
}

static char *rules_copy(const json_t *rule, const char *key)
{
    const char *text = json_string_value(json_object_get(rule, key));
    return xstrdup_or_null(text);
}

static void rules_read(const json_t *list, struct notice_admin_rules *rules)
{
    size_t count = json_array_size(list);

    rules->items = xcalloc(count + 1, sizeof *rules->items);
    for (size_t i = 0; i < count; i++) {
        const json_t *rule = json_array_get(list, i);
        rules->items[rules->count++] = (struct notice_admin_rule){
            notice_rule_read(rule), rules_copy(rule, "by"), rules_copy(rule, "secret")};
    }
}

int notice_admin_rules_parse(const char *text, size_t bytes, const char *name,
                             struct notice_admin_rules *rules, struct error *e)
{
    struct problems problems = {0};
    json_error_t where;
    json_t *list = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &where);
    int status = 0;

    *rules = (struct notice_admin_rules){0};
    if (!list)
        return error_set(e, ERR_INVALID, "%s: line %d: %s", name, where.line, where.text);
    rules_check(list, &problems);
    if (problems.count) {
        char *words = problems_to_text(&problems);
        for (char *c = words; c && *c; c++)
            if (*c == '\n')
                *c = c[1] ? ' ' : '\0';
        status = error_set(e, ERR_INVALID, "%s: %s", name, words ? words : "wrong");
        free(words);
    } else {
        rules_read(list, rules);
    }
    problems_clear(&problems);
    json_decref(list);
    return status;
}

void notice_admin_rules_clear(struct notice_admin_rules *rules)
{
    for (size_t i = 0; i < rules->count; i++) {
        free(rules->items[i].rule.to);
        free(rules->items[i].by);
        free(rules->items[i].secret);
    }
    free(rules->items);
    *rules = (struct notice_admin_rules){0};
}

bool notice_admin_rule_is_for(const struct notice_admin_rule *rule, const char *owner)
{
    const char *name = owner ? strchr(owner, ':') : NULL;

    return !rule->by || (owner && strcmp(rule->by, owner) == 0) ||
           (name && strcmp(rule->by, name + 1) == 0);
}

/* ---------------------------------------------------------------- secrets */

/* "HOST SECRET"; 1: a secret; 0: an empty line or a remark; -1: neither. */
static int rules_secrets_read_line(char *line, struct notice_secret *s)
{
    char *save, *host = strtok_r(line, " \t\r", &save), *secret = strtok_r(NULL, " \t\r", &save);

    if (!host || *host == '#')
        return 0;
    if (!secret || strtok_r(NULL, " \t\r", &save))
        return -1;
    *s = (struct notice_secret){xstrdup(host), xstrdup(secret)};
    return 1;
}

int notice_secrets_parse(const char *text, const char *name, struct notice_secrets *secrets,
                         struct error *e)
{
    char *copy = xstrdup(text), *save, *line = strtok_r(copy, "\n", &save);
    int status = 0;

    secrets->count = 0;
    secrets->items = xcalloc(NOTICE_RULES_FILE_MAX, sizeof *secrets->items);
    for (; line && !status; line = strtok_r(NULL, "\n", &save)) {
        if (secrets->count == NOTICE_RULES_FILE_MAX)
            status =
                error_set(e, ERR_INVALID, "%s: more than %d secrets", name, NOTICE_RULES_FILE_MAX);
        else if (strlen(line) > 0) {
            int read = rules_secrets_read_line(line, &secrets->items[secrets->count]);
            secrets->count += read > 0;
            if (read < 0) /* the line itself is not shown: it holds a secret */
                status = error_set(e, ERR_INVALID,
                                   "%s: each line must be HOST SECRET, as in \"ci.example.org "
                                   "4f3c...\"; HOST * is for all others",
                                   name);
        }
    }
    explicit_bzero(copy, strlen(text));
    free(copy);
    return status;
}

void notice_secrets_clear(struct notice_secrets *secrets)
{
    for (size_t i = 0; i < secrets->count; i++) {
        free(secrets->items[i].host);
        free(secrets->items[i].secret);
    }
    free(secrets->items);
    *secrets = (struct notice_secrets){0};
}

const char *notice_secret_of(const struct notice_admin_rules *rules,
                             const struct notice_secrets *secrets, const char *target)
{
    struct notice_target t;
    const char *why, *others = NULL;

    for (size_t i = 0; i < rules->count; i++)
        if (rules->items[i].secret && strcmp(rules->items[i].rule.to, target) == 0)
            return rules->items[i].secret;
    if (!notice_target_parse(target, &t, &why))
        return NULL;
    for (size_t i = 0; i < secrets->count; i++) {
        if (strcasecmp(secrets->items[i].host, t.host) == 0)
            return secrets->items[i].secret;
        if (strcmp(secrets->items[i].host, "*") == 0)
            others = secrets->items[i].secret;
    }
    return others;
}
