/* Rules for notices, listed in a job's notify: {"to": target, "on": [kinds], "format": "json"} */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/problem.h"

enum notice_kind {
    NOTICE_SUCCEEDED,
    NOTICE_FAILED,
    NOTICE_CANCELLED,
    NOTICE_ATTEMPT_FAILED,
    NOTICE_TARGET_MET,
    NOTICE_STRAGGLER,
    NOTICE_STALLED,
    NOTICE_NODE_DRAINED,
    NOTICE_SWEEP_DONE,
    NOTICE_RULE_KINDS,               /* number of kinds that rules may name */
    NOTICE_TEST = NOTICE_RULE_KINDS, /* requested by a user */
    NOTICE_KINDS
};

#define NOTICE_BIT(kind) (1u << (kind))
#define NOTICE_DEFAULT_KINDS                                                                       \
    (NOTICE_BIT(NOTICE_SUCCEEDED) | NOTICE_BIT(NOTICE_FAILED) | NOTICE_BIT(NOTICE_CANCELLED))

const char *notice_kind_name(size_t kind); /* for example "target_met"; NULL after the last one */
enum notice_kind notice_kind_of(const char *name); /* NOTICE_KINDS: unknown name */

enum notice_format { NOTICE_JSON, NOTICE_TEXT, NOTICE_FORMATS };
const char *notice_format_name(size_t format);         /* NULL after the last one */
enum notice_format notice_format_of(const char *name); /* NOTICE_FORMATS: unknown name */

#define NOTICE_RULES_MAX 8 /* per job */

struct notice_rule {
    char *to;       /* owned */
    unsigned kinds; /* bit mask of NOTICE_BIT(kind) */
    enum notice_format format;
};

struct notice_rules {
    struct notice_rule at[NOTICE_RULES_MAX];
    size_t count;
};

/* Adds all problems of a rule. admin: the keys by and secret are valid too. */
void notice_rule_check(const json_t *rule, const char *pointer, bool admin,
                       struct problems *problems);
struct notice_rule notice_rule_read(const json_t *rule);

bool notice_rules_check(const json_t *list, const char *pointer, struct problems *problems);
void notice_rules_read(const json_t *list, struct notice_rules *rules); /* the list must be valid */
json_t *notice_rules_to_json(const struct notice_rules *rules);         /* with all defaults */
void notice_rules_clear(struct notice_rules *rules);

json_t *notice_rule_schema(void);
void notice_rules_expect(char *text, size_t bytes);
