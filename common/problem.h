/* What is wrong with a document, collected so that the user sees all of it at once. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct problem {
    char *pointer;
    char *message;    /* "must be a number from 0 to 1, not \"fast\"" */
    char *suggestion; /* the nearest right key or value, or NULL */
};

struct problems {
    struct problem *items;
    size_t count, room;
};

void problems_add(struct problems *p, const char *pointer, const char *suggestion,
                  const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Adds copies of from's problems about keys that have none in p. */
void problems_extend(struct problems *p, const struct problems *from);
/* The pointer of a key below parent, escaped (RFC 6901). The caller frees it. */
char *problem_pointer(const char *parent, const char *key);

#define PROBLEM_KEY_BYTES 256
/* The pointer as users write keys: lr.base for "/lr/base", cluster.hosts[1]; unusual keys are
 * quoted, "" is "the document". Cut if too long. Returns text. */
const char *problem_key(const char *pointer, char text[PROBLEM_KEY_BYTES]);

/* The same for a suggestion that is a pointer; other suggestions are values and stay as they
 * are. */
const char *problem_suggestion(const char *suggestion, char text[PROBLEM_KEY_BYTES]);

void problems_clear(struct problems *p);

bool problems_about(const struct problems *p, const char *pointer);

/* Whether the group or a key in it has one. */
bool problems_within(const struct problems *p, const char *group);

/* [{"pointer", "message", "suggestion"?}], as in problem+json's "errors". */
json_t *problems_to_json(const struct problems *p);

/* "lr.base: must be ...; did you mean ...?", one per line. The caller frees it. */
char *problems_to_text(const struct problems *p);
