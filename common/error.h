/*
 * Errors: a code that decides what the caller does, and a message for the user.
 *
 * Functions that can fail return 0 or a negative error code and fill the caller's struct error. A
 * message names what is wrong and, where possible, what would be right. It has no newline and no
 * "error:" prefix; callers may prepend context with error_prefix().
 */
#pragma once

#define ERROR_TEXT_BYTES 2048

enum error_code {
    ERR_NONE = 0,
    ERR_INTERNAL,
    ERR_USAGE, /* a wrong command line */
    ERR_INVALID,
    ERR_UNSUPPORTED, /* valid, but not in this version */
    ERR_ENCODING,    /* an unknown content coding */
    ERR_TOO_LARGE,
    ERR_TOO_MANY,    /* a limit per client */
    ERR_NOT_FOUND,   /* no such job, file or route */
    ERR_METHOD,      /* the route does not have this HTTP method */
    ERR_NOT_ALLOWED, /* permissions or token */
    ERR_CONFLICT,    /* not possible in this state */
    ERR_CORRUPT,
    ERR_IO, /* a system call failed */
    ERR_NO_SPACE,
    ERR_NO_MEMORY,
    ERR_UNREACHABLE, /* no answer from the daemon */
    ERR_INTERRUPTED,
    ERR_NO_TOKEN, /* no valid token */
    ERR_BUSY,     /* in use: try again soon */
    ERR_COUNT
};

/* The table behind exit codes, HTTP statuses and problem+json types. */
struct error_type {
    const char *slug; /* "not-found": the last part of the problem type */
    const char *title;
    int http_status;
    int exit_code; /* of trainctl(1), EXIT STATUS */
};

struct error {
    enum error_code code;
    char text[ERROR_TEXT_BYTES];
};

/* Never NULL; ERR_INTERNAL's for an unknown code. */
const struct error_type *error_type(enum error_code code);

/* Fills *e (may be NULL) and returns -code, for `return error_set(...)`. */
int error_set(struct error *e, enum error_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* As error_set, appending strerror(errnum). ENOSPC, ENOENT, EACCES and ENOMEM set code, else it is
 * ERR_IO. */
int error_set_errno(struct error *e, int errnum, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Prepends "words: " to e's message and returns -e->code. */
int error_prefix(struct error *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

int error_append(struct error *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
