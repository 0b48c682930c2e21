/*
 * What libmicrohttpd refuses before traind sees the request (a malformed request line, HTTP/2, a
 * head larger than the connection's buffer, a bad chunk) it answers with an HTML page of its own,
 * and no option changes that. But it makes such a page with the functions that it exports to
 * applications, MHD_create_response_from_buffer and MHD_queue_response, and calls them as an
 * application does: through the dynamic linker, which finds those of the executable first. So the
 * two are defined here, and call the library's own. A page is recognised as it is made, is given
 * its type, and is replaced by a problem document when it is queued, as only then its status is
 * known. What is not recognised passes unchanged; and where a libmicrohttpd is built to call its
 * functions directly (-Bsymbolic, static), clients get its pages.
 */
#include <dlfcn.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/http/reply.h"

#define PAGE_START  "<html><head><title>"
#define PAGE_BLAMES "Please ask the developer"
#define PAGE_TYPE   "text/html" /* of traind's own no answer has this without a charset */

typedef struct MHD_Response *create_function(size_t, void *, enum MHD_ResponseMemoryMode);
typedef enum MHD_Result queue_function(struct MHD_Connection *, unsigned, struct MHD_Response *);

static struct {
    pthread_once_t once;
    create_function *create;
    queue_function *queue;
} library = {.once = PTHREAD_ONCE_INIT};

/* The page that this thread has made and not queued yet: one of the library's literals. */
static __thread struct {
    const char *text;
    size_t bytes;
} page;

static void find_library(void)
{
    /* ISO C has no conversion of a void pointer to a function's; POSIX says that it works so. */
    *(void **)&library.create = dlsym(RTLD_NEXT, "MHD_create_response_from_buffer");
    *(void **)&library.queue = dlsym(RTLD_NEXT, "MHD_queue_response");
}

/* The words of the page's body without its tags, as detail. */
static void set_detail(struct error *e, enum error_code code)
{
    char text[256];
    size_t used = 0;
    bool in_tag = false;
    const char *end = page.text + page.bytes;
    const char *at = memmem(page.text, page.bytes, "<body>", 6);

    for (; at && at < end && used < sizeof text - 1; at++) {
        if (*at == '<' || *at == '>')
            in_tag = *at == '<';
        else if (!in_tag && (size_t)(end - at) >= 6 && memcmp(at, "&quot;", 6) == 0)
            text[used++] = '"', at += 5;
        else if (!in_tag)
            text[used++] = *at;
    }
    text[used] = '\0';
    error_set(e, code, "%s", text);
}

static enum error_code library_page_error_code(unsigned status)
{
    switch (status) {
    case 413:
    case 414:
    case 431:
        return ERR_TOO_LARGE;
    case 505:
        return ERR_UNSUPPORTED;
    default:
        return status < 500 ? ERR_USAGE : ERR_INTERNAL;
    }
}

/* The problem in the place of the page; NULL without memory. *status may become another. */
static struct MHD_Response *problem_response(unsigned *status)
{
    struct reply r = {0};
    struct error e;

    if (memmem(page.text, page.bytes, PAGE_BLAMES, strlen(PAGE_BLAMES))) {
        /* 500: the application took nothing of a full buffer. As traind takes all there is, the
         * buffer holds what is no body yet, the line before a chunk. */
        *status = 413;
        error_set(&e, ERR_TOO_LARGE, "the extensions of a chunk are too large");
    } else {
        set_detail(&e, library_page_error_code(*status));
    }
    reply_problem(&r, (int)*status, &e, NULL);
    struct MHD_Response *response =
        r.body ? library.create(r.bytes, r.body, MHD_RESPMEM_MUST_FREE) : NULL;
    if (response) {
        r.body = NULL;
        MHD_add_response_header(response, "Content-Type", r.type);
        MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
        MHD_add_response_header(response, "Cache-Control", "no-store");
    }
    reply_clear(&r);
    return response;
}

struct MHD_Response *MHD_create_response_from_buffer(size_t size, void *buffer,
                                                     enum MHD_ResponseMemoryMode mode)
{
    pthread_once(&library.once, find_library);
    struct MHD_Response *response = library.create(size, buffer, mode);
    if (response && mode == MHD_RESPMEM_PERSISTENT && size > strlen(PAGE_START) &&
        memcmp(buffer, PAGE_START, strlen(PAGE_START)) == 0) {
        page.text = buffer;
        page.bytes = size;
        MHD_add_response_header(response, "Content-Type", PAGE_TYPE);
    }
    return response;
}

/* By this the pages of 0.9.77 and later are made. Earlier versions have no such function. */
#if MHD_VERSION < 0x00097701
struct MHD_Response *MHD_create_response_from_buffer_static(size_t size, const void *buffer);
#endif
struct MHD_Response *MHD_create_response_from_buffer_static(size_t size, const void *buffer)
{
    return MHD_create_response_from_buffer(size, (void *)(uintptr_t)buffer, MHD_RESPMEM_PERSISTENT);
}

enum MHD_Result MHD_queue_response(struct MHD_Connection *c, unsigned status,
                                   struct MHD_Response *response)
{
    struct MHD_Response *problem = NULL;

    pthread_once(&library.once, find_library);
    const char *type = response ? MHD_get_response_header(response, "Content-Type") : NULL;
    if (page.text && status >= 400 && type && strcmp(type, PAGE_TYPE) == 0)
        problem = problem_response(&status);
    page.text = NULL;
    enum MHD_Result result = library.queue(c, status, problem ? problem : response);
    if (problem)
        MHD_destroy_response(problem);
    return result;
}
