/* Slurm's way to write many hosts: "n[1-3,07],login" (man scontrol, HOSTLIST EXPRESSIONS). */
#pragma once

#include <stddef.h>

#define HOSTLIST_WRONG_BYTES 160

/* The place of a host in a list, from 0, and how many hosts that has in *count; -1: it is not among
 * them, or the list is none. */
int hostlist_place(const char *list, const char *name, int *count);

/* How many entries as host.h has them a list stands for, as "n[1-3]:16", at most `most`; they are
 * put into hosts (may be NULL), and are the caller's to free. 0: it is none, and wrong says what is
 * wrong with its ranges, or is "". */
size_t hostlist_expand(const char *list, size_t most, char **hosts,
                       char wrong[HOSTLIST_WRONG_BYTES]);
