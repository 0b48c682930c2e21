/* Hosts by name: entries of cluster.hosts, Slurm's host lists, and this machine. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOST_NAME_BYTES 256
#define HOST_SLOTS_MAX  4096

/* "name" or "name:slots", as for Open MPI's -H. */
struct host {
    char name[HOST_NAME_BYTES];
    int64_t slots; /* cores that jobs may use there; 0: not given */
};

/* A name has letters, digits, dots, hyphens and underscores and no leading hyphen, as it becomes an
 * argument of other programs. */
bool host_parse(const char *text, struct host *host);

/* Whether it is localhost, this machine's name (with or without domain) or an address of it. ask:
 * may query the name service, which can take long. */
bool host_is_here(const char *name, bool ask);

/* "HOST", "HOST:PORT" or "[::1]:PORT". */
bool host_is_loopback(const char *host);

int64_t host_memory_bytes(void);

/* The first value of NAME in /proc/cpuinfo: "model name", "flags". The caller frees it; NULL:
 * none. */
char *host_cpuinfo(const char *name);

bool host_is_subnet(const char *text);

/* Whether this machine has such an interface ("eth0") or an address in the subnet
 * ("10.0.0.0/24"). */
bool host_has_interface(const char *interface);

/* Slurm's host lists, "n[1-3,07],login": man scontrol, HOSTLIST EXPRESSIONS. */
#define HOST_LIST_WRONG_BYTES 160

/* The index of a host in a list and the list's length in *count; -1: not in it, or malformed. */
int host_list_place(const char *list, const char *name, int *count);

/* Expands "n[1-3]:16" into at most `most` entries for host_parse, which the caller frees (hosts
 * NULL: only counts). Returns their number; 0: malformed, with the reason in wrong if the ranges
 * are the cause. */
size_t host_list_expand(const char *list, size_t most, char **hosts,
                        char wrong[HOST_LIST_WRONG_BYTES]);
