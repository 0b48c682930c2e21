#include "client/api.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/context.h"
#include "client/files.h"
#include "client/token.h"
#include "common/buffer.h"
#include "common/json.h"
#include "common/problem.h"
#include "common/system/host.h"
#include "common/text.h"
#include "common/xalloc.h"

#define JSON_TYPE           "application/json"
#define PROBLEM_LIMIT_BYTES ((size_t)1 << 20)

#define SILENCE_SECONDS 300
#define SILENCE_MOST    1000000

static long connect_timeout_ms = 5000, answer_timeout_ms = 60000;
static long silence_seconds; /* of the current call; 0: the call has a fixed time limit */

static CURL *connection;
static json_t *last_problem;
static char *last_words;
static bool any_answer;

void api_hurry(long ms)
{
    connect_timeout_ms = answer_timeout_ms = ms;
}

const json_t *api_problem(void)
{
    return last_problem;
}

static size_t api_take_bytes(char *data, size_t size, size_t count, void *context)
{
    size_t bytes = size * count;
    return buffer_append(context, data, bytes) ? bytes : 0;
}

static void api_set_defaults(CURL *curl)
{
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_PROXY, ""); /* never use a proxy for a daemon on the loopback */
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, connect_timeout_ms);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "trainctl");
    const char *ca = getenv("TRAINCTL_CA");
    if (ca && *ca)
        curl_easy_setopt(curl, CURLOPT_CAINFO, ca);
}

static bool api_is_2xx(CURL *curl)
{
    long status = 0;

    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    return status >= 200 && status <= 299;
}

static int api_set_address(CURL *curl, const char *path, struct error *e)
{
    bool socket = server_is_socket(client.server);
    const char *base = socket ? "http://localhost" : client.server;
    char *url = xmalloc(strlen(base) + strlen(path) + 1);

    curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, socket ? client.server + 5 : NULL);
    curl_easy_setopt(curl, CURLOPT_URL, strcat(strcpy(url, base), path));
    free(url);
    return server_check(e);
}

static int api_unreachable(CURLcode code, const char *words, struct error *e)
{
    const char *server = client.server, *other = server_find_socket(true);
    bool socket = server_is_socket(server);

    if (code == CURLE_GOT_NOTHING && strncmp(server, "http://", 7) == 0)
        return error_set(e, ERR_UNREACHABLE,
                         "no answer from %s (%s)\n  For a daemon with TLS, use https://%s", server,
                         words, server + 7);
    error_set(e, ERR_UNREACHABLE, "no answer from %s (%s)", server, words);
    if (client.context)
        error_append(e,
                     ", the server of the context \"%s\"\n  Start that daemon again, or use "
                     "another: trainctl context lists them, trainctl context --remove %s forgets "
                     "this one",
                     client.context, client.context);
    else
        error_append(e, "\n  Is the daemon running? Start it with: traind --%s %s%s",
                     socket ? "socket" : "listen", socket ? server + 5 : strstr(server, "//") + 2,
                     socket ? "" : "\n  or specify another one with --server or TRAINCTL_SERVER");
    if (other && strcmp(other, server) != 0)
        error_append(e, "\n  This machine has another daemon's socket: --server %s", other);
    return -(int)e->code;
}

static enum error_code api_error_code(const char *type, long status)
{
    const char *slug = type ? type + strlen(type) : "";

    while (type && slug > type && slug[-1] != '/' && slug[-1] != ':')
        slug--;
    for (int code = 1; code < ERR_COUNT; code++)
        if (strcmp(error_type(code)->slug, slug) == 0)
            return code;
    switch (status) {
    case 400:
        return ERR_USAGE;
    case 401:
        return ERR_NO_TOKEN;
    case 403:
        return ERR_NOT_ALLOWED;
    case 404:
        return ERR_NOT_FOUND;
    case 409:
        return ERR_CONFLICT;
    case 413:
        return ERR_TOO_LARGE;
    case 415:
        return ERR_ENCODING;
    case 422:
        return ERR_INVALID;
    default:
        return ERR_INTERNAL;
    }
}

static void api_print_item(FILE *out, const json_t *item)
{
    const char *near = json_get_text(item, "suggestion", NULL);
    char key[PROBLEM_KEY_BYTES];

    fprintf(out, "%s: ", problem_key(json_get_text(item, "pointer", ""), key));
    fputs(json_get_text(item, "message", "is wrong"), out);
    if (near)
        fprintf(out, "; did you mean \"%s\"?", problem_suggestion(near, key));
}

char *api_problem_words(const json_t *problem)
{
    static const char place[] = ", listed in \"errors\""; /* replaced by the list below */
    const json_t *errors = json_object_get(problem, "errors");
    const char *detail = json_get_text(problem, "detail", json_get_text(problem, "title", NULL));
    char *words = NULL;
    size_t bytes, i;
    FILE *out = must_alloc(open_memstream(&words, &bytes));

    detail = detail ? detail : "the daemon rejected the request without giving a reason";
    const char *cut = strstr(detail, place);
    if (json_array_size(errors) == 1)
        api_print_item(out, json_array_get(errors, 0));
    else if (cut)
        fprintf(out, "%.*s:", (int)(cut - detail), detail);
    else
        fputs(detail, out);
    for (i = 0; json_array_size(errors) > 1 && i < json_array_size(errors); i++) {
        fputs("\n  ", out);
        api_print_item(out, json_array_get(errors, i));
    }
    fclose(out);
    return must_alloc(words);
}

/* server: for example "http://127.0.0.1:7077/". libcurl parses it, as text before @ is not the
 * host. */
static bool api_is_loopback(const char *server)
{
    CURLU *url = curl_url();
    char *host = NULL;
    bool loopback = url && !curl_url_set(url, CURLUPART_URL, server, CURLU_DEFAULT_SCHEME) &&
                    !curl_url_get(url, CURLUPART_HOST, &host, 0) && host_is_loopback(host);

    curl_free(host);
    curl_url_cleanup(url);
    return loopback;
}

static void api_tell_way_in(struct error *e)
{
    const char *source = token_source(), *socket;

    if (e->code != ERR_NO_TOKEN || server_is_socket(client.server) || !source)
        return;
    if (*source)
        error_append(e, "\n  The token sent came from %s", source);
    error_append(e,
                 "\n  To store a token (that of quickstart is in _state/token): trainctl login %s",
                 client.server);
    if (api_is_loopback(client.server) && (socket = server_find_socket(true)))
        error_append(e, "\n  To use this machine's socket, which needs no token: trainctl login %s",
                     socket);
}

int api_problem_to_error(const json_t *problem, long status, struct error *e)
{
    if (!problem)
        return error_set(e, api_error_code(NULL, status), "%s answered with HTTP status %ld",
                         client.server, status);
    free(last_words);
    last_words = api_problem_words(problem);
    error_set(e, api_error_code(json_get_text(problem, "type", NULL), status), "%s", last_words);
    api_tell_way_in(e);
    return -(int)e->code;
}

const char *api_error_words(const struct error *e)
{
    size_t length = strlen(e->text);
    bool cut = length == sizeof e->text - 1;

    return cut && last_words && strncmp(last_words, e->text, length) == 0 ? last_words : e->text;
}

static int api_take_problem(const struct buffer *answer, long status, struct error *e)
{
    json_t *problem = answer->data ? json_loadb(answer->data, answer->bytes, 0, NULL) : NULL;

    if (!json_is_object(problem)) {
        json_decref(problem);
        problem = NULL;
    }
    if (!client.json)
        text_escape_json(problem, NULL);
    json_decref(last_problem);
    last_problem = problem;
    return api_problem_to_error(problem, status, e);
}

static int api_add_token(struct curl_slist **headers, struct error *e)
{
    char token[TOKEN_BYTES], line[TOKEN_BYTES + 32];
    int found = server_is_socket(client.server) ? 0 : token_find(token, e);

    if (found <= 0)
        return found;
    if (strncmp(client.server, "https://", 8) != 0 && !api_is_loopback(client.server))
        found = error_set(e, ERR_NOT_ALLOWED,
                          "the token would be sent unencrypted: specify the server as "
                          "https://HOST:PORT, not as %s",
                          client.server);
    snprintf(line, sizeof line, "Authorization: Bearer %s", token);
    if (found > 0)
        *headers = curl_slist_append(*headers, line);
    explicit_bzero(token, sizeof token);
    explicit_bzero(line, sizeof line);
    return found < 0 ? found : 0;
}

static CURL *api_prepare(const char *type)
{
    if (!connection)
        connection = must_alloc(curl_easy_init());
    silence_seconds = 0;
    curl_easy_reset(connection); /* keeps the connection open */
    api_set_defaults(connection);
    curl_easy_setopt(connection, CURLOPT_TIMEOUT_MS, answer_timeout_ms);
    curl_easy_setopt(connection, CURLOPT_ACCEPT_ENCODING, "gzip");
    curl_easy_setopt(connection, CURLOPT_PRIVATE, type);
    return connection;
}

/* Limits silence. A transfer has no time limit as long as it makes progress; the limit also has to
 * cover the time in which the daemon copies the database for a backup. */
static int api_limit_silence(CURL *curl, struct error *e)
{
    const char *given = getenv("TRAINCTL_SILENCE_SECONDS");
    bool set = given && *given;
    long seconds = set ? strtol(given, NULL, 10) : SILENCE_SECONDS;

    if (seconds < 1 || seconds > SILENCE_MOST || (set && given[strspn(given, "0123456789")]))
        return error_set(e, ERR_USAGE,
                         "TRAINCTL_SILENCE_SECONDS must be a number from 1 to %d, not \"%.40s\"",
                         SILENCE_MOST, given);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, 0L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, seconds);
    silence_seconds = seconds;
    return 0;
}

static const char *api_answer_type(CURL *curl)
{
    const char *type = NULL;

    curl_easy_getinfo(curl, CURLINFO_CONTENT_TYPE, &type);
    return type ? type : "nothing";
}

static const char *api_wanted_type(CURL *curl)
{
    char *type = NULL; /* not const, as the macro requires */

    curl_easy_getinfo(curl, CURLINFO_PRIVATE, &type);
    return type;
}

static bool api_is_of_type(CURL *curl, const char *type)
{
    return strncmp(api_answer_type(curl), type, strlen(type)) == 0;
}

bool api_is_good(CURL *curl)
{
    return api_is_2xx(curl) && api_is_of_type(curl, api_wanted_type(curl));
}

static int api_distrust(CURL *curl, const char *words, struct error *e)
{
    enum { NOT_LOOKED = 1, NOT_YET_VALID = 9, EXPIRED = 10 }; /* OpenSSL's X509_V_ERR_... */
    const char *advice = "TRAINCTL_CA names a PEM file with its certificate, or with that of its "
                         "signed it";
    long reason = 0;

    curl_easy_getinfo(curl, CURLINFO_SSL_VERIFYRESULT, &reason);
    if (reason == EXPIRED || reason == NOT_YET_VALID)
        advice = "The daemon needs a new certificate, or a clock here or there is wrong";
    else if (reason <= NOT_LOOKED) /* the name is checked first */
        advice = "Use the server name in its certificate, or have one issued for this name";
    return error_set(e, ERR_NOT_ALLOWED, "%s cannot be trusted: %s\n  %s", client.server, words,
                     advice);
}

static int api_fell_silent(const char *path, struct error *e)
{
    if (silence_seconds)
        return error_set(
            e, ERR_UNREACHABLE,
            "giving up: no data was exchanged with %s for %ld second%s\n  Is the "
            "daemon stopped or very busy? TRAINCTL_SILENCE_SECONDS sets the time limit",
            client.server, silence_seconds, plural(silence_seconds));
    return error_set(e, ERR_UNREACHABLE,
                     "%s accepts connections, but did not answer %s within %ld seconds\n  Is the "
                     "daemon stopped or very busy? See its log",
                     client.server, path, answer_timeout_ms / 1000);
}

static int api_failure_of(CURL *curl, CURLcode code, const char *path, const char *words,
                          struct error *e)
{
    curl_off_t connected_after = 0; /* microseconds */
    long os_errno = 0;

    if (api_is_good(curl) || api_is_of_type(curl, "application/problem+json"))
        any_answer = true; /* even if it was cut short */
    if ((code == CURLE_OK || code == CURLE_WRITE_ERROR) && api_is_2xx(curl) && !api_is_good(curl))
        return error_set(e, ERR_INTERNAL, "%s answered %s with %s instead of %s: is this traind?",
                         client.server, path, api_answer_type(curl), api_wanted_type(curl));
    if (code == CURLE_OK)
        return 0;
    words = *words ? words : curl_easy_strerror(code);
    if (code == CURLE_WRITE_ERROR)
        return error_set(e, ERR_TOO_LARGE, "the answer to %s exceeds %u MiB", path,
                         API_ANSWER_LIMIT_BYTES >> 20);
    if (code == CURLE_PEER_FAILED_VERIFICATION)
        return api_distrust(curl, words, e);
    if (code == CURLE_SSL_CACERT_BADFILE)
        return error_set(e, ERR_NOT_ALLOWED,
                         "%s\n  TRAINCTL_CA should name a PEM file with certificates to trust",
                         words);
    if (code == CURLE_SSL_CONNECT_ERROR)
        return error_set(
            e, ERR_UNREACHABLE,
            "cannot establish TLS with %s (%s)\n  For a daemon without TLS, use http://%s",
            client.server, words, strstr(client.server, "//") + 2);
    curl_easy_getinfo(curl, CURLINFO_PRETRANSFER_TIME_T, &connected_after);
    if (code == CURLE_OPERATION_TIMEDOUT && connected_after > 0)
        return api_fell_silent(path, e);
    if (code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_WEIRD_SERVER_REPLY ||
        code == CURLE_BAD_CONTENT_ENCODING)
        return error_set(e, ERR_UNREACHABLE, "the server at %s is not traind (%s)", client.server,
                         words);
    curl_easy_getinfo(curl, CURLINFO_OS_ERRNO, &os_errno);
    return api_unreachable(code, os_errno ? strerror((int)os_errno) : words, e);
}

CURL *api_open(const char *path, const char *type, struct curl_slist **headers, char *words,
               struct error *e)
{
    CURL *curl = must_alloc(curl_easy_init());

    api_set_defaults(curl);
    curl_easy_setopt(curl, CURLOPT_PRIVATE, type);
    *words = '\0';
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, words);
    if (api_set_address(curl, path, e) == 0 && api_add_token(headers, e) == 0) {
        curl_easy_setopt(curl, CURLOPT_HTTPHEADER, *headers);
        return curl;
    }
    curl_easy_cleanup(curl);
    return NULL;
}

int api_outcome(CURL *curl, CURLcode code, const char *path, const char *words, const char *body,
                size_t bytes, struct error *e)
{
    struct buffer answer = {.data = (char *)body, .bytes = bytes};
    long status = 0;

    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    int failure = api_failure_of(curl, code, path, words, e);
    return failure || (status >= 200 && status <= 299) ? failure
                                                       : api_take_problem(&answer, status, e);
}

bool api_has_answered(void)
{
    return any_answer;
}

/* Performs a prepared call and frees the headers. write(context) receives the body of the answer;
 * *bad receives the body of an error response. */
static int api_perform(CURL *curl, const char *path, struct curl_slist *headers,
                       curl_write_callback write, void *context, const struct buffer *bad,
                       struct error *e)
{
    char words[CURL_ERROR_SIZE] = "";
    int status = api_set_address(curl, path, e);

    if (status == 0)
        status = api_add_token(&headers, e);
    if (status == 0) {
        curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
        curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, words);
        curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, write);
        curl_easy_setopt(curl, CURLOPT_WRITEDATA, context);
        CURLcode code = curl_easy_perform(curl);
        status = api_outcome(curl, code, path, words, bad->data, bad->bytes, e);
        curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, NULL);
    }
    curl_slist_free_all(headers);
    return status;
}

static int api_perform_json(CURL *curl, const char *path, struct curl_slist *headers, json_t **json,
                            struct error *e)
{
    struct buffer answer = BUFFER(API_ANSWER_LIMIT_BYTES);
    int status = api_perform(curl, path, headers, api_take_bytes, &answer, &answer, e);
    json_error_t where;

    *json = status ? NULL : json_loadb(answer.data ? answer.data : "", answer.bytes, 0, &where);
    if (!status && !*json)
        status = error_set(e, ERR_INTERNAL, "%s answered %s with something that is not JSON (%s)",
                           client.server, path, where.text);
    if (!client.json) /* only batch scripts and notes may have several lines */
        text_escape_json(*json, "sbatch note");
    buffer_clear(&answer);
    return status;
}

int api_get_text(const char *path, const char *type, char **text, size_t *bytes, struct error *e)
{
    struct buffer answer = BUFFER(API_ANSWER_LIMIT_BYTES);
    int status = api_perform(api_prepare(type), path, NULL, api_take_bytes, &answer, &answer, e);

    *text = NULL;
    *bytes = 0;
    if (status == 0 && !(*text = buffer_take(&answer, bytes)))
        status = error_set(e, ERR_NO_MEMORY, "out of memory");
    buffer_clear(&answer);
    return status;
}

struct api_sink {
    CURL *curl;
    FILE *out;
    int reason;
    struct buffer problem;
};

static size_t api_sink_take(char *data, size_t size, size_t count, void *context)
{
    struct api_sink *sink = context;

    if (api_is_good(sink->curl)) {
        size_t written = fwrite(data, 1, size * count, sink->out);
        if (written < size * count)
            sink->reason = errno;
        return written;
    }
    return buffer_append(&sink->problem, data, size * count) ? size * count : 0;
}

int api_get_file(const char *path, const char *type, FILE *out, struct error *e)
{
    struct api_sink sink = {api_prepare(type), out, 0, BUFFER(PROBLEM_LIMIT_BYTES)};
    int status = api_limit_silence(sink.curl, e);

    if (status == 0)
        status = api_perform(sink.curl, path, NULL, api_sink_take, &sink, &sink.problem, e);
    if (sink.reason)
        status = error_set_errno(e, sink.reason, "cannot write the file");
    buffer_clear(&sink.problem);
    return status;
}

int api_get(const char *path, json_t **json, struct error *e)
{
    return api_perform_json(api_prepare(JSON_TYPE), path, NULL, json, e);
}

int api_get_pages(const char *path, const char *list, json_t **answer, struct error *e)
{
    int status = api_get(path, answer, e);
    const char *next;
    char more[512];
    json_t *page;

    while (!status && (next = json_string_value(json_object_get(*answer, "next")))) {
        snprintf(more, sizeof more, "%s&after=%s", path, next);
        status = api_get(more, &page, e);
        json_array_extend(json_object_get(*answer, list), json_object_get(page, list));
        json_object_del(*answer, "next");
        json_object_set(*answer, "next", json_object_get(page, "next"));
        json_decref(page);
    }
    return status;
}

static int api_send(const char *method, const char *path, const char *body, size_t bytes,
                    json_t **json, struct error *e)
{
    CURL *curl = api_prepare(JSON_TYPE);
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");

    headers = curl_slist_append(headers, "Expect:"); /* do not wait for 100 Continue */
    curl_easy_setopt(curl, CURLOPT_POST, 1L);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body ? body : "");
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)(body ? bytes : 0));
    return api_perform_json(curl, path, headers, json, e);
}

int api_post(const char *path, const char *body, size_t bytes, json_t **json, struct error *e)
{
    return api_send("POST", path, body, bytes, json, e);
}

int api_send_json(const char *method, const char *path, const json_t *body, json_t **json,
                  struct error *e)
{
    char *text = must_alloc(json_dumps(body, JSON_COMPACT));
    int status = api_send(method, path, text, strlen(text), json, e);

    free(text);
    return status;
}

int api_call(const char *method, json_t **json, struct error *e, const char *format, ...)
{
    char path[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(path, sizeof path, format, args);
    va_end(args);
    if (strcmp(method, "POST") == 0)
        return api_post(path, NULL, 0, json, e);
    CURL *curl = api_prepare(JSON_TYPE);
    if (strcmp(method, "DELETE") == 0)
        curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
    return api_perform_json(curl, path, NULL, json, e);
}

struct download {
    const char *path, *type;
};

static int api_download_fill(FILE *out, void *context, struct error *e)
{
    const struct download *d = context;

    return api_get_file(d->path, d->type, out, e);
}

int api_download(const char *path, const char *type, const char *file, double *bytes,
                 struct error *e)
{
    return files_write(file, api_download_fill, &(struct download){path, type}, bytes, e);
}
