/* Server-sent events, WHATWG HTML "Parsing an event stream". */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/stream.h"

static bool append(char **text, size_t *used, size_t *room, const char *more, size_t bytes)
{
    if (*used + bytes + 1 > *room) {
        size_t want = 2 * (*used + bytes + 1);
        char *grown = realloc(*text, want);
        if (!grown)
            return false;
        *text = grown;
        *room = want;
    }
    memcpy(*text + *used, more, bytes);
    *used += bytes;
    (*text)[*used] = '\0';
    return true;
}

int sse_add(struct sse *sse, const char *text, size_t bytes)
{
    if (sse->from > 0) {
        memmove(sse->text, sse->text + sse->from, sse->bytes - sse->from);
        sse->bytes -= sse->from;
        sse->from = 0;
    }
    if (sse->bytes + sse->data_bytes + bytes > SSE_LIMIT_BYTES ||
        !append(&sse->text, &sse->bytes, &sse->room, text, bytes))
        return -1;
    return 0;
}

/* The next whole line, without its end; NULL: there is none yet. */
static char *next_line(struct sse *sse)
{
    char *line = sse->text ? sse->text + sse->from : NULL;
    char *end = line ? memchr(line, '\n', sse->bytes - sse->from) : NULL;

    if (!end)
        return NULL;
    sse->from = (size_t)(end + 1 - sse->text);
    if (end > line && end[-1] == '\r')
        end--;
    *end = '\0';
    return line;
}

static bool take_field(struct sse *sse, char *line)
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
        return (!sse->data_bytes ||
                append(&sse->data, &sse->data_bytes, &sse->data_room, "\n", 1)) &&
               append(&sse->data, &sse->data_bytes, &sse->data_room, value, strlen(value));
    return true;
}

int sse_next(struct sse *sse, const char **type, const char **data)
{
    static char type_of_last[sizeof sse->type];
    char *line;

    while ((line = next_line(sse))) {
        if (*line) {
            if (!take_field(sse, line))
                return 0;
            continue;
        }
        snprintf(type_of_last, sizeof type_of_last, "%s", sse->type);
        *type = type_of_last;
        *data = sse->data_bytes ? sse->data : "";
        sse->type[0] = '\0';
        sse->data_bytes = 0;
        if (sse->coming >= 0)
            sse->id = sse->coming;
        sse->coming = -1;
        return 1;
    }
    return 0;
}

void sse_clear(struct sse *sse)
{
    free(sse->text);
    free(sse->data);
    *sse = (struct sse){.coming = -1, .id = sse->id, .retry_ms = sse->retry_ms};
}
