#include "daemon/job/document.h"

#include <stdlib.h>
#include <string.h>

#include "common/job/job_document.h"
#include "common/job/recipe/preset.h"
#include "common/json.h"

struct job_spec *job_stored_spec(const struct store_job *job, struct error *e)
{
    struct problems problems = {0};
    json_t *document = json_document_parse(job->spec, strlen(job->spec), e);
    struct job_spec *spec = NULL;

    if (document)
        spec = job_spec_parse(document, preset_lookup, NULL, &problems);
    if (document && !spec) {
        char *text = problems_to_text(&problems);
        error_set(e, ERR_INVALID, "the stored job document is not valid in this version: %s",
                  text ? text : "");
        free(text);
    }
    problems_clear(&problems);
    json_decref(document);
    return spec;
}

char *job_json_text(json_t *value)
{
    char *text = value ? json_to_text(value, JSON_INDENT(2)) : NULL;
    json_decref(value);
    return text;
}
