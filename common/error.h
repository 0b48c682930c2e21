/*
 * Errors: a code for the program, and a message for the user.
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
    ERR_USAGE, /* invalid command line */
    ERR_INVALID,
    ERR_UNSUPPORTED, /* valid, but not supported by this version */
    ERR_ENCODING,    /* unknown content coding */
    ERR_TOO_LARGE,
    ERR_TOO_MANY,    /* limit per client exceeded */
    ERR_NOT_FOUND,   /* no such job, file or route */
    ERR_METHOD,      /* HTTP method not supported by the route */
    ERR_NOT_ALLOWED, /* permission denied, by the system or the token's role */
    ERR_CONFLICT,    /* not possible in the current state */
    ERR_CORRUPT,
    ERR_IO, /* a system call failed */
    ERR_NO_SPACE,
    ERR_NO_MEMORY,
    ERR_UNREACHABLE, /* no answer from the daemon */
    ERR_INTERRUPTED,
    ERR_NO_TOKEN, /* missing or invalid token */
    ERR_BUSY,     /* in use; try again later */
    ERR_COUNT
};

struct error_type {
    const char *slug; /* last part of the problem+json type, for example "not-found" */
    const char *title;
    int http_status;
    int exit_code; /* listed in trainctl(1), EXIT STATUS */
};

struct error {
    enum error_code code;
    char text[ERROR_TEXT_BYTES];
};

/* Never returns NULL; for an unknown code returns that of ERR_INTERNAL. */
const struct error_type *error_type(enum error_code code);

/* Fills *e (e may be NULL) and returns -code, for use in `return error_set(...)`. */
int error_set(struct error *e, enum error_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Like error_set, but appends strerror(errnum). ENOSPC, ENOENT, EACCES and ENOMEM determine the
 * code; for others it is ERR_IO. */
int error_set_errno(struct error *e, int errnum, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Prepends the formatted text and ": " to the message of e, and returns -e->code. */
int error_prefix(struct error *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

int error_append(struct error *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
