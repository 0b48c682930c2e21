#include "daemon/notice/post.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <config.h>
#include "common/assert_always.h"
#include "common/clock.h"
#include "common/notify/target.h"
#include "daemon/notice/address.h"
#include "daemon/notice/render.h"
#include "common/xalloc.h"

#define CONNECT_SECONDS 5L
#define POST_SECONDS    10L
#define ANSWER_BYTES    ((size_t)64 << 10) /* of the answer; read and discarded */
#define RETRY_AFTER_MAX 3600

#define POST_MAGIC 0x9057b0f5u

struct post {
    unsigned magic;
    CURL *curl;
    const struct outbox_notice *notice;
    const struct notice_settings *settings;
    struct curl_slist *headers;
    char *body;
    char *url; /* of the current redirect */
    struct notice_target target;
    int64_t hops;
    size_t answer_bytes;
    bool refused; /* it has an address that may not be called */
    char why[CURL_ERROR_SIZE];
};

static bool post_may_call(const struct post *p, const struct sockaddr *address)
{
    const struct notice_settings *s = p->settings;

    return address_is_public(address) || address_is_allowed(s->config.notify_allow, address) ||
           address_host_is_allowed(s->config.notify_allow, p->target.host, p->target.port);
}

/* The proxy's address is chosen by the administrator and is not checked. */
static curl_socket_t post_open_socket(void *context, curlsocktype purpose,
                                      struct curl_sockaddr *address)
{
    struct post *p = context;

    (void)purpose;
    if (!p->settings->config.notify_proxy && !post_may_call(p, &address->addr)) {
        p->refused = true;
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* The proxy resolves names itself. Rejects names that resolve to private addresses here; names that
 * only the proxy knows are left to it. */
static bool post_proxy_may_call(struct post *p)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    bool may = true;

    if (!p->settings->config.notify_proxy || getaddrinfo(p->target.host, NULL, &hints, &found))
        return true;
    for (const struct addrinfo *a = found; a && may; a = a->ai_next)
        if (!post_may_call(p, a->ai_addr)) {
            p->refused = true;
            may = false;
        }
    freeaddrinfo(found);
    return may;
}

/* Hides the name service's answer from submitters: an unknown name and one with a private address
 * give the same message. */
static int post_refuse(const struct post *p, struct error *e)
{
    const char *host = p->target.host;
    unsigned char address[16];

    if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1)
        return error_set(e, ERR_INVALID,
                         "%s is not a public address, and notify_allow of traind.conf does not "
                         "list it",
                         host);
    return error_set(e, ERR_UNREACHABLE,
                     "%s has no address that notices may be sent to: it has none, or only private "
                     "ones that notify_allow in traind.conf does not list",
                     host);
}

void post_sign(const char *secret, const char *timestamp, const char *body, size_t bytes,
               char signature[POST_SIGNATURE_BYTES])
{
    crypto_auth_hmacsha256_state state;
    unsigned char hash[crypto_auth_hmacsha256_BYTES];

    crypto_auth_hmacsha256_init(&state, (const unsigned char *)secret, strlen(secret));
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)timestamp, strlen(timestamp));
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)".", 1);
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)body, bytes);
    crypto_auth_hmacsha256_final(&state, hash);
    memcpy(signature, "v1=", 3);
    sodium_bin2hex(signature + 3, POST_SIGNATURE_BYTES - 3, hash, sizeof hash);
    sodium_memzero(&state, sizeof state);
}

static size_t post_receive(char *data, size_t size, size_t count, void *context)
{
    struct post *p = context;

    (void)data;
    p->answer_bytes += size * count;
    return p->answer_bytes > ANSWER_BYTES ? 0 : size * count;
}

static void post_add_header(struct post *p, const char *name, const char *value)
{
    char line[256];

    snprintf(line, sizeof line, "%s: %s", name, value);
    p->headers = must_alloc(curl_slist_append(p->headers, line));
}

static void post_add_headers(struct post *p)
{
    const char *secret =
        notice_secret_of(&p->settings->rules, &p->settings->secrets, p->notice->target);
    char now[32], signature[POST_SIGNATURE_BYTES];

    post_add_header(p, "Content-Type", "application/json");
    post_add_header(p, "User-Agent", "traind/" PACKAGE_VERSION);
    post_add_header(p, "Traind-Notice-Id", p->notice->uid);
    post_add_header(p, "Expect", ""); /* do not wait for 100 Continue before the body */
    if (!secret)
        return;
    snprintf(now, sizeof now, "%lld", (long long)clock_now());
    post_sign(secret, now, p->body, strlen(p->body), signature);
    post_add_header(p, "Traind-Timestamp", now);
    post_add_header(p, "Traind-Signature", signature);
}

static void post_set_options(struct post *p)
{
    const struct notice_settings *s = p->settings;

    curl_easy_setopt(p->curl, CURLOPT_URL, p->url);
    curl_easy_setopt(p->curl, CURLOPT_PRIVATE, p);
    curl_easy_setopt(p->curl, CURLOPT_HTTPHEADER, p->headers);
    curl_easy_setopt(p->curl, CURLOPT_POSTFIELDS, p->body);
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(p->curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    curl_easy_setopt(p->curl, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
    curl_easy_setopt(p->curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(p->curl, CURLOPT_OPENSOCKETFUNCTION, post_open_socket);
    curl_easy_setopt(p->curl, CURLOPT_OPENSOCKETDATA, p);
    curl_easy_setopt(p->curl, CURLOPT_WRITEFUNCTION, post_receive);
    curl_easy_setopt(p->curl, CURLOPT_WRITEDATA, p);
    curl_easy_setopt(p->curl, CURLOPT_ERRORBUFFER, p->why);
    curl_easy_setopt(p->curl, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
    curl_easy_setopt(p->curl, CURLOPT_TIMEOUT, POST_SECONDS);
    curl_easy_setopt(p->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(p->curl, CURLOPT_FORBID_REUSE, 1L);
    curl_easy_setopt(p->curl, CURLOPT_FRESH_CONNECT, 1L);
    /* Ignore the proxy variables of the environment. */
    curl_easy_setopt(p->curl, CURLOPT_PROXY, s->config.notify_proxy ? s->config.notify_proxy : "");
    curl_easy_setopt(p->curl, CURLOPT_NOPROXY, "");
    if (s->config.notify_ca_file)
        curl_easy_setopt(p->curl, CURLOPT_CAINFO, s->config.notify_ca_file);
}

int post_create(const struct outbox_notice *n, const struct notice_settings *settings,
                struct post **out, struct error *e)
{
    struct post *p = xmalloc(sizeof *p);
    const char *why;
    int status = 0;

    *p = (struct post){.magic = POST_MAGIC,
                       .curl = must_alloc(curl_easy_init()),
                       .notice = n,
                       .settings = settings,
                       .url = xstrdup(n->target),
                       .body = render_json(n, settings)};
    if (!p->body)
        status = error_set(e, ERR_TOO_LARGE, RENDER_TOO_LARGE);
    else if (!notice_target_parse(p->url, &p->target, &why))
        status = error_set(e, ERR_INVALID, "the target %s", why);
    else if (!post_proxy_may_call(p))
        status = post_refuse(p, e);
    *out = status ? NULL : p;
    if (status) {
        post_destroy(p);
        return status;
    }
    post_add_headers(p);
    post_set_options(p);
    return 0;
}

CURL *post_handle(struct post *p)
{
    assert_object(p, POST_MAGIC);
    return p->curl;
}

void post_destroy(struct post *p)
{
    if (!p)
        return;
    assert_object_ends(p, POST_MAGIC);
    curl_easy_cleanup(p->curl);
    curl_slist_free_all(p->headers);
    free(p->body);
    free(p->url);
    free(p);
}

static bool post_end(struct post_outcome *o, enum outbox_state state, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static bool post_end(struct post_outcome *o, enum outbox_state state, const char *format, ...)
{
    va_list args;

    o->state = state;
    va_start(args, format);
    vsnprintf(o->words, sizeof o->words, format, args);
    va_end(args);
    return true;
}

static bool post_failed(const struct post *p, CURLcode code, struct post_outcome *o)
{
    struct error e;

    if (p->refused || code == CURLE_COULDNT_RESOLVE_HOST)
        return post_end(o, post_refuse(p, &e) == -(int)ERR_INVALID ? OUTBOX_FAILED : OUTBOX_WAITING,
                        "%s", e.text);
    return post_end(o, OUTBOX_WAITING, "%s", *p->why ? p->why : curl_easy_strerror(code));
}

/* Follows a redirect. Returns false with the reason in *o if that is not allowed. */
static bool post_follow(struct post *p, long status, struct post_outcome *o)
{
    char *url = NULL;
    const char *why;
    struct notice_target next;

    curl_easy_getinfo(p->curl, CURLINFO_REDIRECT_URL, &url);
    if (!url)
        return !post_end(o, OUTBOX_WAITING, "the answer is %ld without a Location", status);
    if (p->hops++ >= p->settings->config.notify_redirects)
        return !post_end(
            o, OUTBOX_FAILED,
            p->settings->config.notify_redirects
                ? "the answer is a redirect (%ld) again, and notify_redirects is used up"
                : "the answer is a redirect (%ld), which notify_redirects does not "
                  "allow",
            status);
    if (!notice_target_parse(url, &next, &why) || next.kind == NOTICE_TARGET_MAIL)
        return !post_end(o, OUTBOX_FAILED, "the redirect's address %s",
                         next.kind == NOTICE_TARGET_MAIL ? "is not an HTTP URL" : why);
    if (p->target.kind == NOTICE_TARGET_HTTPS && next.kind != NOTICE_TARGET_HTTPS)
        return !post_end(o, OUTBOX_FAILED, "the redirect leads from https to http");
    free(p->url);
    p->url = xstrdup(url);
    p->target = next;
    p->answer_bytes = 0;
    p->refused = false;
    p->why[0] = '\0';
    if (!post_proxy_may_call(p))
        return !post_failed(p, CURLE_COULDNT_CONNECT, o);
    curl_easy_setopt(p->curl, CURLOPT_URL, p->url);
    return true;
}

bool post_done(struct post *p, CURLcode code, struct post_outcome *o)
{
    curl_off_t after = 0;
    long status = 0;

    assert_object(p, POST_MAGIC);
    *o = (struct post_outcome){.state = OUTBOX_WAITING};
    curl_easy_getinfo(p->curl, CURLINFO_RESPONSE_CODE, &status);
    if (code != CURLE_OK && !(code == CURLE_WRITE_ERROR && p->answer_bytes > ANSWER_BYTES))
        return post_failed(p, code, o);
    if (status >= 200 && status < 300)
        return post_end(o, OUTBOX_DELIVERED, "%s", "");
    if (status >= 300 && status < 400)
        return !post_follow(p, status, o);
    if (status == 410)
        return post_end(o, OUTBOX_FAILED, "the answer is 410 (gone)");
    curl_easy_getinfo(p->curl, CURLINFO_RETRY_AFTER, &after);
    o->retry_after = after > RETRY_AFTER_MAX ? RETRY_AFTER_MAX : (double)after;
    return post_end(o, OUTBOX_WAITING, "the answer is %ld, not 200 to 299", status);
}
