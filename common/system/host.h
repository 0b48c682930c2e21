/* An entry of cluster.hosts: "name" or "name:slots", as Open MPI's -H writes it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define HOST_NAME_BYTES 256
#define HOST_SLOTS_MAX  4096

struct host {
    char name[HOST_NAME_BYTES];
    int64_t slots; /* cores that jobs may take there; 0: not said */
};

/* False: it is no such entry. A name has letters, digits, dots, hyphens and underscores and does
 * not begin with a hyphen: it becomes an argument of other programs. */
bool host_parse(const char *text, struct host *host);

/* Whether the name is this machine: localhost, its own name, with or without its domain, or an
 * address of one of its interfaces. The name service is asked only on request: that may take. */
bool host_is_here(const char *name, bool ask);

/* Of "HOST", "HOST:PORT" or "[::1]:PORT": localhost, or an address of it. */
bool host_is_loopback(const char *host);

/* Of this machine; 0: not known. */
int64_t host_memory_bytes(void);

/* An IPv4 network as "10.0.0.0/24". */
bool host_is_subnet(const char *text);

/* Of an interface's name ("eth0") or a subnet ("10.0.0.0/24"): this machine has such a one. False
 * for what is neither. */
bool host_has_interface(const char *interface);
