#include "common/run/provenance.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/buffer.h"
#include "common/json.h"
#include "common/xalloc.h"

#define VALUE_LIMIT_BYTES 65536

enum fact_kind {
    FACT_ONE,
    FACT_TIME,
    FACT_MACHINES,
    FACT_FLAGS, /* a list of words per kind of machine; those that all of them have are left out */
    FACT_NAMED, /* an object of texts per kind of machine, each of which is a fact */
};

struct fact {
    const char *what; /* path of keys, separated by dots */
    const char *words;
    enum fact_kind kind;
    bool may_change_bits;
};

static const struct fact facts[] = {
    {"world_size",               "workers",                              FACT_ONE,      true },
    {"threads_per_worker",       "threads per worker",                   FACT_ONE,      true },
    {"batch_per_worker",         "batch per worker",                     FACT_ONE,      true },
    {"accumulate_steps",         "batches per step",                     FACT_ONE,      true },
    {"winograd",                 "convolutions by Winograd's algorithm", FACT_ONE,      true },
    {"gradients",                "way in which gradients are summed",    FACT_ONE,      true },
    {"weights.xxh128",           "initial weights",                      FACT_ONE,      true },
    {"data.train.images",        "training images",                      FACT_ONE,      true },
    {"data.train.xxh128",        "training data, by their index",        FACT_ONE,      true },
    {"data.train.changed",       "newest change of the training data",   FACT_TIME,     true },
    {"data.eval.images",         "evaluation images",                    FACT_ONE,      true },
    {"data.eval.xxh128",         "evaluation data, by their index",      FACT_ONE,      true },
    {"data.eval.changed",        "newest change of the evaluation data", FACT_TIME,     true },
    {"machines.version",         "version of train-worker",              FACT_MACHINES, true },
    {"machines.build_id",        "build of train-worker",                FACT_MACHINES, true },
    {"machines.kernels",         "kernels of the engine",                FACT_MACHINES, true },
    {"machines.bf16",            "instructions for bf16",                FACT_MACHINES, true },
    {"machines.openblas",        "OpenBLAS and its kernels",             FACT_MACHINES, true },
    {"machines.openblas_config", "how OpenBLAS was built",               FACT_MACHINES, true },
    {"machines.cpu",             "processor",                            FACT_MACHINES, true },
    {"machines.flags",           "processor features that not all have", FACT_FLAGS,    true },
    {"machines.microcode",       "microcode",                            FACT_MACHINES, false},
    {"machines.kernel",          "Linux",                                FACT_MACHINES, false},
    {"machines.mpi",             "MPI",                                  FACT_MACHINES, true },
    {"machines.ranks",           "workers on each kind of machine",      FACT_MACHINES, true },
    {"machines.hosts",           "machines",                             FACT_MACHINES, false},
    {"machines.libraries",       "build of ",                            FACT_NAMED,    true },
    {"machines.environment",     "variable ",                            FACT_NAMED,    true },
};

const json_t *provenance_attempt(const json_t *file)
{
    const json_t *attempts = json_object_get(file, "attempts"), *best = NULL, *attempt;
    size_t i;

    json_array_foreach (attempts, i, attempt)
        if (!best || json_is_object(json_object_get(attempt, "result")) ||
            !json_is_object(json_object_get(best, "result")))
            best = attempt;
    return best;
}

static char *provenance_fact_date(const json_t *value)
{
    char text[64] = "";
    time_t at = (time_t)json_number_value(value);
    struct tm tm;

    if (json_is_number(value) && gmtime_r(&at, &tm))
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &tm);
    return xstrdup(text);
}

static char *provenance_fact_text(const json_t *value, enum fact_kind kind)
{
    if (!value)
        return NULL;
    if (json_is_null(value))
        return xstrdup("none");
    if (kind == FACT_TIME)
        return provenance_fact_date(value);
    if (json_is_string(value))
        return xstrdup(*json_string_value(value) ? json_string_value(value) : "none");
    return json_to_text(value, JSON_ENCODE_ANY | JSON_COMPACT);
}

static const json_t *provenance_fact_find(const json_t *at, const char *path)
{
    char key[64];

    while (at && *path) {
        size_t length = strcspn(path, ".");
        if (length >= sizeof key)
            return NULL;
        memcpy(key, path, length);
        key[length] = '\0';
        at = json_object_get(at, key);
        path += length + (path[length] == '.');
    }
    return at;
}

/* Returns the distinct values of all machines as "a, b". name: a member, NULL: itself. */
static char *provenance_fact_of_machines(const json_t *attempt, const char *key, const char *name)
{
    struct buffer out = BUFFER(VALUE_LIMIT_BYTES);
    const json_t *machine, *machines = json_object_get(attempt, "machines");
    bool told = false;
    char *before = NULL;
    size_t i;

    json_array_foreach (machines, i, machine) {
        const json_t *value = json_object_get(machine, key);
        told = told || value;
        char *text = provenance_fact_text(name && value ? json_object_get(value, name) : value,
                                          FACT_MACHINES);
        if (!text && name && value)
            text = xstrdup("not there");
        if (text && (!before || strcmp(before, text) != 0))
            buffer_printf(&out, "%s%s", out.bytes ? ", " : "", text);
        free(before);
        before = text;
    }
    free(before);
    if (told)
        return buffer_take(&out, NULL);
    buffer_clear(&out);
    return NULL;
}

static char *provenance_fact_of(const json_t *attempt, const struct fact *fact, const char *name)
{
    if (!attempt)
        return NULL;
    if (fact->kind >= FACT_MACHINES)
        return provenance_fact_of_machines(attempt, fact->what + strlen("machines."), name);
    return provenance_fact_text(provenance_fact_find(attempt, fact->what), fact->kind);
}

static json_t *provenance_words_of(const char *text)
{
    static const char between[] = ", ";
    json_t *words = json_object();
    size_t length;

    for (text += strspn(text, between); *text; text += length + strspn(text + length, between)) {
        length = strcspn(text, between);
        char *word = xstrndup(text, length);
        json_object_set_new(words, word, json_true());
        free(word);
    }
    return words;
}

/* Returns the words that occur in fewer than `texts` texts; "none" if there are none. */
static json_t *provenance_rare_words(json_t *words, const json_t *counts, size_t texts)
{
    struct buffer out = BUFFER(VALUE_LIMIT_BYTES);
    const char *word;
    json_t *value;

    json_object_foreach (words, word, value)
        if ((size_t)json_integer_value(json_object_get(counts, word)) < texts)
            buffer_printf(&out, "%s%s", out.bytes ? " " : "", word);
    char *text = buffer_take(&out, NULL);
    json_t *taken = json_string(text && *text ? text : "none");
    free(text);
    return taken;
}

static json_t *provenance_without_common_words(json_t *texts)
{
    json_t *lists = json_array(), *counts = json_object(), *values = json_array(), *list, *value;
    const char *word;
    size_t i, known = 0;

    json_array_foreach (texts, i, value) {
        list = json_is_string(value) ? provenance_words_of(json_string_value(value)) : json_null();
        known += json_is_object(list);
        json_array_append_new(lists, list);
        json_object_foreach (list, word, value)
            json_object_set_new(
                counts, word, json_integer(json_integer_value(json_object_get(counts, word)) + 1));
    }
    json_array_foreach (lists, i, list)
        json_array_append_new(values, json_is_object(list)
                                          ? provenance_rare_words(list, counts, known)
                                          : json_null());
    json_decref(texts);
    json_decref(lists);
    json_decref(counts);
    return values;
}

static void provenance_compare_fact(const json_t *const *attempts, size_t count,
                                    const struct fact *fact, const char *name, json_t *differences)
{
    json_t *values = json_array();
    const char *first = NULL;
    bool differ = false;

    for (size_t i = 0; i < count; i++) {
        char *text = provenance_fact_of(attempts[i], fact, name);
        json_array_append_new(values, json_text_or_null(text));
        const char *kept = json_string_value(json_array_get(values, i));
        differ = differ || (kept && first && strcmp(kept, first) != 0);
        first = first ? first : kept;
        free(text);
    }
    if (differ && fact->kind == FACT_FLAGS)
        values = provenance_without_common_words(values);
    if (differ)
        json_array_append_new(
            differences, json_pack("{s:s++, s:s+, s:O, s:b}", "what", fact->what, name ? "." : "",
                                   name ? name : "", "words", fact->words, name ? name : "",
                                   "values", values, "may_change_bits", fact->may_change_bits));
    json_decref(values);
}

static json_t *provenance_names_of(const json_t *const *attempts, size_t count,
                                   const struct fact *fact)
{
    json_t *names = json_object();
    const json_t *machine;
    size_t k;

    for (size_t i = 0; i < count; i++)
        json_array_foreach (json_object_get(attempts[i], "machines"), k, machine)
            json_object_update(names, json_object_get(machine, fact->what + strlen("machines.")));
    return names;
}

json_t *provenance_differences(const json_t *const *attempts, size_t count)
{
    json_t *differences = json_array();
    const char *name;
    json_t *value;

    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
        if (facts[i].kind != FACT_NAMED) {
            provenance_compare_fact(attempts, count, &facts[i], NULL, differences);
            continue;
        }
        json_t *names = provenance_names_of(attempts, count, &facts[i]);
        json_object_foreach (names, name, value)
            provenance_compare_fact(attempts, count, &facts[i], name, differences);
        json_decref(names);
    }
    return differences;
}
