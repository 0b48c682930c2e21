/*
 * The energy that this machine's processors and their memory have used, by RAPL as the kernel's
 * powercap folder tells it (Documentation/power/powercap/powercap.rst): the packages
 * (intel-rapl:N, which contain cores and uncore) and DRAM (intel-rapl:N:M). The platform (psys)
 * contains the packages and is left out, so nothing counts twice.
 *
 * The counters wrap around at max_energy_range_uj, at 300 W after some minutes: who counts on must
 * read more often than that. Since 2020 they are readable by root alone (PLATYPUS, CVE-2020-8694).
 */
#pragma once

#include "common/error.h"

#define POWERCAP_ROOT "/sys/class/powercap"

struct powercap;

/* root: the folder, or a copy for tests. ERR_NOT_FOUND: no counters; ERR_NOT_ALLOWED; ERR_CORRUPT:
 * not a number. Free with powercap_close. */
int powercap_open(const char *root, struct powercap **out, struct error *e);
void powercap_close(struct powercap *p); /* NULL is fine */

/* Joules since powercap_open. After an error the count continues at the next call. */
int powercap_read(struct powercap *p, double *joules, struct error *e);
