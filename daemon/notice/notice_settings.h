/* A snapshot of the settings for notices, including the files notify_rules and notify_secret_file
 * (doc/notices.md). */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/notify/rule.h"
#include "daemon/config.h"

#define NOTICE_RULES_FILE_MAX 256 /* maximum number of rules, and of secrets */

struct notice_admin_rule {
    struct notice_rule rule;
    char *by;     /* "eve", "user:eve" or "token:eve"; NULL: anyone */
    char *secret; /* NULL: no secret of its own */
};
struct notice_admin_rules {
    struct notice_admin_rule *items;
    size_t count;
};

/* name: file name for messages. ERR_INVALID. */
int notice_admin_rules_parse(const char *text, size_t bytes, const char *name,
                             struct notice_admin_rules *rules, struct error *e);
void notice_admin_rules_clear(struct notice_admin_rules *rules);

/* Returns whether the rule applies to submissions of this owner (NULL: unknown). */
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

/* Returns the secret for signing requests to this target; NULL: none. */
const char *notice_secret_of(const struct notice_admin_rules *rules,
                             const struct notice_secrets *secrets, const char *target);

struct notice_settings {
    struct notice_admin_rules rules;
    struct notice_secrets secrets;
    struct config config;  /* a copy; public_url has no trailing slash */
    atomic_int references; /* own */
};

/* Reads the files and validates the values. *out holds one reference. */
int notice_settings_load(const struct config *c, struct notice_settings **out, struct error *e);
void notice_settings_release(struct notice_settings *s); /* NULL-safe */
