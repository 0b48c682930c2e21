#include "common/document.h"

#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/json.h"
#include "common/text.h"
#include "common/xalloc.h"

bool document_has_word(const char *const *words, const char *word)
{
    for (; word && *words; words++)
        if (strcmp(word, *words) == 0)
            return true;
    return false;
}

static bool document_value_right(const struct document_key *k, const json_t *value)
{
    const char *text = json_string_value(value);
    double number = json_number_value(value);

    switch (k->type) {
    case DOCUMENT_WORD:
        return document_has_word(k->choices, text);
    case DOCUMENT_INTEGER:
        return json_is_integer(value) && json_integer_value(value) >= k->min &&
               json_integer_value(value) <= k->max;
    case DOCUMENT_NUMBER:
        return json_is_number(value) && number >= (double)k->min && number <= (double)k->max;
    case DOCUMENT_TEXT:
        return text && *text && strlen(text) == json_string_length(value);
    default:
        return true;
    }
}

static void document_refuse_value(const struct document_key *k, const json_t *value,
                                  const char *pointer, struct problems *problems)
{
    struct suggest near = {.word = json_string_value(value)};
    struct buffer list = BUFFER(4096);
    char *shown = value ? json_excerpt(value) : NULL;

    for (const char *const *word = k->choices; word && *word; word++) {
        if (near.word)
            text_suggest(&near, *word);
        buffer_printf(&list, "%s%s", word == k->choices ? "" : ", ", *word);
    }
    if (k->expects)
        problems_add(problems, pointer, near.best, "%s", k->expects);
    else if (k->type == DOCUMENT_WORD)
        problems_add(problems, pointer, near.best, "must be one of %s%s%s", list.data,
                     shown ? ", not " : "", shown ? shown : "");
    else
        problems_add(problems, pointer, NULL, "must be a %snumber from %lld to %lld",
                     k->type == DOCUMENT_INTEGER ? "whole " : "", (long long)k->min,
                     (long long)k->max);
    free(shown);
    buffer_clear(&list);
}

static void document_check_names(const json_t *object, const char *pointer,
                                 const struct document_key *keys, const char *unknown,
                                 struct problems *problems)
{
    const char *name;
    json_t *value;

    json_object_foreach ((json_t *)(uintptr_t)object, name, value) {
        struct suggest near = {.word = name};
        const struct document_key *k = keys;
        while (k->name && strcmp(k->name, name) != 0)
            text_suggest(&near, k++->name);
        if (k->name)
            continue;
        if (problems->count >= DOCUMENT_PROBLEMS_MAX)
            return;
        char *at = problem_pointer(pointer, name);
        problems_add(problems, at, near.best, "%s", unknown);
        free(at);
    }
}

void document_check(json_t *object, const char *pointer, const struct document_key *keys,
                    const char *unknown, struct problems *problems)
{
    document_check_names(object, pointer, keys, unknown, problems);
    for (const struct document_key *k = keys; k->name; k++) {
        const json_t *value = json_object_get(object, k->name);
        if (!value && k->fallback) {
            json_object_set_new(object, k->name,
                                must_alloc(json_loads(k->fallback, JSON_DECODE_ANY, NULL)));
        } else if ((value || k->required) && !document_value_right(k, value)) {
            char *at = problem_pointer(pointer, k->name);
            document_refuse_value(k, value, at, problems);
            free(at);
        }
    }
}
