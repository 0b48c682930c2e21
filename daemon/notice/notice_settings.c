#include "daemon/notice/notice_settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/json.h"
#include "common/notify/target.h"
#include "common/system/file.h"
#include "common/xalloc.h"
#include "daemon/notice/address.h"

#define FILE_LIMIT_BYTES ((size_t)1 << 20)

int notice_admin_rules_parse(const char *text, size_t bytes, const char *name,
                             struct notice_admin_rules *rules, struct error *e)
{
    struct problems problems = {0};
    json_error_t where;
    json_t *list = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &where), *rule;
    bool fits = json_is_array(list) && json_array_size(list) <= NOTICE_RULES_FILE_MAX;
    char pointer[32];
    size_t i;
    int status = 0;

    *rules = (struct notice_admin_rules){0};
    if (!list)
        return error_set(e, ERR_INVALID, "%s: line %d: %s", name, where.line, where.text);
    if (!fits)
        problems_add(&problems, "", NULL, "must be a JSON list of at most %d rules",
                     NOTICE_RULES_FILE_MAX);
    for (i = 0; fits && i < json_array_size(list); i++) {
        snprintf(pointer, sizeof pointer, "/rule/%zu", i); /* shown as rule[1].to */
        notice_rule_check(json_array_get(list, i), pointer, true, &problems);
    }
    if (problems.count) {
        char *lines = must_alloc(problems_to_text(&problems));
        for (char *c = lines; *c; c++)
            if (*c == '\n')
                *c = c[1] ? ' ' : '\0';
        status = error_set(e, ERR_INVALID, "%s: %s", name, lines);
        free(lines);
    } else {
        rules->items = xcalloc(json_array_size(list) + 1, sizeof *rules->items);
        json_array_foreach (list, i, rule)
            rules->items[rules->count++] = (struct notice_admin_rule){
                notice_rule_read(rule), xstrdup_or_null(json_get_text(rule, "by", NULL)),
                xstrdup_or_null(json_get_text(rule, "secret", NULL))};
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

int notice_secrets_parse(const char *text, const char *name, struct notice_secrets *secrets,
                         struct error *e)
{
    char *copy = xstrdup(text), *lines, *words, *line = strtok_r(copy, "\n", &lines);
    int status = 0;

    secrets->count = 0;
    secrets->items = xcalloc(NOTICE_RULES_FILE_MAX, sizeof *secrets->items);
    for (; line && !status; line = strtok_r(NULL, "\n", &lines)) {
        const char *host = strtok_r(line, " \t\r", &words);
        const char *secret = host ? strtok_r(NULL, " \t\r", &words) : NULL;
        if (secrets->count == NOTICE_RULES_FILE_MAX)
            status =
                error_set(e, ERR_INVALID, "%s: more than %d secrets", name, NOTICE_RULES_FILE_MAX);
        else if (!host || *host == '#')
            continue;
        else if (secret && !strtok_r(NULL, " \t\r", &words))
            secrets->items[secrets->count++] =
                (struct notice_secret){xstrdup(host), xstrdup(secret)};
        else /* the line itself is not shown, because it contains a secret */
            status = error_set(e, ERR_INVALID,
                               "%s: each line must be HOST SECRET, for example \"ci.example.org "
                               "4f3c...\"; HOST * applies to all others",
                               name);
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

static bool settings_others_can_read(const char *path, mode_t *mode)
{
    struct stat st;

    if (stat(path, &st))
        return false;
    *mode = st.st_mode & 0777;
    return *mode & 077;
}

static int settings_load_rules(const char *path, struct notice_settings *s, struct error *e)
{
    size_t bytes;
    char *text;
    mode_t mode;

    if (file_read_text(path, FILE_LIMIT_BYTES, &text, &bytes, e))
        return error_prefix(e, "notify_rules");
    int status = notice_admin_rules_parse(text, bytes, path, &s->rules, e);
    explicit_bzero(text, bytes);
    free(text);
    if (status)
        return error_prefix(e, "notify_rules");
    for (size_t i = 0; i < s->rules.count; i++)
        if (s->rules.items[i].secret && settings_others_can_read(path, &mode))
            return error_set(
                e, ERR_USAGE,
                "notify_rules: %s contains secrets and is readable by others: run chmod 600 on it",
                path);
    return 0;
}

static int settings_load_secrets(const char *path, struct notice_settings *s, struct error *e)
{
    size_t bytes;
    char *text;
    mode_t mode;

    if (file_read_text(path, FILE_LIMIT_BYTES, &text, &bytes, e))
        return error_prefix(e, "notify_secret_file");
    bool open = settings_others_can_read(path, &mode);
    int status =
        open ? error_set(e, ERR_USAGE,
                         "others can read the secrets in %s (mode %03o): run chmod 600 on it", path,
                         (unsigned)mode)
             : notice_secrets_parse(text, path, &s->secrets, e);
    explicit_bzero(text, bytes);
    free(text);
    return status ? error_prefix(e, "notify_secret_file") : 0;
}

static bool settings_is_url(const char *url, bool socks)
{
    return strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0 ||
           (socks && strncasecmp(url, "socks5", 6) == 0 && strstr(url, "://"));
}

static int settings_check(const struct config *c, struct error *e)
{
    if (c->public_url &&
        (!settings_is_url(c->public_url, false) || strpbrk(c->public_url, " #?\"<>")))
        return error_set(e, ERR_USAGE,
                         "public_url must be the address of the dashboard, for example "
                         "https://traind.example.org, not \"%s\"",
                         c->public_url);
    if (c->notify_proxy && !settings_is_url(c->notify_proxy, true))
        return error_set(e, ERR_USAGE,
                         "notify_proxy must begin with http://, https://, socks5:// or "
                         "socks5h://, for example http://proxy:3128");
    if (c->notify_ca_file && access(c->notify_ca_file, R_OK))
        return error_set_errno(e, errno, "notify_ca_file: cannot read %s", c->notify_ca_file);
    if (c->notify_from && (strpbrk(c->notify_from, "\r\n<>\"") || !strchr(c->notify_from, '@')))
        return error_set(e, ERR_USAGE,
                         "notify_from must be an address such as traind@example.org, not \"%s\"",
                         c->notify_from);
    if (*c->notify_sendmail != '/')
        return error_set(e, ERR_USAGE,
                         "notify_sendmail must be the absolute path of a program, "
                         "not \"%s\"",
                         c->notify_sendmail);
    if (address_domains_check(c->notify_mail_domains, e))
        return -(int)e->code;
    return address_list_check(c->notify_allow, e);
}

int notice_settings_load(const struct config *c, struct notice_settings **out, struct error *e)
{
    struct notice_settings *s = xcalloc(1, sizeof *s);

    atomic_init(&s->references, 1);
    config_copy(&s->config, c);
    char *url = s->config.public_url;
    for (size_t end = url ? strlen(url) : 0; end && url[end - 1] == '/';)
        url[--end] = '\0';
    int status = settings_check(c, e);
    if (!status && c->notify_rules)
        status = settings_load_rules(c->notify_rules, s, e);
    if (!status && c->notify_secret_file)
        status = settings_load_secrets(c->notify_secret_file, s, e);
    *out = status ? NULL : s;
    if (status)
        notice_settings_release(s);
    return status;
}

void notice_settings_release(struct notice_settings *s)
{
    if (!s || atomic_fetch_sub(&s->references, 1) > 1)
        return;
    notice_admin_rules_clear(&s->rules);
    notice_secrets_clear(&s->secrets);
    config_clear(&s->config);
    free(s);
}
