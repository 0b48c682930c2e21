/*
 * Requests to the daemon over TCP or its unix socket (client.server). One connection is kept for
 * the life of the process. A problem+json answer becomes a struct error: the code by the
 * problem's type, the text with a line per error of a document. Single-threaded.
 */
#pragma once

#include <curl/curl.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "common/error.h"

#define API_ANSWER_LIMIT_BYTES (256u * 1024 * 1024)

/* Writes an answer of any length to out; fails if nothing is received for TRAINCTL_SILENCE_SECONDS.
 * type, here and below: the Content-Type traind sends, a static text. Any other is an error, as the
 * answer is from another program. */
int api_get_file(const char *path, const char *type, FILE *out, struct error *e);

/* Downloads into a file, which appears whole or not at all, even if a signal ends the process; mode
 * 0600. *bytes: its size. */
int api_download(const char *path, const char *type, const char *file, double *bytes,
                 struct error *e);

/* *answer is a new reference, NULL on error. body NULL: empty. */
int api_get(const char *path, json_t **answer, struct error *e);
int api_post(const char *path, const char *body, size_t bytes, json_t **answer, struct error *e);

/* GETs all pages of the list `list`; path has a query. *answer is the first page with the items of
 * all; it is set even if a later page fails. */
int api_get_pages(const char *path, const char *list, json_t **answer, struct error *e);

/* method: GET, POST (of an empty body) or DELETE. The path, by a format, has at most 1,000 bytes.
 */
int api_call(const char *method, json_t **answer, struct error *e, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* method: POST or PATCH. */
int api_send_json(const char *method, const char *path, const json_t *body, json_t **answer,
                  struct error *e);

/* The caller frees *text, which has a NUL after its *bytes bytes. */
int api_get_text(const char *path, const char *type, char **text, size_t *bytes, struct error *e);

/* Prepares a GET whose answer is read as it arrives. *headers may hold headers already; the caller
 * frees them after the call. libcurl's message of a failure goes to words[CURL_ERROR_SIZE]. NULL:
 * *e is set. Free with curl_easy_cleanup. */
CURL *api_open(const char *path, const char *type, struct curl_slist **headers, char *words,
               struct error *e);

/* Whether the answer being received has a 2xx status and the expected type. */
bool api_is_good(CURL *curl);

/* The result of such a call: 0 after a good answer. body: what was received of a bad one. */
int api_outcome(CURL *curl, CURLcode code, const char *path, const char *words, const char *body,
                size_t bytes, struct error *e);

bool api_has_answered(void);

void api_hurry(long ms);

/* The problem document of the last failed call; borrowed, NULL: none. */
const json_t *api_problem(void);

/* A problem document as text: its detail, or its errors, each on a line. The caller frees it. */
char *api_problem_words(const json_t *problem);

/* Fills *e from a problem document (NULL: none was sent) and its HTTP status; returns -e->code. */
int api_problem_to_error(const json_t *problem, long status, struct error *e);

/* The text of e; the full one if e has the last problem's, truncated. Borrowed. */
const char *api_error_words(const struct error *e);
