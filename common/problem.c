#include "common/problem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/xalloc.h"

void problems_add(struct problems *p, const char *pointer, const char *suggestion,
                  const char *format, ...)
{
    va_list args;
    char *message;

    va_start(args, format);
    if (vasprintf(&message, format, args) < 0)
        must_alloc(NULL);
    va_end(args);
    p->items = must_alloc(array_grow(p->items, p->count, &p->capacity, sizeof *p->items));
    p->items[p->count++] = (struct problem){
        .pointer = xstrdup(pointer),
        .message = message,
        .suggestion = xstrdup_or_null(suggestion),
    };
}

void problems_extend(struct problems *p, const struct problems *from)
{
    size_t count = p->count;

    for (size_t i = 0; i < from->count; i++) {
        const struct problems before = {.items = p->items, .count = count};
        if (!problems_about(&before, from->items[i].pointer))
            problems_add(p, from->items[i].pointer, from->items[i].suggestion, "%s",
                         from->items[i].message);
    }
}

char *problem_pointer(const char *parent, const char *key)
{
    char *pointer = xmalloc(strlen(parent) + 2 * strlen(key) + 2);
    char *end = stpcpy(stpcpy(pointer, parent), "/");
    for (; *key; key++) {
        if (*key == '~' || *key == '/') {
            *end++ = '~';
            *end++ = *key == '~' ? '0' : '1';
        } else {
            *end++ = *key;
        }
    }
    *end = '\0';
    return pointer;
}

static void problem_key_add_step(FILE *out, const char *step, const char *end, bool first)
{
    size_t length = (size_t)(end - step);
    bool index = length && strspn(step, "0123456789") == length;
    bool word = length && strspn(step, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_-"
                                       "abcdefghijklmnopqrstuvwxyz") == length;

    if (index && !first) {
        fprintf(out, "[%.*s]", (int)length, step);
        return;
    }
    fputs(first ? "" : ".", out);
    fputs(word ? "" : "\"", out);
    for (; step < end; step++) {
        bool escaped = *step == '~' && step + 1 < end;
        step += escaped;
        fputc(escaped ? (*step == '1' ? '/' : '~') : *step, out);
    }
    fputs(word ? "" : "\"", out);
}

const char *problem_key(const char *pointer, char text[PROBLEM_KEY_BYTES])
{
    FILE *out = must_alloc(fmemopen(text, PROBLEM_KEY_BYTES, "w"));

    if (*pointer != '/')
        fputs("the document", out);
    for (const char *step = pointer, *end; *step == '/'; step = end) {
        end = strchrnul(step + 1, '/');
        problem_key_add_step(out, step + 1, end, step == pointer);
    }
    fclose(out);
    text[PROBLEM_KEY_BYTES - 1] = '\0';
    return text;
}

const char *problem_suggestion(const char *suggestion, char text[PROBLEM_KEY_BYTES])
{
    return *suggestion == '/' ? problem_key(suggestion, text) : suggestion;
}

void problems_clear(struct problems *p)
{
    for (size_t i = 0; i < p->count; i++) {
        free(p->items[i].pointer);
        free(p->items[i].message);
        free(p->items[i].suggestion);
    }
    free(p->items);
    *p = (struct problems){0};
}

bool problems_about(const struct problems *p, const char *pointer)
{
    for (size_t i = 0; i < p->count; i++) {
        const char *other = p->items[i].pointer;
        size_t length = strlen(other);
        if (length && strncmp(pointer, other, length) == 0 &&
            (pointer[length] == '\0' || pointer[length] == '/'))
            return true;
    }
    return false;
}

bool problems_within(const struct problems *p, const char *group)
{
    size_t length = strlen(group);

    for (size_t i = 0; i < p->count; i++) {
        const char *pointer = p->items[i].pointer;
        if (strncmp(pointer, group, length) == 0 &&
            (pointer[length] == '\0' || pointer[length] == '/'))
            return true;
    }
    return false;
}

json_t *problems_to_json(const struct problems *p)
{
    json_t *list = json_array();

    for (size_t i = 0; i < p->count; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:s*}", "pointer", p->items[i].pointer,
                                              "message", p->items[i].message, "suggestion",
                                              p->items[i].suggestion));
    return list;
}

char *problems_to_text(const struct problems *p)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = must_alloc(open_memstream(&text, &bytes));

    for (size_t i = 0; i < p->count; i++) {
        const struct problem *item = &p->items[i];
        char key[PROBLEM_KEY_BYTES];
        fprintf(out, "%s: %s", problem_key(item->pointer, key), item->message);
        if (item->suggestion)
            fprintf(out, "; did you mean %s?", problem_suggestion(item->suggestion, key));
        fputc('\n', out);
    }
    fclose(out);
    return must_alloc(text);
}
