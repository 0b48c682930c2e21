/* Bearer tokens for access over TCP. STATE/tokens.json (mode 0600) contains only their hashes
 * (libsodium's BLAKE2b; a token is 256 random bits, so a slow hash is unnecessary). Thread-safe. */
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

/* A missing file means no tokens. ERR_CORRUPT: not written by traind. */
int tokens_open(const char *path, struct tokens **out, struct error *e);
void tokens_close(struct tokens *t); /* NULL-safe */

/* Creates a token and stores its hash durably. text is set to "traind-ID-SECRET", which is not
 * stored. expires_at: Unix seconds, 0: never. *shown: an item as in tokens_list, a new
 * reference. */
int tokens_create(struct tokens *t, const char *name, enum role role, double expires_at, double now,
                  char text[TOKEN_TEXT_BYTES], json_t **shown, struct error *e);

/* Returns a new array of {"id", "name", "role", "created_at", "expires_at", "used_at"}. used_at is
 * null until the token is used after the daemon's start. */
json_t *tokens_list(struct tokens *t);

/* Returns whether the token exists and has not expired; for streams and downloads, which outlive
 * the check at the start of their request. */
bool tokens_alive(struct tokens *t, int64_t id, double now);

int tokens_revoke(struct tokens *t, int64_t id, struct error *e); /* ERR_NOT_FOUND */

struct token_owner {
    int64_t id;
    enum role role;
    char name[TOKEN_NAME_BYTES];
};

/* Looks up a token by its text. ERR_NO_TOKEN: unknown or expired. ERR_TOO_MANY: more than
 * per_second requests (0: unlimited) within a second. Takes the same time for every invalid
 * token. */
int tokens_check(struct tokens *t, const char *text, double now, int64_t per_second,
                 struct token_owner *owner, struct error *e);
