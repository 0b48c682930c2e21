/*
 * Calls to the daemon, over TCP or its unix socket (client.server). One connection is kept for the
 * life of the process. An answer that is an error becomes a struct error: the code by its problem
 * type, the words from problem+json, each error of a document on a line with its pointer and
 * suggestion. Single-threaded.
 */
#pragma once

#include <curl/curl.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "common/error.h"

#define API_ANSWER_LIMIT_BYTES (256u * 1024 * 1024)

/* Writes an answer of any length into out as it comes, until nothing moves for
 * TRAINCTL_SILENCE_SECONDS. type here and below: the Content-Type that traind gives it, a static
 * text; what has another one comes from another program and is an error. */
int api_get_file(const char *path, const char *type, FILE *out, struct error *e);

/* GET and POST of JSON. *answer is a new reference; NULL on error. A body of NULL posts nothing. */
int api_get(const char *path, json_t **answer, struct error *e);
int api_post(const char *path, const char *body, size_t bytes, json_t **answer, struct error *e);

/* GET of all pages of a list by name, whose path has a query: *answer, also where it fails behind
 * the first one, is that with the items of all. */
int api_get_pages(const char *path, const char *list, json_t **answer, struct error *e);

/* The same with a document. */
int api_post_json(const char *path, const json_t *body, json_t **answer, struct error *e);
int api_patch(const char *path, const json_t *body, json_t **answer, struct error *e);
int api_delete(const char *path, json_t **answer, struct error *e);

/* GET of text. The caller frees *text, which is NUL-terminated behind its *bytes bytes. */
int api_get_text(const char *path, const char *type, char **text, size_t *bytes, struct error *e);

/* For an answer that is read as it comes: a GET with address and token, its header lines *headers
 * (the caller's to free, behind the call) beside those in it already, and libcurl's words on a
 * failure to come in words[CURL_ERROR_SIZE]. NULL with *e filled. Free with curl_easy_cleanup. */
CURL *api_open(const char *path, const char *type, struct curl_slist **headers, char *words,
               struct error *e);

/* Whether the answer that has begun to come is what was asked for. */
bool api_is_good(CURL *curl);

/* What became of it: 0 after a good answer, else the error; body: what came instead of one. */
int api_outcome(CURL *curl, CURLcode code, const char *path, const char *words, const char *body,
                size_t bytes, struct error *e);

/* Whether traind answered any call of this process: the daemon was there. */
bool api_has_answered(void);

/* From now on nothing waits longer than this for an answer. */
void api_hurry(long ms);

/* The problem+json document of the last answer that was an error (borrowed); NULL: none. */
const json_t *api_problem(void);

/* The words of a problem+json document as people read them: its detail, or the errors that it
 * lists, each on a line of its own. The caller frees them. */
char *api_problem_words(const json_t *problem);

/* Fills *e from a problem+json document (NULL: the answer was none) and its HTTP status; returns
 * -e->code. */
int api_problem_to_error(const json_t *problem, long status, struct error *e);

/* e's text, in full where it is that of the last problem and was too long for *e. Borrowed. */
const char *api_error_words(const struct error *e);
