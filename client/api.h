/* Requests to the daemon over TCP or its unix socket (client.server), on one connection kept for
 * the life of the process. A problem+json response becomes a struct error: the code follows the
 * problem's type, the text has a line per error of a document. Single-threaded. */
#pragma once

#include <curl/curl.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "common/error.h"

#define API_ANSWER_LIMIT_BYTES (256u * 1024 * 1024)

/* Writes a response of any length to out. Fails if nothing is received for
 * TRAINCTL_SILENCE_SECONDS. type (here and below): the expected Content-Type, a static string; any
 * other is an error, because the response comes from another program. */
int api_get_file(const char *path, const char *type, FILE *out, struct error *e);

/* Downloads into a file of mode 0600, which appears atomically, even if a signal ends the process.
 * *bytes: its size. */
int api_download(const char *path, const char *type, const char *file, double *bytes,
                 struct error *e);

/* answer is set to a new reference, NULL on error. body NULL: empty. */
int api_get(const char *path, json_t **answer, struct error *e);
int api_post(const char *path, const char *body, size_t bytes, json_t **answer, struct error *e);

/* GETs all pages of the list `list`; path must have a query. *answer is the first page with the
 * items of all pages; it is set even if a later page fails. */
int api_get_pages(const char *path, const char *list, json_t **answer, struct error *e);

/* method: GET, POST (with an empty body) or DELETE. The formatted path has at most 1,000 bytes. */
int api_call(const char *method, json_t **answer, struct error *e, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* method: POST or PATCH. */
int api_send_json(const char *method, const char *path, const json_t *body, json_t **answer,
                  struct error *e);

/* The caller frees *text, which is NUL-terminated. */
int api_get_text(const char *path, const char *type, char **text, size_t *bytes, struct error *e);

/* Prepares a GET whose response is read as it arrives. *headers may already contain headers; the
 * caller frees them after the call. On failure, libcurl's message is written to
 * words[CURL_ERROR_SIZE]. Returns NULL with *e. Free with curl_easy_cleanup. */
CURL *api_open(const char *path, const char *type, struct curl_slist **headers, char *words,
               struct error *e);

/* Returns whether the response being received has a 2xx status and the expected type. */
bool api_is_good(CURL *curl);

/* Returns the result of such a call: 0 after a good response. body: that of an error response. */
int api_outcome(CURL *curl, CURLcode code, const char *path, const char *words, const char *body,
                size_t bytes, struct error *e);

bool api_has_answered(void);

void api_hurry(long ms);

/* Returns the problem document of the last failed call, borrowed; NULL: none. */
const json_t *api_problem(void);

/* Formats a problem document: its detail, or a line per error. The caller frees the text. */
char *api_problem_words(const json_t *problem);

/* Fills *e from a problem document (NULL: none was sent) and the HTTP status. Returns -e->code. */
int api_problem_to_error(const json_t *problem, long status, struct error *e);

/* Returns the text of e; if e was truncated from the last problem, its full text. Borrowed. */
const char *api_error_words(const struct error *e);
