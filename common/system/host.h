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

/* False if it is no such entry. A name has letters, digits, dots, hyphens and underscores and does
 * not begin with a hyphen: it becomes an argument of other programs. */
bool host_parse(const char *text, struct host *host);

/* Whether the name is this machine: localhost, its own name with or without the domain, or an
 * address of one of its interfaces. ask: may query the name service, which can take long. */
bool host_is_here(const char *name, bool ask);

/* Whether "HOST", "HOST:PORT" or "[::1]:PORT" is localhost or one of its addresses. */
bool host_is_loopback(const char *host);

/* Memory of this machine; 0: not known. */
int64_t host_memory_bytes(void);

/* The value of the first line "NAME\t: VALUE" of /proc/cpuinfo: "model name", "flags". The caller
 * frees it; NULL: there is none. */
char *host_cpuinfo(const char *name);

/* Whether it is an IPv4 network as "10.0.0.0/24". */
bool host_is_subnet(const char *text);

/* Whether this machine has an interface of this name ("eth0") or in this subnet ("10.0.0.0/24");
 * false if the text is neither. */
bool host_has_interface(const char *interface);

/* Slurm's host lists, "n[1-3,07],login": man scontrol, HOSTLIST EXPRESSIONS. */
#define HOST_LIST_WRONG_BYTES 160

/* The index of a host in a list, from 0, and the list's length in *count; -1 if it is not in it or
 * the list is malformed. */
int host_list_place(const char *list, const char *name, int *count);

/* Expands a list such as "n[1-3]:16" into at most `most` entries for host_parse, which the caller
 * frees (hosts may be NULL: only counts). Returns how many; 0 if it is malformed, with the reason
 * in wrong if its ranges are the cause, else "". */
size_t host_list_expand(const char *list, size_t most, char **hosts,
                        char wrong[HOST_LIST_WRONG_BYTES]);
