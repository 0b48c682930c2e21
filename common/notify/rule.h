/*
 * Who is to be told of what: {"to": target, "on": [kinds], "format": "json" | "text"}, as the key
 * notify of a job's document has a list of them. The administrator's rules (daemon/notice/notice_settings.h)
 * are the same with more keys.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/notify/kind.h"
#include "common/problem.h"

#define NOTICE_RULES_MAX 8 /* of a job */

struct notice_rule {
    char *to;       /* owned */
    unsigned kinds; /* bits NOTICE_BIT(kind) */
    enum notice_format format;
};

struct notice_rules {
    struct notice_rule at[NOTICE_RULES_MAX];
    size_t count;
};

/* Adds everything that is wrong with one rule. admin: it may also have the keys by and secret. */
void notice_rule_check(const json_t *rule, const char *pointer, bool admin,
                       struct problems *problems);
/* Of a right one. */
struct notice_rule notice_rule_read(const json_t *rule);

/* A job's list, of at most NOTICE_RULES_MAX. False: something is wrong, and named. */
bool notice_rules_check(const json_t *list, const char *pointer, struct problems *problems);
void notice_rules_read(const json_t *list, struct notice_rules *rules); /* of a right one */
json_t *notice_rules_to_json(const struct notice_rules *rules); /* every default written out */
void notice_rules_clear(struct notice_rules *rules);

/* The JSON Schema of one of them; what a message says of the list. */
json_t *notice_rule_schema(void);
void notice_rules_expect(char *text, size_t bytes);
