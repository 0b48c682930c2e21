#include "daemon/http/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

/* Many nodes may report at once. The kernel limits this to net.core.somaxconn. */
#define BACKLOG 4096

static int listen_split(const char *address, char *host, size_t host_bytes, const char **port,
                        struct error *e)
{
    const char *colon = strrchr(address, ':');
    const char *from = address, *to = colon;

    if (colon && address[0] == '[' && colon > address + 1 && colon[-1] == ']') {
        from++;
        to--;
    } else if (colon && memchr(address, ':', (size_t)(colon - address))) {
        colon = NULL; /* an IPv6 address must be in brackets */
    }
    if (!colon || to == from || (size_t)(to - from) >= host_bytes || !colon[1] ||
        strspn(colon + 1, "0123456789") != strlen(colon + 1) || strlen(colon + 1) > 5 ||
        atoi(colon + 1) > 65535)
        return error_set(e, ERR_USAGE,
                         "listen must be HOST:PORT with a port from 0 to 65535, for example "
                         "127.0.0.1:7077 or [::1]:7077, not \"%s\"",
                         address);
    memcpy(host, from, (size_t)(to - from));
    host[to - from] = '\0';
    *port = colon + 1;
    return 0;
}

static bool listen_is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)address;
        return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    }
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)address;
    return address->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

static int listen_tell_url(int fd, bool tls, char *url, size_t url_bytes, struct error *e)
{
    struct sockaddr_storage bound;
    socklen_t length = sizeof bound;
    char host[INET6_ADDRSTRLEN + 2], port[8];

    if (getsockname(fd, (struct sockaddr *)&bound, &length) ||
        getnameinfo((struct sockaddr *)&bound, length, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV))
        return error_set_errno(e, errno, "cannot find the address of the listening socket");
    snprintf(url, url_bytes, bound.ss_family == AF_INET6 ? "http%s://[%s]:%s" : "http%s://%s:%s",
             tls ? "s" : "", host, port);
    return 0;
}

static bool listen_is_traind(const struct addrinfo *found)
{
    static const char ask[] = "GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n";
    struct timeval patience = {.tv_sec = 1};
    char answer[1024] = "";
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return false;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(fd, found->ai_addr, found->ai_addrlen) == 0 &&
        send(fd, ask, sizeof ask - 1, MSG_NOSIGNAL) > 0)
        recv(fd, answer, sizeof answer - 1, MSG_WAITALL);
    close(fd);
    return strstr(answer, "\"status\":\"ok\",\"version\"");
}

static int listen_check_loopback(const struct sockaddr *found, const char *address, struct error *e)
{
    if (!listen_is_loopback(found))
        return error_set(
            e, ERR_USAGE,
            "listen = %s can be reached from other machines, which needs tokens and "
            "TLS: set require_token = yes, tls_certificate and tls_key in traind.conf, "
            "or listen on the loopback only, for example on 127.0.0.1:7077",
            address);
    return 0;
}

static int listen_open_tcp(const struct addrinfo *found, const char *address, int *fd,
                           struct error *e)
{
    int yes = 1;

    *fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*fd < 0)
        return error_set_errno(e, errno, "cannot create a socket for %s", address);
    setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(*fd, found->ai_addr, found->ai_addrlen) == 0 && listen(*fd, BACKLOG) == 0)
        return 0;
    if (errno == EADDRINUSE)
        return error_set(e, ERR_CONFLICT,
                         "%s is in use by another %s. Stop that one, or choose another "
                         "address with --listen HOST:PORT (port 0 selects a free one)",
                         address, listen_is_traind(found) ? "traind" : "program");
    return error_set_errno(e, errno, "cannot listen on %s", address);
}

static int listen_resolve(const char *address, const struct listen_rules *rules,
                          struct addrinfo **found, struct error *e)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    char host[256];
    const char *port = NULL;

    if (listen_split(address, host, sizeof host, &port, e))
        return -(int)e->code;
    int reason = getaddrinfo(host, port, &hints, found);
    if (reason)
        return error_set(e, ERR_USAGE, "cannot find the address %s: %s", address,
                         gai_strerror(reason));
    int status = rules->everywhere ? 0 : listen_check_loopback((*found)->ai_addr, address, e);
    if (status)
        freeaddrinfo(*found);
    return status;
}

int listen_check(const char *address, const struct listen_rules *rules, struct error *e)
{
    struct addrinfo *found;

    if (listen_resolve(address, rules, &found, e))
        return -(int)e->code;
    freeaddrinfo(found);
    return 0;
}

int listen_tcp(const char *address, const struct listen_rules *rules, int *fd, char *url,
               size_t url_bytes, struct error *e)
{
    struct addrinfo *found;

    *fd = -1;
    if (listen_resolve(address, rules, &found, e))
        return -(int)e->code;
    int status = listen_open_tcp(found, address, fd, e);
    freeaddrinfo(found);
    if (status == 0)
        status = listen_tell_url(*fd, rules->tls, url, url_bytes, e);
    if (status && *fd >= 0) {
        close(*fd);
        *fd = -1;
    }
    return status;
}

static int listen_clear_stale(const struct sockaddr_un *address, struct error *e)
{
    struct stat st;

    if (lstat(address->sun_path, &st))
        return 0;
    if (!S_ISSOCK(st.st_mode))
        return error_set(e, ERR_CONFLICT,
                         "%s exists and is not a socket; choose another path with --socket",
                         address->sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return error_set_errno(e, errno, "cannot create a unix socket");
    int answered = connect(fd, (const struct sockaddr *)address, sizeof *address) == 0;
    close(fd);
    if (answered)
        return error_set(e, ERR_CONFLICT,
                         "another daemon listens on %s; stop it, or choose another path with "
                         "--socket",
                         address->sun_path);
    unlink(address->sun_path);
    return 0;
}

int listen_unix(const char *path, gid_t group, int *fd, struct error *e)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    *fd = -1;
    if (strlen(path) >= sizeof address.sun_path)
        return error_set(e, ERR_USAGE,
                         "the path of the unix socket, %s, is longer than the %zu bytes that Linux "
                         "allows; choose a shorter one with --socket",
                         path, sizeof address.sun_path - 1);
    strcpy(address.sun_path, path);
    if (listen_clear_stale(&address, e))
        return -(int)e->code;
    *fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*fd < 0)
        return error_set_errno(e, errno, "cannot create a unix socket");
    mode_t old = umask(0177); /* restricts access before chmod can */
    int failed =
        bind(*fd, (const struct sockaddr *)&address, sizeof address) || listen(*fd, BACKLOG);
    if (!failed && group != (gid_t)-1)
        failed = chown(path, (uid_t)-1, group) || chmod(path, 0660);
    int reason = errno;
    umask(old);
    if (!failed)
        return 0;
    close(*fd);
    *fd = -1;
    return error_set_errno(e, reason, "cannot listen on %s", path);
}

static int listen_sort_inherited(int fd, struct listen_inherited *in, struct error *e)
{
    bool local = sd_is_socket(fd, AF_UNIX, SOCK_STREAM, 1) > 0;
    bool tcp = sd_is_socket_inet(fd, AF_UNSPEC, SOCK_STREAM, 1, 0) > 0;
    int *place = local ? &in->local : &in->tcp;

    if (!local && !tcp)
        return error_set(
            e, ERR_USAGE,
            "a socket passed by systemd is neither a listening TCP socket nor a unix socket "
            "(ListenStream= in traind.socket, without Accept=)");
    if (*place >= 0)
        return error_set(e, ERR_USAGE,
                         "systemd passed two %s sockets, but traind uses one: see traind.socket",
                         local ? "unix" : "TCP");
    *place = fd;
    return 0;
}

static int listen_check_inherited(int fd, const struct listen_rules *rules, char *url,
                                  size_t url_bytes, struct error *e)
{
    struct sockaddr_storage bound;
    socklen_t length = sizeof bound;
    int status = listen_tell_url(fd, rules->tls, url, url_bytes, e);

    if (status || rules->everywhere)
        return status;
    if (getsockname(fd, (struct sockaddr *)&bound, &length))
        return error_set_errno(e, errno, "cannot find the address of systemd's socket");
    return listen_check_loopback((struct sockaddr *)&bound, url, e);
}

int listen_inherit(const struct listen_rules *rules, struct listen_inherited *in, char *url,
                   size_t url_bytes, struct error *e)
{
    int count = sd_listen_fds(1), status = 0;

    *in = (struct listen_inherited){-1, -1};
    for (int i = 0; i < count && !status; i++)
        status = listen_sort_inherited(SD_LISTEN_FDS_START + i, in, e);
    if (!status && in->tcp >= 0)
        status = listen_check_inherited(in->tcp, rules, url, url_bytes, e);
    for (int i = 0; i < count && status; i++)
        close(SD_LISTEN_FDS_START + i);
    if (status)
        *in = (struct listen_inherited){-1, -1};
    return status;
}
