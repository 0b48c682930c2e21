/* Collects all problems of a document, so that the user sees all of them at once. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct problem {
    char *pointer;
    char *message;    /* for example "must be a number from 0 to 1, not \"fast\"" */
    char *suggestion; /* nearest valid key or value, or NULL */
};

struct problems {
    struct problem *items;
    size_t count, capacity;
};

void problems_add(struct problems *p, const char *pointer, const char *suggestion,
                  const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Adds copies of those problems of `from` whose key has no problem in p yet. */
void problems_extend(struct problems *p, const struct problems *from);
/* Returns the pointer of a key below parent, escaped as in RFC 6901. The caller frees it. */
char *problem_pointer(const char *parent, const char *key);

#define PROBLEM_KEY_BYTES 256
/* Writes a pointer the way users write keys: lr.base for "/lr/base", cluster.hosts[1]. Unusual keys
 * are quoted; "" becomes "the document". Truncated if too long. Returns text. */
const char *problem_key(const char *pointer, char text[PROBLEM_KEY_BYTES]);

/* Like problem_key, for a suggestion that is a pointer; others are values and are copied. */
const char *problem_suggestion(const char *suggestion, char text[PROBLEM_KEY_BYTES]);

void problems_clear(struct problems *p);

bool problems_about(const struct problems *p, const char *pointer);

bool problems_within(const struct problems *p, const char *group);

/* Returns [{"pointer", "message", "suggestion"?}], as in "errors" of problem+json. */
json_t *problems_to_json(const struct problems *p);

/* Returns "lr.base: must be ...; did you mean ...?", a problem per line. The caller frees it. */
char *problems_to_text(const struct problems *p);
