#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/system/file.h"
#include "daemon/http/routes.h"

#define TEXT_BYTES_MAX (1024 * 1024) /* smaller text files are read into memory and compressed */

static const struct {
    const char *suffix, *type;
} types[] = {
    {".html",  "text/html; charset=utf-8"      },
    {".js",    "text/javascript; charset=utf-8"},
    {".mjs",   "text/javascript; charset=utf-8"},
    {".css",   "text/css; charset=utf-8"       },
    {".svg",   "image/svg+xml"                 },
    {".json",  "application/json"              },
    {".png",   "image/png"                     },
    {".ico",   "image/vnd.microsoft.icon"      },
    {".woff2", "font/woff2"                    },
    {".txt",   "text/plain; charset=utf-8"     },
};

static const char *static_content_type(const char *path)
{
    size_t length = strlen(path);

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        size_t n = strlen(types[i].suffix);
        if (length > n && strcmp(path + length - n, types[i].suffix) == 0)
            return types[i].type;
    }
    return NULL;
}

/* Accepts only letters, digits and "-_.", and no segment that begins with a dot. */
static int static_is_plain(const char *path)
{
    if (strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./") !=
        strlen(path))
        return 0;
    return !strstr(path, "/.") && !strstr(path, "//");
}

static int static_no_such_file(const struct request *q, struct error *e)
{
    return error_set(e, ERR_NOT_FOUND, "there is no %s; GET /openapi.json lists the routes",
                     q->path);
}

int handle_static(const struct request *q, struct reply *r, struct error *e)
{
    const char *name = strcmp(q->path, "/") == 0       ? "/index.html"
                       : strcmp(q->path, "/docs") == 0 ? "/docs.html"
                                                       : q->path;
    char path[PATH_MAX], tag[64];
    struct stat st;

    if (!static_is_plain(name) || !static_content_type(name) ||
        file_path(path, NULL, "%s%s", q->config->web_dir, name))
        return static_no_such_file(q, e);
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return strcmp(q->path, "/") != 0
                   ? static_no_such_file(q, e)
                   : error_set(e, ERR_NOT_FOUND,
                               "the dashboard's files are not in %s: install them, or set web_dir",
                               q->config->web_dir);
    if (fd < 0)
        return error_set_errno(e, errno, "cannot open %s", path);
    if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        close(fd);
        return static_no_such_file(q, e);
    }
    r->type = static_content_type(name);
    snprintf(tag, sizeof tag, "W/\"%llx-%llx-%lx\"", (unsigned long long)st.st_size,
             (unsigned long long)st.st_mtim.tv_sec, (unsigned long)st.st_mtim.tv_nsec);
    reply_header(r, "ETag", "%s", tag);
    reply_header(r, "Cache-Control", "no-cache");
    if (q->if_none_match && strstr(q->if_none_match, tag + 2)) {
        close(fd);
        return reply_text(r, 304, r->type, "", 0, e);
    }
    bool is_text = strncmp(r->type, "text/", 5) == 0 || strcmp(r->type, "image/svg+xml") == 0 ||
                   strcmp(r->type, "application/json") == 0;
    if (st.st_size && (!is_text || st.st_size > TEXT_BYTES_MAX)) {
        reply_file(r, 200, r->type, fd, 0, (uint64_t)st.st_size);
        return 0;
    }
    r->status = 200;
    return file_read_fd(fd, path, TEXT_BYTES_MAX, &r->body, &r->bytes, e);
}
