/*
 * Bearer tokens: who may come over TCP, and what they may do. STATE/tokens.json (mode 0600) holds
 * their hashes (BLAKE2b of libsodium; a token is 256 random bits, so nothing slower is needed), and
 * never the tokens themselves. Thread-safe.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "daemon/http/access/role.h"

#define TOKENS_MAX       10000
#define TOKEN_TEXT_BYTES 96
#define TOKEN_NAME_MAX   60 /* characters */
#define TOKEN_NAME_BYTES (4 * TOKEN_NAME_MAX + 1)

struct tokens;

/* A file that is missing holds no tokens. ERR_CORRUPT: it is not what traind wrote. */
int tokens_open(const char *path, struct tokens **out, struct error *e);
void tokens_close(struct tokens *t); /* NULL is fine */

/* Makes a token and stores its hash, durably. text becomes "traind-ID-SECRET", which is told
 * nowhere else. expires_at: Unix seconds, 0: never. *shown: as tokens_list shows it, a new
 * reference. */
int tokens_create(struct tokens *t, const char *name, enum role role, double expires_at, double now,
                  char text[TOKEN_TEXT_BYTES], json_t **shown, struct error *e);

/* An array of {"id", "name", "role", "created_at", "expires_at", "used_at"}: a new reference.
 * used_at is null before the token's first use since the daemon was started. */
json_t *tokens_list(struct tokens *t);

/* Is the token still there, and has it not expired? For what goes on long after the request that
 * was checked: streams, downloads. */
bool tokens_alive(struct tokens *t, int64_t id, double now);

int tokens_revoke(struct tokens *t, int64_t id, struct error *e); /* ERR_NOT_FOUND */

/* Whose token a text is. */
struct token_owner {
    int64_t id;
    enum role role;
    char name[TOKEN_NAME_BYTES];
};

/* The token that text is. ERR_NO_TOKEN: none, or it has expired. ERR_TOO_MANY: it made
 * more than per_second requests (0: any number) within a second. Takes the same time for every
 * wrong token. */
int tokens_check(struct tokens *t, const char *text, double now, int64_t per_second,
                 struct token_owner *owner, struct error *e);
