#include "daemon/notice/send/sign.h"

#include <sodium.h>
#include <string.h>

void sign_body(const char *secret, const char *timestamp, const char *body, size_t bytes,
               char signature[SIGN_BYTES])
{
    crypto_auth_hmacsha256_state state;
    unsigned char hash[crypto_auth_hmacsha256_BYTES];

    crypto_auth_hmacsha256_init(&state, (const unsigned char *)secret, strlen(secret));
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)timestamp, strlen(timestamp));
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)".", 1);
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)body, bytes);
    crypto_auth_hmacsha256_final(&state, hash);
    memcpy(signature, "v1=", 3);
    sodium_bin2hex(signature + 3, SIGN_BYTES - 3, hash, sizeof hash);
    sodium_memzero(&state, sizeof state);
}
