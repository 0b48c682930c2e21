/* Job documents for tests, written as text. */
#pragma once

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/job/job_document.h"
#include "common/job/recipe/preset.h"

/* JSON in which ' may stand for ". */
static inline json_t *json_of(const char *text)
{
    json_error_t where;
    char *copy = strdup(text);

    for (char *c = copy; *c; c++)
        if (*c == '\'')
            *c = '"';
    json_t *json = json_loads(copy, JSON_DECODE_ANY, &where);
    cr_assert_not_null(json, "the test's own JSON is wrong: %s in %s", where.text, text);
    free(copy);
    return json;
}

static inline struct job_spec *job_parse(const char *text, struct problems *problems)
{
    json_t *document = json_of(text);
    struct job_spec *spec = job_spec_parse(document, preset_lookup, NULL, problems);
    json_decref(document);
    return spec;
}

/* A document that must be right. */
static inline struct job_spec *job_of(const char *text)
{
    struct problems problems = {0};
    struct job_spec *spec = job_parse(text, &problems);
    char *words = problems_to_text(&problems);

    cr_assert_not_null(spec, "%s: %s", text, words);
    free(words);
    return spec;
}

static inline const struct problem *problem_at(const struct problems *problems, const char *pointer)
{
    for (size_t i = 0; i < problems->count; i++)
        if (strcmp(problems->items[i].pointer, pointer) == 0)
            return &problems->items[i];
    return NULL;
}

static inline void use_source_presets(void)
{
    char path[4096];
    const char *top = getenv("top_srcdir");

    snprintf(path, sizeof path, "%s/etc/presets", top ? top : ".");
    setenv("TRAIND_PRESETS", path, 1);
}
