/* Host names: entries of cluster.hosts, Slurm's host lists, and this machine. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOST_NAME_BYTES 256
#define HOST_SLOTS_MAX  4096

/* "name" or "name:slots", as in Open MPI's option -H */
struct host {
    char name[HOST_NAME_BYTES];
    int64_t slots; /* number of cores that jobs may use; 0: not given */
};

/* Parses an entry. A name consists of letters, digits, dots, hyphens and underscores and does not
 * begin with a hyphen, because it becomes an argument of other programs. */
bool host_parse(const char *text, struct host *host);

/* Returns whether the name is localhost, this machine's name (with or without domain) or one of its
 * addresses. ask: query the name service, which may take long. */
bool host_is_here(const char *name, bool ask);

/* Returns whether "HOST", "HOST:PORT" or "[::1]:PORT" is the loopback address. */
bool host_is_loopback(const char *host);

int64_t host_memory_bytes(void);

/* Returns the first value of `name` in /proc/cpuinfo ("model name", "flags"), which the caller
 * frees; NULL: there is none. */
char *host_cpuinfo(const char *name);

bool host_is_subnet(const char *text);

/* Returns whether this machine has an interface ("eth0") or is in a subnet ("10.0.0.0/24"). */
bool host_has_interface(const char *interface);

/* Slurm's host lists, for example "n[1-3,07],login": scontrol(1), HOSTLIST EXPRESSIONS */
#define HOST_LIST_WRONG_BYTES 160

/* Returns the index of a host in a list, and in *count the length of the list. Returns -1 if the
 * host is not in the list, or the list is malformed. */
int host_list_place(const char *list, const char *name, int *count);

/* Expands "n[1-3]:16" into at most `max` entries for host_parse, which the caller frees. With hosts
 * NULL only counts. Returns their number, or 0 if malformed; `wrong` then contains the reason if
 * the ranges are the cause. */
size_t host_list_expand(const char *list, size_t max, char **hosts,
                        char wrong[HOST_LIST_WRONG_BYTES]);
