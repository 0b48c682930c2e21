/* Server-sent events, WHATWG HTML "Parsing an event stream". */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/stream.h"

void sse_init(struct sse *sse, long long after, long retry_ms)
{
    *sse = (struct sse){.text = BUFFER(SSE_LIMIT_BYTES),
                        .data = BUFFER(SSE_LIMIT_BYTES),
                        .coming = -1,
                        .id = after,
                        .retry_ms = retry_ms};
}

int sse_add(struct sse *sse, const char *text, size_t bytes)
{
    buffer_drop(&sse->text, sse->from);
    sse->from = 0;
    if (sse->text.bytes + sse->data.bytes + bytes > SSE_LIMIT_BYTES ||
        !buffer_append(&sse->text, text, bytes))
        return -1;
    return 0;
}

/* The next whole line, without its end; NULL: there is none yet. */
static char *sse_next_line(struct sse *sse)
{
    char *line = sse->text.data ? sse->text.data + sse->from : NULL;
    char *end = line ? memchr(line, '\n', sse->text.bytes - sse->from) : NULL;

    if (!end)
        return NULL;
    sse->from = (size_t)(end + 1 - sse->text.data);
    if (end > line && end[-1] == '\r')
        end--;
    *end = '\0';
    return line;
}

static bool sse_parse_field(struct sse *sse, char *line)
{
    char *value = line + strcspn(line, ":");

    if (*value) {
        *value++ = '\0';
        value += *value == ' ';
    }
    if (strcmp(line, "id") == 0)
        sse->coming = strtoll(value, NULL, 10);
    else if (strcmp(line, "event") == 0)
        snprintf(sse->type, sizeof sse->type, "%s", value);
    else if (strcmp(line, "retry") == 0)
        sse->retry_ms = strtol(value, NULL, 10);
    else if (strcmp(line, "data") == 0)
        return (!sse->data.bytes || buffer_append(&sse->data, "\n", 1)) &&
               buffer_append(&sse->data, value, strlen(value));
    return true;
}

int sse_next(struct sse *sse, const char **type, const char **data)
{
    static char type_of_last[sizeof sse->type];
    char *line;

    while ((line = sse_next_line(sse))) {
        if (*line) {
            if (!sse_parse_field(sse, line))
                return 0;
            continue;
        }
        snprintf(type_of_last, sizeof type_of_last, "%s", sse->type);
        *type = type_of_last;
        *data = sse->data.bytes ? sse->data.data : "";
        sse->type[0] = '\0';
        sse->data.bytes = 0;
        if (sse->coming >= 0)
            sse->id = sse->coming;
        sse->coming = -1;
        return 1;
    }
    return 0;
}

void sse_clear(struct sse *sse)
{
    buffer_clear(&sse->text);
    buffer_clear(&sse->data);
    sse_init(sse, sse->id, sse->retry_ms);
}
