/* Slurm by slurmrestd, OpenAPI plugin v0.0.38 (Slurm 22.05 and later), over its unix socket or its
 * URL; with a JSON web token from a file if one is set (rest_auth/jwt). */
#include <curl/curl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/system/file.h"
#include "common/system/hostlist.h"
#include "daemon/launch/slurm_call.h"

#define CALL_SECONDS 45L
#define ANSWER_BYTES ((size_t)256 << 20)
#define SCRIPT_BYTES ((size_t)4 << 20)
#define VERSION_PATH "/slurm/v0.0.38"

static size_t slurm_rest_receive(char *data, size_t size, size_t count, void *context)
{
    size_t bytes = size * count;
    return buffer_append(context, data, bytes) ? bytes : 0;
}

static int stop_early(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    const struct slurm_call *call = context;
    (void)a, (void)b, (void)c, (void)d;
    return *call->quit;
}

static int slurm_rest_add_token(const struct slurm_call *c, struct curl_slist **headers,
                                struct error *e)
{
    struct passwd user, *found = NULL;
    char *token, line[8192], strings[4096];
    size_t bytes;

    if (!c->settings->restd_token)
        return 0;
    if (file_read(c->settings->restd_token, sizeof line - 64, &token, &bytes, e))
        return error_prefix(e, "slurm.restd_token");
    snprintf(line, sizeof line, "X-SLURM-USER-TOKEN: %.*s", (int)strcspn(token, " \r\n"), token);
    *headers = curl_slist_append(*headers, line);
    getpwuid_r(geteuid(), &user, strings, sizeof strings, &found);
    snprintf(line, sizeof line, "X-SLURM-USER-NAME: %s", found ? user.pw_name : "root");
    *headers = curl_slist_append(*headers, line);
    free(token);
    return 0;
}

/* "Invalid partition name specified; ...": what stands in "errors". */
static void join_errors(const json_t *reply, char *text, size_t bytes)
{
    const json_t *error;
    size_t i, used = 0;

    text[0] = '\0';
    json_array_foreach (json_object_get(reply, "errors"), i, error) {
        const char *words = json_string_value(json_object_get(error, "error"));
        const char *more = json_string_value(json_object_get(error, "description"));
        if (used < bytes && (words || more))
            used +=
                (size_t)snprintf(text + used, bytes - used, "%s%s%s%s", used ? "; " : "",
                                 words ? words : "", words && more ? ": " : "", more ? more : "");
    }
}

static int slurm_rest_check_reply(const char *path, long http_status, json_t *reply,
                                  struct error *e)
{
    char words[1024];

    join_errors(reply, words, sizeof words);
    if (http_status == 200 && !*words && reply)
        return 0;
    if (http_status == 401 || http_status == 403)
        return error_set(e, ERR_NOT_ALLOWED, "slurmrestd refuses this user (%ld): %s", http_status,
                         *words ? words : "see slurm.restd_token");
    if (!*words || slurm_call_is_unclear(words))
        return error_set(e, ERR_UNREACHABLE, "slurmrestd answered %s with %ld: %s", path,
                         http_status, words);
    return error_set(e, ERR_INVALID, "slurmrestd: %s", words);
}

static void set_options(const struct slurm_call *c, CURL *curl, const char *url,
                        const struct curl_slist *headers, struct buffer *answer)
{
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, slurm_rest_receive);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, c->seconds > 0 ? (long)c->seconds : CALL_SECONDS);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, stop_early);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, c);
    if (!c->settings->restd_url)
        curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, c->settings->restd_socket);
}

/* *reply is a new reference. body: NULL for none. */
static int slurm_rest_request(const struct slurm_call *c, const char *method, const char *path,
                              const char *body, json_t **reply, struct error *e)
{
    char url[1024], why[CURL_ERROR_SIZE] = "";
    struct buffer answer = BUFFER(ANSWER_BYTES);
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
    CURL *curl = curl_easy_init();
    long http_status = 0;

    *reply = NULL;
    int status = curl && headers ? slurm_rest_add_token(c, &headers, e)
                                 : error_set(e, ERR_NO_MEMORY, "no memory to call slurmrestd");
    if (!status) {
        snprintf(url, sizeof url, "%s" VERSION_PATH "%s",
                 c->settings->restd_url ? c->settings->restd_url : "http://slurmrestd", path);
        set_options(c, curl, url, headers, &answer);
        curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
        curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
        if (body)
            curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
        CURLcode code = curl_easy_perform(curl);
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &http_status);
        if (code != CURLE_OK)
            status = error_set(e, ERR_UNREACHABLE, "slurmrestd at %s does not answer: %s",
                               c->settings->restd_url ? c->settings->restd_url
                                                      : c->settings->restd_socket,
                               *why ? why : curl_easy_strerror(code));
    }
    if (!status) {
        *reply = json_loads(answer.data ? answer.data : "", 0, NULL);
        status = slurm_rest_check_reply(path, http_status, *reply, e);
    }
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
    buffer_clear(&answer);
    return status;
}

int slurm_rest_submit(const struct slurm_call *c, const char *script_path, const json_t *properties,
                      int64_t *job_id, struct error *e)
{
    char *script = NULL, *body = NULL;
    size_t bytes;
    json_t *document = NULL, *reply = NULL;
    int status = file_read(script_path, SCRIPT_BYTES, &script, &bytes, e);

    if (!status) {
        document = json_pack("{s:s, s:O}", "script", script, "job", (json_t *)properties);
        body = document ? json_dumps(document, JSON_COMPACT) : NULL;
        status = body ? slurm_rest_request(c, "POST", "/job/submit", body, &reply, e)
                      : error_set(e, ERR_INVALID, "the batch script is not valid UTF-8");
    }
    if (!status) {
        *job_id = json_integer_value(json_object_get(reply, "job_id"));
        if (*job_id <= 0)
            status = error_set(e, ERR_UNREACHABLE, "slurmrestd took a job and named no id");
    }
    json_decref(reply);
    json_decref(document);
    free(body);
    free(script);
    return status;
}

int slurm_rest_jobs(const struct slurm_call *c, json_t **jobs, struct error *e)
{
    json_t *reply;
    int status = slurm_rest_request(c, "GET", "/jobs", NULL, &reply, e);

    *jobs = NULL;
    if (status) {
        json_decref(reply);
        return error_set(e, ERR_UNREACHABLE, "%s", e->text);
    }
    *jobs = json_incref(json_object_get(reply, "jobs"));
    json_decref(reply);
    if (json_is_array(*jobs))
        return 0;
    json_decref(*jobs);
    *jobs = NULL;
    return error_set(e, ERR_UNREACHABLE, "slurmrestd gave no list of jobs");
}

/* A name in a list of strings, or in a string of names with commas between. */
static bool has_name(const json_t *list, const char *name)
{
    const json_t *item;
    size_t i;

    json_array_foreach (list, i, item)
        if (json_is_string(item) && strcasecmp(json_string_value(item), name) == 0)
            return true;
    return json_is_string(list) && strcasecmp(json_string_value(list), name) == 0;
}

/* The partition whose flags say so; "" for none. */
static int default_partition(const struct slurm_call *c, char *name, size_t bytes, struct error *e)
{
    json_t *reply, *partition;
    size_t i;
    int status = slurm_rest_request(c, "GET", "/partitions", NULL, &reply, e);

    *name = '\0';
    json_array_foreach (json_object_get(reply, "partitions"), i, partition) {
        const char *its = json_string_value(json_object_get(partition, "name"));
        if (its && has_name(json_object_get(partition, "flags"), "default"))
            snprintf(name, bytes, "%s", its);
    }
    json_decref(reply);
    return status;
}

static bool is_asked_for(const json_t *node, const char *partition, const char *hosts)
{
    const char *name = json_string_value(json_object_get(node, "name"));

    if (partition && !has_name(json_object_get(node, "partitions"), partition))
        return false;
    return name && (!hosts || hostlist_place(hosts, name, &(int){0}) >= 0);
}

static void slurm_rest_add_node(const json_t *node, json_t *nodes)
{
    const json_t *features = json_object_get(node, "features");
    int64_t sockets = json_integer_value(json_object_get(node, "sockets"));
    int64_t cores = sockets * json_integer_value(json_object_get(node, "cores"));
    int64_t cpus = json_integer_value(json_object_get(node, "cpus"));

    json_array_append_new(
        nodes, json_pack("{s:O, s:I, s:I, s:I, s:I, s:s}", "node", json_object_get(node, "name"),
                         "cores", (json_int_t)(cpus > 0 && cpus < cores ? cpus : cores), "cpus",
                         (json_int_t)cpus, "sockets", (json_int_t)sockets, "memory",
                         json_integer_value(json_object_get(node, "real_memory")), "features",
                         json_is_string(features) ? json_string_value(features) : ""));
}

int slurm_rest_nodes(const struct slurm_call *c, const char *partition, const char *hosts,
                     json_t **nodes, struct error *e)
{
    json_t *reply = NULL, *node;
    char by_default[256];
    size_t i;
    int status = 0;

    if (!partition && !hosts) {
        status = default_partition(c, by_default, sizeof by_default, e);
        partition = by_default;
    }
    if (!status)
        status = slurm_rest_request(c, "GET", "/nodes", NULL, &reply, e);
    if (!status)
        *nodes = json_array();
    json_array_foreach (json_object_get(reply, "nodes"), i, node)
        if (!status && is_asked_for(node, partition, hosts))
            slurm_rest_add_node(node, *nodes);
    json_decref(reply);
    return status;
}

int slurm_rest_cancel(const struct slurm_call *c, int64_t job_id, struct error *e)
{
    char path[64];
    json_t *reply;

    snprintf(path, sizeof path, "/job/%lld", (long long)job_id);
    int status = slurm_rest_request(c, "DELETE", path, NULL, &reply, e);
    json_decref(reply);
    return status;
}
