/* What an audit has found. */
#include <stdarg.h>
#include <stdio.h>

#include "prep/audit/audit.h"

static const char *const status_names[] = {"ok", "warning", "problem"};

void audit_say(struct audit *a, const char *check, enum audit_status status, json_t *values,
               const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    json_t *text = json_vsprintf(format, arguments);
    va_end(arguments);
    json_array_append_new(a->checks, json_pack("{s:s, s:s, s:o, s:o}", "check", check, "status",
                                               status_names[status], "text",
                                               text ? text : json_string("(not UTF-8)"), "values",
                                               values ? values : json_object()));
}

void audit_find(struct audit *a, const char *format, ...)
{
    char text[ERROR_TEXT_BYTES + 256];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&a->lock);
    if (json_array_size(a->findings) < AUDIT_FINDINGS_MAX)
        json_array_append_new(a->findings, json_string(text));
    pthread_mutex_unlock(&a->lock);
}
