/* The table of a job's fields against the API's schema of a job. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/job/job_fields.h"

static const struct {
    const char *name, *form;
} fields[] = {
#define ROW(name, storage, column, form, notice) {#name, #form},
    JOB_FIELDS(ROW) JOB_DOCUMENTS(ROW)
#undef ROW
};
#define FIELDS (sizeof fields / sizeof fields[0])

/* The JSON type of a form, and whether the schema allows null; NULL: anything. */
static const struct {
    const char *form, *type;
    int null; /* -1: either */
} forms[] = {
    {"id",       "integer", 0 },
    {"string",   "string",  -1},
    {"integer",  "integer", 0 },
    {"positive", "integer", 1 },
    {"known",    "integer", 1 },
    {"real",     "number",  1 },
    {"time",     "number",  -1},
    {"rounded",  "number",  1 },
};

static json_t *load_schemas(void)
{
    const char *top = getenv("top_srcdir");
    char path[4096];

    snprintf(path, sizeof path, "%s/schema/api/jobs.json", top ? top : ".");
    json_t *file = json_load_file(path, 0, NULL);
    cr_assert_not_null(file, "%s", path);
    return json_object_get(file, "schemas");
}

static bool contains(const json_t *list, const char *word)
{
    const json_t *item;
    size_t i;

    if (json_is_string(list))
        return strcmp(json_string_value(list), word) == 0;
    json_array_foreach (list, i, item)
        if (strcmp(json_string_value(item), word) == 0)
            return true;
    return false;
}

static const char *form_of(const char *name)
{
    for (size_t i = 0; i < FIELDS; i++)
        if (strcmp(fields[i].name, name) == 0 && strcmp(fields[i].form, "hidden") != 0)
            return fields[i].form;
    return NULL;
}

Test(job_fields, the_schema_describes_every_field)
{
    const json_t *schemas = load_schemas(), *job = json_object_get(schemas, "Job"),
                 *all = json_object_get(schemas, "JobMembers"), *schema;

    for (size_t i = 0; i < FIELDS; i++) {
        const char *name = fields[i].name, *form = fields[i].form;
        if (strcmp(form, "hidden") == 0)
            continue;
        bool document = strcmp(name, "spec") == 0 || strcmp(name, "plan") == 0;
        const json_t *of = document ? job : all;
        schema = json_object_get(json_object_get(of, "properties"), name);
        cr_expect_not_null(schema, "schema/api/jobs.json lacks %s", name);
        bool always = document || !strstr(form, "_if");
        cr_expect_eq(contains(json_object_get(of, "required"), name), always, "%s in \"required\"",
                     name);
        const json_t *type = json_object_get(schema, "type");
        for (size_t k = 0; k < sizeof forms / sizeof forms[0]; k++) {
            if (strcmp(forms[k].form, form) != 0)
                continue;
            cr_expect(contains(type, forms[k].type), "%s is no %s", name, forms[k].type);
            if (forms[k].null >= 0)
                cr_expect_eq(contains(type, "null"), forms[k].null != 0, "null for %s", name);
        }
    }
}

Test(job_fields, the_table_has_every_field_of_the_schema)
{
    const json_t *properties =
        json_object_get(json_object_get(load_schemas(), "JobMembers"), "properties");
    const char *name;
    const json_t *schema;
    size_t found = 0;

    json_object_foreach ((json_t *)properties, name, schema) {
        /* These two only GET /v1/jobs/{id} has. */
        if (strcmp(name, "target") == 0 || strcmp(name, "gradients") == 0)
            continue;
        cr_expect_not_null(form_of(name), "common/job/job_fields.h lacks %s", name);
        found++;
    }
    cr_expect_gt(found, 40);
}
