/* What the kernel says of this machine's processor, in /proc/cpuinfo. */
#ifndef TRAIND_COMMON_SYSTEM_CPUINFO_H
#define TRAIND_COMMON_SYSTEM_CPUINFO_H

/* The value of the first line "NAME\t: VALUE": "model name", "flags". The caller frees it; NULL:
 * there is none. The kernel writes the file anew each time. */
char *cpuinfo_value(const char *name);

#endif
