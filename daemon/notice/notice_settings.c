#include "daemon/notice/notice_settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/xalloc.h"
#include "common/system/file.h"
#include "daemon/notice/send/address.h"

#define FILE_LIMIT_BYTES ((size_t)1 << 20)

/* A file with secrets is of this user and nobody else's to read. */
static int settings_read_secret_file(const char *key, const char *path, bool secret, char **text,
                                     size_t *bytes, struct error *e)
{
    struct stat st;

    if (file_read_text(path, FILE_LIMIT_BYTES, text, bytes, e))
        return error_prefix(e, "%s", key);
    if (!secret || stat(path, &st) || !(st.st_mode & 077))
        return 0;
    explicit_bzero(*text, *bytes);
    free(*text);
    *text = NULL;
    return error_set(e, ERR_USAGE,
                     "%s: others can read the secrets in %s: chmod 600 it (mode %03o)", key, path,
                     (unsigned)(st.st_mode & 0777));
}

static bool settings_rules_have_secrets(const struct notice_admin_rules *rules)
{
    for (size_t i = 0; i < rules->count; i++)
        if (rules->items[i].secret)
            return true;
    return false;
}

static int settings_load_rules(const struct config *c, struct notice_settings *s, struct error *e)
{
    const char *path = c->notify_rules;
    struct stat st;
    size_t bytes;
    char *text;

    if (!path)
        return 0;
    if (settings_read_secret_file("notify_rules", path, false, &text, &bytes, e))
        return -(int)e->code;
    int status = notice_admin_rules_parse(text, bytes, path, &s->rules, e);
    explicit_bzero(text, bytes);
    free(text);
    if (status)
        return error_prefix(e, "notify_rules");
    if (settings_rules_have_secrets(&s->rules) && !stat(path, &st) && st.st_mode & 077)
        return error_set(e, ERR_USAGE,
                         "notify_rules: %s holds secrets and others may read it: chmod 600 it",
                         path);
    return 0;
}

static int settings_load_secrets(const struct config *c, struct notice_settings *s, struct error *e)
{
    size_t bytes;
    char *text;

    if (!c->notify_secret_file)
        return 0;
    if (settings_read_secret_file("notify_secret_file", c->notify_secret_file, true, &text, &bytes,
                                  e))
        return -(int)e->code;
    int status = notice_secrets_parse(text, c->notify_secret_file, &s->secrets, e);
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
                         "public_url must be the address of the dashboard, as in "
                         "https://traind.example.org, not \"%s\"",
                         c->public_url);
    if (c->notify_proxy && !settings_is_url(c->notify_proxy, true))
        return error_set(e, ERR_USAGE,
                         "notify_proxy must begin with http://, https://, socks5:// or "
                         "socks5h://, as in http://proxy:3128");
    if (c->notify_ca_file && access(c->notify_ca_file, R_OK))
        return error_set_errno(e, errno, "notify_ca_file: cannot read %s", c->notify_ca_file);
    if (c->notify_from && (strpbrk(c->notify_from, "\r\n<>\"") || !strchr(c->notify_from, '@')))
        return error_set(e, ERR_USAGE,
                         "notify_from must be an address, as in traind@example.org, not \"%s\"",
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
    if (!status)
        status = settings_load_rules(c, s, e);
    if (!status)
        status = settings_load_secrets(c, s, e);
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
