#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "worker/watch/stall.h"

enum { BYTES = 100000 };

/* Both ends of a connection over the loopback. */
static void connect_pair(int end[2])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0);

    cr_assert_eq(bind(listener, (struct sockaddr *)&at, size), 0);
    cr_assert_eq(getsockname(listener, (struct sockaddr *)&at, &size), 0);
    cr_assert_eq(listen(listener, 1), 0);
    end[0] = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert_eq(connect(end[0], (struct sockaddr *)&at, sizeof at), 0);
    end[1] = accept(listener, NULL, NULL);
    cr_assert_geq(end[1], 0);
    close(listener);
}

Test(stall, counts_what_both_ends_have)
{
    static char bytes[BYTES];
    int end[2];

    connect_pair(end);
    uint64_t before = stall_tcp_bytes();
    cr_assert_eq(write(end[0], bytes, BYTES), BYTES);
    for (size_t got = 0; got < BYTES;) {
        ssize_t n = read(end[1], bytes, BYTES);
        cr_assert_gt(n, 0);
        got += (size_t)n;
    }
    /* received once, acknowledged soon */
    uint64_t both = stall_tcp_bytes() - before;
    cr_assert_geq(both, BYTES);
    cr_assert_leq(both, 2 * BYTES + 2);
    close(end[0]);
    close(end[1]);
    cr_assert_leq(stall_tcp_bytes(), before);
}
