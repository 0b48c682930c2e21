#include "common/job/job_document.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/job/job_check.h"
#include "common/job/job_value.h"
#include "common/job/recipe/optimizers.h"
#include "common/job/recipe/preset.h"
#include "common/json.h"
#include "common/net/arch.h"
#include "common/text.h"
#include "common/xalloc.h"

/* A hostile document can have a hundred thousand unknown keys. */
#define UNKNOWN_KEYS_SHOWN 50

static void job_document_spec_report_unknown(const char *pointer, size_t *unknown,
                                             struct problems *problems)
{
    if (++*unknown > UNKNOWN_KEYS_SHOWN + 1)
        return;
    if (*unknown > UNKNOWN_KEYS_SHOWN)
        problems_add(problems, "", NULL, "has more than %d unknown keys", UNKNOWN_KEYS_SHOWN);
    else if (strcasestr(pointer, "gpu"))
        problems_add(problems, pointer, NULL, "is not a key: traind trains on CPUs, without GPUs");
    else
        problems_add(problems, pointer, job_option_nearest(pointer),
                     "is not a key of a job document");
}

/* Returns a suggestion such as "; did you mean {"arch": "resnet50"}?" with the group's first key
 * that accepts the value, or "". The caller frees it. */
static char *job_document_spec_meant(const char *group, const json_t *value)
{
    size_t length = strlen(group);
    const struct job_option *o;
    char *text = NULL, *meant = NULL;

    for (size_t i = 0; (o = job_option_at(i)) && !text && !json_is_boolean(value); i++) {
        struct problems ignored = {0};
        if (strncmp(o->pointer, group, length) == 0 && o->pointer[length] == '/' &&
            job_value_check(o, value, &ignored))
            text = json_to_text(value, JSON_ENCODE_ANY);
        if (text &&
            asprintf(&meant, "; did you mean {\"%s\": %s}?", o->pointer + length + 1, text) < 0)
            abort();
        problems_clear(&ignored);
    }
    free(text);
    return meant ? meant : xstrdup("");
}

static void job_document_spec_check_keys(const json_t *object, const char *parent, size_t *unknown,
                                         struct problems *problems)
{
    const char *key;
    json_t *value;

    json_object_foreach ((json_t *)(uintptr_t)object, key, value) {
        char *pointer = problem_pointer(parent, key);
        bool group = job_option_is_group(pointer);
        char *meant =
            group && !json_is_object(value) ? job_document_spec_meant(pointer, value) : NULL;
        if (meant)
            problems_add(problems, pointer, NULL,
                         "must be an object {...} of keys as in man train-job%s", meant);
        else if (group)
            job_document_spec_check_keys(value, pointer, unknown, problems);
        else if (!job_option_find(pointer))
            job_document_spec_report_unknown(pointer, unknown, problems);
        free(meant);
        free(pointer);
    }
}

static bool job_document_spec_is_complete(const json_t *document)
{
    for (size_t i = 0; job_option_at(i); i++)
        if (!json_get_at(document, job_option_at(i)->pointer))
            return false;
    return true;
}

/* Checks a preset like a document; all its problems together count as one problem of the job. */
static bool job_document_preset_right(const char *name, const json_t *preset,
                                      struct problems *problems)
{
    struct problems own = {0};
    size_t unknown = 0;

    job_document_spec_check_keys(preset, "", &unknown, &own);
    for (size_t i = 0; job_option_at(i); i++) {
        const json_t *value = json_get_at(preset, job_option_at(i)->pointer);
        if (value)
            job_value_check(job_option_at(i), value, &own);
    }
    bool right = own.count == 0;
    if (!right)
        problems_add(problems, "/preset", NULL, "the preset \"%s\" is invalid: %s: %s", name,
                     own.items[0].pointer, own.items[0].message);
    problems_clear(&own);
    return right;
}

static void job_document_unknown_preset(const char *name, job_preset_lookup *lookup, void *context,
                                        struct problems *problems)
{
    json_t *names = lookup ? lookup(NULL, context) : NULL, *known;
    struct suggest near = {.word = name};
    size_t i;

    json_array_foreach (names, i, known)
        text_suggest(&near, json_string_value(known));
    problems_add(problems, "/preset", near.best, "there is no preset \"%s\"", name);
    json_decref(names);
}

static const char *job_document_preset_name(const json_t *document)
{
    const json_t *value = json_object_get(document, "preset");
    struct problems ignored = {0};
    bool right = value && job_value_check(job_option_find("/preset"), value, &ignored);

    problems_clear(&ignored);
    return right ? json_string_value(value) : NULL;
}

static json_t *job_document_find_preset(const json_t *document, job_preset_lookup *lookup,
                                        void *context, int64_t *recipe_images,
                                        struct problems *problems)
{
    const char *name = job_document_preset_name(document);
    json_t *found = name && lookup ? lookup(name, context) : NULL;

    if (name && !found && !job_document_spec_is_complete(document))
        job_document_unknown_preset(name, lookup, context, problems);
    json_t *preset = found ? json_deep_copy(found) : NULL;
    json_decref(found);
    *recipe_images = json_integer_value(json_object_get(preset, "recipe_images"));
    preset_leave_job(preset);
    if (preset && !job_document_preset_right(name, preset, problems)) {
        json_decref(preset);
        return NULL;
    }
    return preset;
}

/* The optimiser is needed first, because it determines the defaults of other keys. */
static const struct optimizer_kind *job_document_find_optimizer(const json_t *document,
                                                                const json_t *preset)
{
    static const char pointer[] = "/optimizer/name";
    const json_t *given = json_get_at(document, pointer);
    const char *name = json_string_value(given ? given : json_get_at(preset, pointer));

    for (size_t i = 0; name && optimizer_kind_at(i); i++)
        if (strcmp(optimizer_kind_at(i)->name, name) == 0)
            return optimizer_kind_at(i);
    return optimizer_kind_at(JOB_OPTIMIZER_SGD);
}

static const struct arch *job_document_find_arch(const json_t *document, const json_t *preset)
{
    static const char pointer[] = "/model/arch";
    const json_t *given = json_get_at(document, pointer);
    const char *name = json_string_value(given ? given : json_get_at(preset, pointer));
    const struct arch *arch = name ? arch_find(name) : NULL;

    return arch ? arch : arch_at(0);
}

static json_t *job_document_default_of(const struct job_option *option,
                                       const struct optimizer_kind *optimizer,
                                       const struct arch *arch)
{
    const char *own = optimizer_default(optimizer, option->pointer);

    own = own ? own : arch_default(arch, option->pointer);
    return own ? must_alloc(json_loads(own, JSON_DECODE_ANY, NULL)) : job_option_default(option);
}

static void job_document_parse_row(const struct job_option *option, const json_t *document,
                                   const json_t *preset, struct job_spec *spec,
                                   struct problems *problems)
{
    const json_t *given = json_get_at(document, option->pointer);
    json_t *fallback =
        job_document_default_of(option, job_document_find_optimizer(document, preset),
                                job_document_find_arch(document, preset));
    const json_t *value = given ? given : json_get_at(preset, option->pointer);

    if (!value)
        value = fallback;
    if (given && !job_value_check(option, given, problems))
        value = fallback;
    job_value_store(option, value, spec);
    json_decref(fallback);
}

struct job_spec *job_spec_read(const json_t *document, job_preset_lookup *lookup, void *context,
                               struct problems *problems)
{
    size_t unknown = 0;

    if (!json_is_object(document)) {
        problems_add(problems, "", NULL, "must be a JSON object");
        return NULL;
    }
    struct job_spec *spec = xcalloc(1, sizeof *spec);
    job_document_spec_check_keys(document, "", &unknown, problems);
    json_t *preset =
        job_document_find_preset(document, lookup, context, &spec->recipe_images, problems);
    for (size_t i = 0; job_option_at(i); i++)
        job_document_parse_row(job_option_at(i), document, preset, spec, problems);
    json_decref(preset);
    spec->states_batch = json_get_at(document, "/batch_per_worker") != NULL;
    if (spec->cluster.workers_per_node > 0)
        job_batch_settle(spec, spec->states_batch, problems);
    job_check_together(spec, problems);
    return spec;
}

struct job_spec *job_spec_parse(const json_t *document, job_preset_lookup *lookup, void *context,
                                struct problems *problems)
{
    size_t before = problems->count;
    struct job_spec *spec = job_spec_read(document, lookup, context, problems);

    if (problems->count == before)
        return spec;
    job_spec_destroy(spec);
    return NULL;
}

json_t *job_spec_to_json(const struct job_spec *spec)
{
    json_t *document = json_object();

    for (size_t i = 0; job_option_at(i); i++) {
        const struct job_option *option = job_option_at(i);
        const char *key = option->pointer + 1, *slash = strchr(key, '/');
        json_t *parent = document;
        if (slash) {
            char group[64];
            snprintf(group, sizeof group, "%.*s", (int)(slash - key), key);
            if (!json_object_get(document, group))
                json_object_set_new(document, group, json_object());
            parent = json_object_get(document, group);
            key = slash + 1;
        }
        json_object_set_new(parent, key, job_value_load(option, spec));
    }
    return document;
}

void job_spec_destroy(struct job_spec *spec)
{
    if (!spec)
        return;
    for (size_t i = 0; job_option_at(i); i++)
        job_value_clear(job_option_at(i), spec);
    json_decref(spec->from_data);
    free(spec);
}

static const char *const type_names[] = {
    [JOB_OPTION_BOOLEAN] = "boolean", [JOB_OPTION_INTEGER] = "integer",
    [JOB_OPTION_NUMBER] = "number",   [JOB_OPTION_STRING] = "string",
    [JOB_OPTION_CHOICE] = "string",   [JOB_OPTION_ARCH] = "string",
    [JOB_OPTION_STRINGS] = "array",   [JOB_OPTION_NUMBERS] = "array",
    [JOB_OPTION_STEPS] = "array",     [JOB_OPTION_MAP] = "object",
    [JOB_OPTION_SIZES] = "integer",   [JOB_OPTION_NOTIFY] = "array",
};

static json_t *document_schema_bound_json(double value)
{
    return value == (double)(json_int_t)value ? json_integer((json_int_t)value)
                                              : json_number(value);
}

static void job_schema_add_range(json_t *schema, const struct job_option *o)
{
    json_object_set_new(schema, o->above_min ? "exclusiveMinimum" : "minimum",
                        document_schema_bound_json(o->min));
    json_object_set_new(schema, o->below_max ? "exclusiveMaximum" : "maximum",
                        document_schema_bound_json(o->max));
}

static void job_schema_add_length(json_t *schema, const struct job_option *o)
{
    json_object_set_new(schema, "minLength", document_schema_bound_json(o->min));
    json_object_set_new(schema, "maxLength", document_schema_bound_json(o->max));
    if (job_text_pattern(o->text))
        json_object_set_new(schema, "pattern", json_string(job_text_pattern(o->text)));
}

static void job_schema_add_choices(json_t *schema, const struct job_option *o)
{
    json_t *list = json_array();

    for (size_t i = 0; job_option_choice(o, i); i++)
        json_array_append_new(list, json_string(job_option_choice(o, i)));
    json_object_set_new(schema, "enum", list);
}

static void job_schema_add_elements(json_t *schema, const struct job_option *o)
{
    bool strings = o->type == JOB_OPTION_STRINGS, steps = o->type == JOB_OPTION_STEPS;
    json_t *element = json_pack("{s:s}", "type",
                                strings             ? "string"
                                : steps || o->whole ? "integer"
                                                    : "number");

    if (strings)
        job_schema_add_length(element, o);
    else
        job_schema_add_range(element, o);
    json_object_set_new(schema, "items", element);
    json_object_set_new(schema, "maxItems", json_integer(steps ? 2 : (json_int_t)o->most));
    if (steps)
        json_object_set_new(schema, "minItems", json_integer(2));
    if (o->unique)
        json_object_set_new(schema, "uniqueItems", json_true());
}

static void job_schema_add_map(json_t *schema, const struct job_option *o)
{
    json_t *value = json_pack("{s:s}", "type", "string");

    job_schema_add_length(value, o);
    json_object_set_new(schema, "maxProperties", json_integer((json_int_t)o->most));
    json_object_set_new(schema, "propertyNames",
                        json_pack("{s:i, s:I, s:s}", "minLength", 1, "maxLength",
                                  (json_int_t)o->name_max, "pattern", job_text_pattern(o->names)));
    json_object_set_new(schema, "additionalProperties", value);
}

static void job_schema_add_sizes(json_t *schema, const struct job_option *o)
{
    json_t *size = json_pack("{s:s}", "type", "integer");
    job_schema_add_range(size, o);
    json_t *pair = json_pack("{s:s, s:{s:s}, s:i, s:i}", "type", "array", "items", "type", "number",
                             "minItems", 2, "maxItems", 2);
    json_t *list = json_pack("{s:s, s:O, s:i, s:i}", "type", "array", "items", pair, "minItems", 1,
                             "maxItems", JOB_SIZES_MAX);
    json_t *ramp =
        json_pack("{s:s, s:b, s:[s, s, s], s:{s:O, s:O, s:o, s:{s:s, s:i}}}", "type", "object",
                  "additionalProperties", 0, "required", "from", "to", "ramp", "properties", "from",
                  size, "to", size, "ramp", pair, "multiple", "type", "integer", "minimum", 1);

    json_object_set_new(schema, "type", json_pack("[s, s, s]", "integer", "array", "object"));
    json_object_set_new(schema, "anyOf", json_pack("[o, o, o]", size, list, ramp));
}

static json_t *document_schema_describe(const struct job_option *o)
{
    return json_sprintf("%s%s%s%s%s%s%s", o->help, o->unit ? " Unit: " : "", o->unit ? o->unit : "",
                        o->unit ? "." : "",
                        o->from_data ? " Default: from the training data, otherwise " : "",
                        o->from_data ? o->fallback : "", o->from_data ? "." : "");
}

static json_t *job_schema_row(const struct job_option *o)
{
    json_t *schema = json_object(), *type = json_string(type_names[o->type]);
    bool words = o->choices && (o->type == JOB_OPTION_INTEGER || o->type == JOB_OPTION_STRINGS ||
                                o->type == JOB_OPTION_NUMBERS);
    char pattern[64];

    json_object_set_new(schema, "description", document_schema_describe(o));
    json_object_set_new(schema, "type",
                        o->nullable ? json_pack("[o, s]", type, "null")
                        : words     ? json_pack("[o, s]", type, "string")
                                    : type);
    if (!o->from_data)
        json_object_set_new(schema, "default", job_option_default(o));
    if (o->type == JOB_OPTION_CHOICE || o->type == JOB_OPTION_ARCH)
        job_schema_add_choices(schema, o);
    else if (o->type == JOB_OPTION_STRING)
        job_schema_add_length(schema, o);
    else if (o->type == JOB_OPTION_INTEGER || o->type == JOB_OPTION_NUMBER)
        job_schema_add_range(schema, o);
    else if (o->type == JOB_OPTION_MAP)
        job_schema_add_map(schema, o);
    else if (o->type == JOB_OPTION_SIZES)
        job_schema_add_sizes(schema, o);
    else if (o->type == JOB_OPTION_NOTIFY)
        json_object_update_new(schema, json_pack("{s:o, s:i}", "items", notice_rule_schema(),
                                                 "maxItems", NOTICE_RULES_MAX));
    else if (o->type != JOB_OPTION_BOOLEAN)
        job_schema_add_elements(schema, o);
    for (size_t i = 0, used = 0; words && o->choices[i]; i++) {
        used += (size_t)snprintf(pattern + used, sizeof pattern - used, "%s^%s$", i ? "|" : "",
                                 o->choices[i]);
        json_object_set_new(schema, "pattern", json_string(pattern));
    }
    return schema;
}

static json_t *job_schema_object(void)
{
    return json_pack("{s:s, s:b, s:{}}", "type", "object", "additionalProperties", 0, "properties");
}

/* Keys required for training and for evaluation, unless in the preset. Must match job_check.c. */
static json_t *job_schema_required_by_mode(void)
{
    return json_loads(
        "{\"if\": {\"required\": [\"mode\"], \"properties\": {\"mode\": {\"const\": \"eval\"}}},"
        " \"then\": {\"required\": [\"data\"], \"properties\": {"
        "\"data\": {\"required\": [\"eval\"], \"properties\": {\"eval\": {\"type\": "
        "\"string\"}}}},"
        " \"if\": {\"properties\": {\"data\": {\"properties\": {\"eval\": {\"const\": "
        "\"synthetic\"}}}}},"
        " \"else\": {\"required\": [\"model\"], \"properties\": {"
        "\"model\": {\"required\": [\"init\"], \"properties\": {\"init\": {\"type\": "
        "\"string\"}}}}}},"
        " \"else\": {\"required\": [\"data\"], \"properties\": {"
        "\"data\": {\"required\": [\"train\"], \"properties\": {\"train\": {\"type\": "
        "\"string\"}}}}}}",
        0, NULL);
}

json_t *job_spec_schema(void)
{
    json_t *schema =
        json_pack("{s:s, s:s, s:s}", "$schema", "https://json-schema.org/draft/2020-12/schema",
                  "title", "A traind job", "description", "Made from common/job/job_options.c.");
    json_t *object = job_schema_object(), *rules = job_schema_required_by_mode();

    json_object_update(schema, object);
    json_object_update(schema, rules);
    json_decref(object);
    json_decref(rules);
    json_t *top = json_object_get(schema, "properties");
    for (size_t i = 0; job_option_at(i); i++) {
        const struct job_option *o = job_option_at(i);
        const char *key = o->pointer + 1, *slash = strchr(key, '/');
        json_t *properties = top;
        if (slash) {
            char group[64];
            snprintf(group, sizeof group, "%.*s", (int)(slash - key), key);
            if (!json_object_get(top, group))
                json_object_set_new(top, group, job_schema_object());
            properties = json_object_get(json_object_get(top, group), "properties");
            key = slash + 1;
        }
        json_object_set_new(properties, key, job_schema_row(o));
    }
    return schema;
}
