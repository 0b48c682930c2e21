/* The table of job options as a JSON Schema (draft 2020-12). */
#include <stdio.h>
#include <string.h>

#include "common/job/job_document.h"
#include "common/job/job_options.h"
#include "common/json.h"

static const char *const type_names[] = {
    [JOB_OPTION_BOOLEAN] = "boolean", [JOB_OPTION_INTEGER] = "integer",
    [JOB_OPTION_NUMBER] = "number",   [JOB_OPTION_STRING] = "string",
    [JOB_OPTION_CHOICE] = "string",   [JOB_OPTION_ARCH] = "string",
    [JOB_OPTION_STRINGS] = "array",   [JOB_OPTION_NUMBERS] = "array",
    [JOB_OPTION_STEPS] = "array",     [JOB_OPTION_MAP] = "object",
    [JOB_OPTION_SIZES] = "integer",   [JOB_OPTION_NOTIFY] = "array",
};

static json_t *schema_bound_json(double value)
{
    return value == (double)(json_int_t)value ? json_integer((json_int_t)value)
                                              : json_number(value);
}

static void job_schema_add_range(json_t *schema, const struct job_option *o)
{
    json_object_set_new(schema, o->above_min ? "exclusiveMinimum" : "minimum",
                        schema_bound_json(o->min));
    json_object_set_new(schema, o->below_max ? "exclusiveMaximum" : "maximum",
                        schema_bound_json(o->max));
}

static void job_schema_add_length(json_t *schema, const struct job_option *o)
{
    json_object_set_new(schema, "minLength", schema_bound_json(o->min));
    json_object_set_new(schema, "maxLength", schema_bound_json(o->max));
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
    json_t *element = json_pack("{s:s}", "type", strings ? "string" : steps ? "integer" : "number");

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

/* A number, a list of pairs, or a ramp. */
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

static json_t *schema_describe(const struct job_option *o)
{
    return json_sprintf("%s%s%s%s%s%s%s", o->help, o->unit ? " Unit: " : "", o->unit ? o->unit : "",
                        o->unit ? "." : "",
                        o->from_data ? " Default: from the training data, otherwise " : "",
                        o->from_data ? o->fallback : "", o->from_data ? "." : "");
}

static json_t *job_schema_row(const struct job_option *o)
{
    json_t *schema = json_object(), *type = json_string(type_names[o->type]);
    bool words = o->type == JOB_OPTION_INTEGER && o->choices;
    char pattern[64];

    json_object_set_new(schema, "description", schema_describe(o));
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

/* What a training and what an evaluation cannot do without; a preset may supply anything else.
 * job_check.c has the same rules. */
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
