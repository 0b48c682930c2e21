/* Rules of notices, {"to": target, "on": [kinds], "format": "json" | "text"}: the key notify of a
 * job has a list of them. */
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
    NOTICE_RULE_KINDS,               /* rules may name those above */
    NOTICE_TEST = NOTICE_RULE_KINDS, /* somebody asked for it */
    NOTICE_KINDS
};

#define NOTICE_BIT(kind) (1u << (kind))
/* Without "on". */
#define NOTICE_DEFAULT_KINDS                                                                       \
    (NOTICE_BIT(NOTICE_SUCCEEDED) | NOTICE_BIT(NOTICE_FAILED) | NOTICE_BIT(NOTICE_CANCELLED))

const char *notice_kind_name(size_t kind);         /* "target_met"; NULL behind the last */
enum notice_kind notice_kind_of(const char *name); /* NOTICE_KINDS: it is none */

enum notice_format { NOTICE_JSON, NOTICE_TEXT, NOTICE_FORMATS };
const char *notice_format_name(size_t format);         /* NULL behind the last */
enum notice_format notice_format_of(const char *name); /* NOTICE_FORMATS: it is none */

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
struct notice_rule notice_rule_read(const json_t *rule);

bool notice_rules_check(const json_t *list, const char *pointer, struct problems *problems);
void notice_rules_read(const json_t *list, struct notice_rules *rules); /* of a right one */
json_t *notice_rules_to_json(const struct notice_rules *rules); /* every default written out */
void notice_rules_clear(struct notice_rules *rules);

json_t *notice_rule_schema(void);
void notice_rules_expect(char *text, size_t bytes);
