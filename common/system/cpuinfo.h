/* What the kernel says of this machine's processor, in /proc/cpuinfo. */
#pragma once

/* The value of the first line "NAME\t: VALUE": "model name", "flags". The caller frees it; NULL:
 * there is none. The kernel writes the file anew each time. */
char *cpuinfo_value(const char *name);
