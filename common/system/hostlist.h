/* Slurm's way to write many hosts: "n[1-3,07],login" (man scontrol, HOSTLIST EXPRESSIONS). */
#ifndef TRAIND_COMMON_SYSTEM_HOSTLIST_H
#define TRAIND_COMMON_SYSTEM_HOSTLIST_H

/* The place of a host in a list, from 0, and how many hosts that has in *count; -1: it is not among
 * them, or the list is none. One range of numbers a name, as Slurm writes lists of nodes. */
int hostlist_place(const char *list, const char *name, int *count);

#endif
