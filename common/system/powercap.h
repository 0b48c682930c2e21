/*
 * Energy used by this machine's processors and their memory, as reported by the kernel's powercap
 * folder from RAPL (Documentation/power/powercap/powercap.rst). Sums the packages (intel-rapl:N,
 * which include cores and uncore) and DRAM (intel-rapl:N:M). The platform domain (psys) includes
 * the packages and is ignored.
 *
 * The counters wrap around at max_energy_range_uj, at 300 W after some minutes, so powercap_read
 * must be called more often. Since 2020 only root can read them (PLATYPUS, CVE-2020-8694).
 */
#pragma once

#include "common/error.h"

#define POWERCAP_ROOT "/sys/class/powercap"

struct powercap;

/* root: the folder in /sys, or a copy for tests. Returns ERR_NOT_FOUND if there are no counters,
 * ERR_NOT_ALLOWED, or ERR_CORRUPT if a file is not a number. Free with powercap_close. */
int powercap_open(const char *root, struct powercap **out, struct error *e);
void powercap_close(struct powercap *p); /* accepts NULL */

/* Returns the joules used since powercap_open. After an error the next call continues. */
int powercap_read(struct powercap *p, double *joules, struct error *e);
