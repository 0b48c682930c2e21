#include "common/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct error_type types[ERR_COUNT] = {
    [ERR_NONE] = {"none",               "No error",                      200, 0  },
    [ERR_INTERNAL] = {"internal",           "Internal error",                500, 1  },
    [ERR_USAGE] = {"usage",              "Bad request",                   400, 2  },
    [ERR_INVALID] = {"invalid",            "Invalid document",              422, 2  },
    [ERR_UNSUPPORTED] = {"unsupported",        "Not supported by this version", 422, 2  },
    [ERR_ENCODING] = {"content-encoding",   "Content coding not supported",  415, 2  },
    [ERR_TOO_LARGE] = {"too-large",          "Too large",                     413, 2  },
    [ERR_TOO_MANY] = {"too-many",           "Too many requests",             429, 1  },
    [ERR_NOT_FOUND] = {"not-found",          "Not found",                     404, 3  },
    [ERR_METHOD] = {"method-not-allowed", "Method not allowed",            405, 2  },
    [ERR_NOT_ALLOWED] = {"not-allowed",        "Not allowed",                   403, 4  },
    [ERR_CONFLICT] = {"conflict",           "Conflict",                      409, 1  },
    [ERR_CORRUPT] = {"corrupt",            "Corrupt data",                  422, 1  },
    [ERR_IO] = {"io",                 "Input or output failed",        500, 1  },
    [ERR_NO_SPACE] = {"no-space",           "No space left",                 507, 1  },
    [ERR_NO_MEMORY] = {"no-memory",          "Out of memory",                 503, 1  },
    [ERR_UNREACHABLE] = {"unreachable",        "Unreachable",                   503, 5  },
    [ERR_INTERRUPTED] = {"interrupted",        "Interrupted",                   503, 130},
    [ERR_NO_TOKEN] = {"no-token",           "Token needed",                  401, 4  },
    [ERR_BUSY] = {"busy",               "Busy",                          503, 1  },
};

const struct error_type *error_type(enum error_code code)
{
    return &types[(unsigned)code < ERR_COUNT ? code : ERR_INTERNAL];
}

/* Formats into a separate buffer, because an argument may be e->text itself. */
static void error_set_text(struct error *e, const char *format, va_list args)
{
    char text[ERROR_TEXT_BYTES];

    vsnprintf(text, sizeof text, format, args);
    memcpy(e->text, text, strlen(text) + 1);
}

int error_set(struct error *e, enum error_code code, const char *format, ...)
{
    if (e) {
        va_list args;
        va_start(args, format);
        error_set_text(e, format, args);
        va_end(args);
        e->code = code;
    }
    return -(int)code;
}

static enum error_code error_code_of_errno(int errnum)
{
    switch (errnum) {
    case ENOSPC:
    case EDQUOT:
        return ERR_NO_SPACE;
    case ENOENT:
    case ENOTDIR:
        return ERR_NOT_FOUND;
    case EACCES:
    case EPERM:
        return ERR_NOT_ALLOWED;
    case ENOMEM:
        return ERR_NO_MEMORY;
    default:
        return ERR_IO;
    }
}

int error_set_errno(struct error *e, int errnum, const char *format, ...)
{
    enum error_code code = error_code_of_errno(errnum);

    if (e) {
        va_list args;
        size_t used;
        va_start(args, format);
        error_set_text(e, format, args);
        va_end(args);
        used = strlen(e->text);
        snprintf(e->text + used, sizeof e->text - used, ": %s", strerror(errnum));
        e->code = code;
    }
    return -(int)code;
}

int error_prefix(struct error *e, const char *format, ...)
{
    char words[ERROR_TEXT_BYTES / 2];
    va_list args;

    if (!e)
        return -(int)ERR_INTERNAL;
    va_start(args, format);
    vsnprintf(words, sizeof words - 2, format, args);
    va_end(args);
    strcat(words, ": ");

    size_t front = strlen(words), rest = strlen(e->text);
    if (front + rest > sizeof e->text - 1)
        rest = sizeof e->text - 1 - front; /* keep the beginning of a message that is too long */
    memmove(e->text + front, e->text, rest);
    memcpy(e->text, words, front);
    e->text[front + rest] = '\0';
    return -(int)e->code;
}

int error_append(struct error *e, const char *format, ...)
{
    size_t used = strlen(e->text);
    va_list args;

    va_start(args, format);
    vsnprintf(e->text + used, sizeof e->text - used, format, args);
    va_end(args);
    return -(int)e->code;
}
