/* A list of what is wrong with a document, so that a person learns all of it at once. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct problem {
    char *pointer;    /* RFC 6901: "/lr/base"; "" is the whole document */
    char *message;    /* "must be a number from 0 to 1, not \"fast\"" */
    char *suggestion; /* the nearest right key or value, or NULL */
};

/* Zero-initialise; free with problems_clear. */
struct problems {
    struct problem *items;
    size_t count, room;
};

/* suggestion may be NULL. All strings are copied. */
void problems_add(struct problems *p, const char *pointer, const char *suggestion,
                  const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Adds copies of those of from to p that are about keys without a problem in p so far. */
void problems_extend(struct problems *p, const struct problems *from);
/* The pointer of a key below parent, escaped as RFC 6901 says. The caller frees it. */
char *problem_pointer(const char *parent, const char *key);

#define PROBLEM_KEY_BYTES 256
/* The pointer as people write keys: "/lr/base" is lr.base, "/cluster/hosts/1" is cluster.hosts[1],
 * a key that is no word is quoted, "" is "the document". Cut where it is too long. Returns text. */
const char *problem_key(const char *pointer, char text[PROBLEM_KEY_BYTES]);

/* A suggestion likewise, if it is a pointer; else it is a value and returned as it is. */
const char *problem_suggestion(const char *suggestion, char text[PROBLEM_KEY_BYTES]);

void problems_clear(struct problems *p);

/* Whether the key, or a group that it lies in, has a problem already: it is not judged twice. */
bool problems_about(const struct problems *p, const char *pointer);

/* Whether the group, or a key in it, has one. */
bool problems_within(const struct problems *p, const char *group);

/* [{"pointer", "message", "suggestion"?}], as in problem+json's "errors". */
json_t *problems_to_json(const struct problems *p);

/* "lr.base: must be ...; did you mean ...?", one a line, for a terminal. The caller frees it. */
char *problems_to_text(const struct problems *p);
