/*
 * What the administrator says of notices beyond traind.conf: rules of all jobs (notify_rules), and
 * the secrets that requests are signed with (notify_secret_file).
 *
 *     [{"to": "https://chat.example.org/hook", "on": ["failed", "node_drained"], "format": "text",
 *       "by": "eve", "secret": "..."}]
 *
 *     # HOST SECRET, of targets whose rule has none; * is all other hosts
 *     ci.example.org  4f3c...
 */
#pragma once

#include <stddef.h>

#include "common/error.h"
#include "common/notify/rule.h"

#define NOTICE_RULES_FILE_MAX 256 /* rules, and lines of secrets */

struct notice_admin_rule {
    struct notice_rule rule;
    char *by;     /* "eve", "user:eve", "token:eve"; NULL: anybody */
    char *secret; /* NULL: none of its own */
};
struct notice_admin_rules {
    struct notice_admin_rule *items;
    size_t count;
};

/* From JSON text; all that is wrong is named: ERR_INVALID. name: of the file, for messages. */
int notice_admin_rules_parse(const char *text, size_t bytes, const char *name,
                             struct notice_admin_rules *rules, struct error *e);
void notice_admin_rules_clear(struct notice_admin_rules *rules);

/* The rule is for what this owner (NULL: nobody is known) submitted. */
bool notice_admin_rule_is_for(const struct notice_admin_rule *rule, const char *owner);

struct notice_secret {
    char *host; /* "*": all others */
    char *secret;
};
struct notice_secrets {
    struct notice_secret *items;
    size_t count;
};
int notice_secrets_parse(const char *text, const char *name, struct notice_secrets *secrets,
                         struct error *e);
void notice_secrets_clear(struct notice_secrets *secrets);

/* What a request to this target is signed with; NULL: it is not signed. A secret of a host is for
 * this host alone, so that nobody learns what others' requests are signed with. */
const char *notice_secret_of(const struct notice_admin_rules *rules,
                             const struct notice_secrets *secrets, const char *target);
