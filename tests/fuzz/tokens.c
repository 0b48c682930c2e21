/* STATE/tokens.json: what is opened can be listed, asked, added to and read again. */
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon/http/access/token.h"
#include "tests/fuzz/fuzz.h"

static size_t count_tokens(struct tokens *t)
{
    json_t *list = tokens_list(t);
    size_t count = json_array_size(list);

    json_decref(list);
    return count;
}

int fuzz_tokens(const uint8_t *data, size_t bytes)
{
    const char *path = fuzz_file("tokens.json", data, bytes);
    struct tokens *t, *again;
    struct token_owner owner;
    struct error e;
    char text[TOKEN_TEXT_BYTES];
    json_t *shown;

    if (tokens_open(path, &t, &e))
        return 0;
    size_t count = count_tokens(t);
    FUZZ_CHECK(count <= TOKENS_MAX, "%zu tokens", count);
    FUZZ_CHECK(tokens_check(t, "traind-1-x", 1e9, 0, &owner, &e), "a wrong token is taken");
    if (tokens_create(t, "new", ROLE_READ, 0, 1e9, text, &shown, &e) == 0) {
        json_decref(shown);
        FUZZ_CHECK(tokens_check(t, text, 2e9, 0, &owner, &e) == 0, "a new token: %s", e.text);
        FUZZ_CHECK(tokens_open(path, &again, &e) == 0, "what was written: %s", e.text);
        FUZZ_CHECK(count_tokens(again) == count + 1, "%zu tokens of %zu", count_tokens(again),
                   count + 1);
        tokens_close(again);
    }
    tokens_close(t);
    return 0;
}
