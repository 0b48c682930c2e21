#include "daemon/job/document.h"

#include "common/json.h"

char *job_json_text(json_t *value)
{
    char *text = value ? json_to_text(value, JSON_INDENT(2)) : NULL;
    json_decref(value);
    return text;
}
