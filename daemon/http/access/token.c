#include "daemon/http/access/token.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/assert_always.h"
#include "common/buffer.h"
#include "common/json.h"
#include "common/system/file.h"

#define HASH_BYTES         crypto_generichash_BYTES
#define SECRET_BYTES       32
#define TOKENS_LIMIT_BYTES ((size_t)64 << 20)

struct token {
    int64_t id;
    char name[TOKEN_NAME_BYTES];
    enum role role;
    double created_at, expires_at, used_at; /* 0: never */
    unsigned char hash[HASH_BYTES];
    double allowance, counted_at; /* requests left as of counted_at */
};

#define TOKENS_MAGIC 0x70ce2500u

struct tokens {
    unsigned magic;
    pthread_mutex_t mutex;
    char *path;
    struct token *items;
    size_t count, capacity;
    int64_t next;
};

static json_t *token_to_json(const struct token *k)
{
    return json_pack("{s:I, s:s, s:s, s:o, s:o, s:o}", "id", (json_int_t)k->id, "name", k->name,
                     "role", role_at(k->role)->name, "created_at", json_number(k->created_at),
                     "expires_at", json_number_or_null(k->expires_at > 0 ? k->expires_at : NAN),
                     "used_at", json_number_or_null(k->used_at > 0 ? k->used_at : NAN));
}

static void token_hash_of(const char *text, unsigned char hash[HASH_BYTES])
{
    crypto_generichash(hash, HASH_BYTES, (const unsigned char *)text, strlen(text), NULL, 0);
}

static struct token *tokens_append(struct tokens *t)
{
    t->items = must_alloc(array_grow(t->items, t->count, &t->capacity, sizeof *t->items));
    return memset(&t->items[t->count], 0, sizeof *t->items);
}

static int tokens_damaged(const struct tokens *t, struct error *e)
{
    return error_set(e, ERR_CORRUPT,
                     "%s is damaged: restore it from a backup, or remove it and create new "
                     "tokens with trainctl token create",
                     t->path);
}

static int token_read(struct tokens *t, const json_t *item, struct error *e)
{
    const char *name = json_string_value(json_object_get(item, "name"));
    const char *hash = json_string_value(json_object_get(item, "hash"));
    int role = role_of_token(json_string_value(json_object_get(item, "role")));
    struct token *k = tokens_append(t);
    size_t bytes = 0;

    k->id = json_integer_value(json_object_get(item, "id"));
    if (!name || !hash || role < 0 || k->id < 1 || k->id >= t->next ||
        sodium_hex2bin(k->hash, HASH_BYTES, hash, strlen(hash), NULL, &bytes, NULL) ||
        bytes != HASH_BYTES)
        return tokens_damaged(t, e);
    snprintf(k->name, sizeof k->name, "%s", name);
    k->role = (enum role)role;
    k->created_at = json_number_value(json_object_get(item, "created_at"));
    k->expires_at = json_number_value(json_object_get(item, "expires_at"));
    t->count++;
    return 0;
}

static int tokens_load(struct tokens *t, struct error *e)
{
    json_t *document = json_read_fd(file_open(t->path, e), t->path, TOKENS_LIMIT_BYTES, e), *item;
    int status = 0;
    size_t i;

    t->next = json_integer_value(json_object_get(document, "next"));
    const json_t *list = json_object_get(document, "tokens");
    if (!document && e->code != ERR_CORRUPT)
        status = -(int)e->code; /* the file may be intact, so it must not be overwritten */
    else if (t->next < 1 || !json_is_array(list))
        status = tokens_damaged(t, e);
    json_array_foreach (list, i, item)
        if (status == 0)
            status = token_read(t, item, e);
    json_decref(document);
    return status;
}

static int tokens_save(struct tokens *t, struct error *e)
{
    json_t *list = json_array();

    for (size_t i = 0; i < t->count; i++) {
        char hex[2 * HASH_BYTES + 1];
        json_t *item = token_to_json(&t->items[i]);
        json_object_del(item, "used_at");
        json_object_set_new(
            item, "hash",
            json_string(sodium_bin2hex(hex, sizeof hex, t->items[i].hash, HASH_BYTES)));
        json_array_append_new(list, item);
    }
    json_t *document = json_pack("{s:I, s:o}", "next", (json_int_t)t->next, "tokens", list);
    char *text = must_alloc(json_dumps(document, JSON_INDENT(1) | JSON_REAL_PRECISION(16)));
    int status = file_write_secret(t->path, text, strlen(text), e);
    free(text);
    json_decref(document);
    return status;
}

int tokens_open(const char *path, struct tokens **out, struct error *e)
{
    struct tokens *t;

    *out = NULL;
    if (sodium_init() < 0)
        return error_set(e, ERR_INTERNAL, "cannot initialise libsodium: no random numbers");
    t = xcalloc(1, sizeof *t);
    t->magic = TOKENS_MAGIC;
    t->path = xstrdup(path);
    pthread_mutex_init(&t->mutex, NULL);
    t->next = 1;
    int status = access(path, F_OK) == 0 ? tokens_load(t, e) : 0;
    if (status)
        tokens_close(t);
    else
        *out = t;
    return status;
}

void tokens_close(struct tokens *t)
{
    if (!t)
        return;
    assert_object_ends(t, TOKENS_MAGIC);
    pthread_mutex_destroy(&t->mutex);
    if (t->items)
        sodium_memzero(t->items, t->count * sizeof *t->items);
    free(t->items);
    free(t->path);
    free(t);
}

int tokens_create(struct tokens *t, const char *name, enum role role, double expires_at, double now,
                  char text[TOKEN_TEXT_BYTES], json_t **as_shown, struct error *e)
{
    unsigned char secret[SECRET_BYTES];
    int status = 0;

    assert_object(t, TOKENS_MAGIC);
    *as_shown = NULL;
    pthread_mutex_lock(&t->mutex);
    if (t->count >= TOKENS_MAX) {
        status = error_set(e, ERR_CONFLICT, "there are %d tokens: revoke some first", TOKENS_MAX);
    } else {
        struct token *k = tokens_append(t);
        k->id = t->next++;
        k->role = role;
        k->created_at = now;
        k->expires_at = expires_at;
        snprintf(k->name, sizeof k->name, "%s", name);
        randombytes_buf(secret, sizeof secret);
        int used = snprintf(text, TOKEN_TEXT_BYTES, "traind-%lld-", (long long)k->id);
        sodium_bin2base64(text + used, TOKEN_TEXT_BYTES - (size_t)used, secret, sizeof secret,
                          sodium_base64_VARIANT_URLSAFE_NO_PADDING);
        sodium_memzero(secret, sizeof secret);
        token_hash_of(text, k->hash);
        t->count++;
        status = tokens_save(t, e);
        if (status) {
            t->count--;
            sodium_memzero(text, TOKEN_TEXT_BYTES);
        } else {
            *as_shown = token_to_json(k);
        }
    }
    pthread_mutex_unlock(&t->mutex);
    return status;
}

json_t *tokens_list(struct tokens *t)
{
    json_t *list = json_array();

    assert_object(t, TOKENS_MAGIC);
    pthread_mutex_lock(&t->mutex);
    for (size_t i = 0; i < t->count; i++)
        json_array_append_new(list, token_to_json(&t->items[i]));
    pthread_mutex_unlock(&t->mutex);
    return list;
}

static int tokens_remove(struct tokens *t, int64_t id, struct error *e)
{
    size_t i = 0;

    while (i < t->count && t->items[i].id != id)
        i++;
    if (i == t->count)
        return error_set(e, ERR_NOT_FOUND, "there is no token %lld", (long long)id);
    struct token gone = t->items[i];
    memmove(&t->items[i], &t->items[i + 1], (t->count - i - 1) * sizeof gone);
    t->count--;
    int status = tokens_save(t, e);
    if (status) { /* restore it: it is still in the file */
        memmove(&t->items[i + 1], &t->items[i], (t->count - i) * sizeof gone);
        t->items[i] = gone;
        t->count++;
    }
    return status;
}

int tokens_revoke(struct tokens *t, int64_t id, struct error *e)
{
    assert_object(t, TOKENS_MAGIC);
    pthread_mutex_lock(&t->mutex);
    int status = tokens_remove(t, id, e);
    pthread_mutex_unlock(&t->mutex);
    return status;
}

static struct token *token_find_token(struct tokens *t, int64_t id)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->items[i].id == id)
            return &t->items[i];
    return NULL;
}

static bool token_has_expired(const struct token *k, double now)
{
    return k->expires_at > 0 && now >= k->expires_at;
}

bool tokens_alive(struct tokens *t, int64_t id, double now)
{
    assert_object(t, TOKENS_MAGIC);
    pthread_mutex_lock(&t->mutex);
    const struct token *k = token_find_token(t, id);
    bool alive = k && !token_has_expired(k, now);
    pthread_mutex_unlock(&t->mutex);
    return alive;
}

static bool token_within_rate(struct token *k, double now, double per_second)
{
    double passed = fmin(fmax(now - k->counted_at, 0), 1);

    if (per_second == 0)
        return true;
    k->counted_at = now;
    k->allowance = fmin(k->allowance + passed * per_second, per_second);
    if (k->allowance < 1)
        return false;
    k->allowance -= 1;
    return true;
}

static int token_check(struct tokens *t, const unsigned char hash[HASH_BYTES], int64_t id,
                       double now, int64_t per_second, struct token_owner *owner, struct error *e)
{
    static const unsigned char nobody[HASH_BYTES];
    struct token *k = token_find_token(t, id);

    if (sodium_memcmp(hash, k ? k->hash : nobody, HASH_BYTES) != 0 || !k)
        return error_set(e, ERR_NO_TOKEN, "this token is unknown or was revoked");
    if (token_has_expired(k, now))
        return error_set(e, ERR_NO_TOKEN,
                         "token %lld (%s) has expired: create a new one with trainctl token "
                         "create",
                         (long long)id, k->name);
    if (!token_within_rate(k, now, (double)per_second))
        return error_set(e, ERR_TOO_MANY,
                         "token %lld (%s) has made more than %lld requests within a second "
                         "(requests_per_second)",
                         (long long)id, k->name, (long long)per_second);
    k->used_at = now;
    owner->role = k->role;
    snprintf(owner->name, sizeof owner->name, "%s", k->name);
    return 0;
}

int tokens_check(struct tokens *t, const char *text, double now, int64_t per_second,
                 struct token_owner *owner, struct error *e)
{
    unsigned char hash[HASH_BYTES];
    char *end = NULL;
    bool formed = strncmp(text, "traind-", 7) == 0 && text[7] >= '1' && text[7] <= '9';

    assert_object(t, TOKENS_MAGIC);
    errno = 0;
    long long id = formed ? strtoll(text + 7, &end, 10) : 0;
    owner->id = !formed || errno || *end != '-' ? 0 : id;
    token_hash_of(text, hash);
    pthread_mutex_lock(&t->mutex);
    int status = token_check(t, hash, owner->id, now, per_second, owner, e);
    pthread_mutex_unlock(&t->mutex);
    return status;
}
