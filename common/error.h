/*
 * Errors: a code that decides what the caller does, and words for the person who reads them.
 *
 * Functions that can fail return 0 or a negative error code and fill the caller's struct error.
 * A message names what is wrong and, where it can be said, what would be right. It has no newline
 * and no "error:" in front; callers may put context before it with error_prefix().
 */
#pragma once

#define ERROR_TEXT_BYTES 2048

enum error_code {
    ERR_NONE = 0,
    ERR_INTERNAL,    /* a bug or an unexpected state */
    ERR_USAGE,       /* a command line that makes no sense */
    ERR_INVALID,     /* a document or value that is wrong */
    ERR_UNSUPPORTED, /* right, but not built in this version */
    ERR_ENCODING,    /* a body in a coding that is not undone */
    ERR_TOO_LARGE,   /* over a stated limit */
    ERR_TOO_MANY,    /* of a thing that one client may have so many of */
    ERR_NOT_FOUND,   /* a job, file or route that does not exist */
    ERR_METHOD,      /* a route that exists, but not for this HTTP method */
    ERR_NOT_ALLOWED, /* permission or token */
    ERR_CONFLICT,    /* the state does not allow it */
    ERR_CORRUPT,     /* data that fails its checksum or its format */
    ERR_IO,          /* the operating system said no */
    ERR_NO_SPACE,    /* a full disk */
    ERR_NO_MEMORY,
    ERR_UNREACHABLE, /* no answer from the daemon */
    ERR_INTERRUPTED, /* by a signal */
    ERR_NO_TOKEN,    /* a token is missing, wrong or expired */
    ERR_BUSY,        /* somebody else has it now: worth another try soon */
    ERR_COUNT
};

/* One row per error type: the table behind exit codes, HTTP statuses and problem+json types. */
struct error_type {
    const char *slug;  /* "not-found": the last part of the problem type */
    const char *title; /* "Not found" */
    int http_status;
    int exit_code; /* of trainctl(1), EXIT STATUS */
};

struct error {
    enum error_code code;
    char text[ERROR_TEXT_BYTES]; /* UTF-8, cut at the end if too long */
};

/* The row of a code (never NULL; an unknown code gives ERR_INTERNAL's). */
const struct error_type *error_type(enum error_code code);

/* Fills *e (which may be NULL) and returns -code, so that a caller can `return error_set(...)`. */
int error_set(struct error *e, enum error_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* As error_set, with the words of errnum behind the message; ENOSPC, ENOENT, EACCES and ENOMEM
 * choose their own code, anything else is ERR_IO. */
int error_set_errno(struct error *e, int errnum, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "words: " in front of the message already in *e and returns -e->code. */
int error_prefix(struct error *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts words behind it, as far as there is room. */
int error_append(struct error *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
