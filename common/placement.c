#include "common/placement.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SYS_BYTES 512
#define PARTS_MAX 256 /* of a kind */

static bool read_text(const char *path, char *text, int bytes)
{
    FILE *file = fopen(path, "re");
    bool good = file && fgets(text, bytes, file);

    if (file)
        fclose(file);
    return good;
}

static int read_number(const char *sys, int cpu, const char *name, int otherwise)
{
    char path[SYS_BYTES], text[32];

    snprintf(path, sizeof path, "%s/devices/system/cpu/cpu%d/%s", sys, cpu, name);
    return read_text(path, text, sizeof text) ? (int)strtol(text, NULL, 10) : otherwise;
}

/* "0-3,8": the first cpu of the list stands for its core. */
static bool is_first_of_core(const char *sys, int cpu, const cpu_set_t *allowed)
{
    int first = read_number(sys, cpu, "topology/thread_siblings_list", cpu);
    return first == cpu || first < 0 || first >= CPU_SETSIZE || !CPU_ISSET(first, allowed);
}

/* Counts one core of part number `of`. */
static void count(int64_t cores[PARTS_MAX], int of)
{
    if (of >= 0 && of < PARTS_MAX)
        cores[of]++;
}

static struct placement_parts sum_up(const int64_t cores[PARTS_MAX])
{
    struct placement_parts p = {0, 0};

    for (int i = 0; i < PARTS_MAX; i++) {
        if (!cores[i])
            continue;
        p.cores = !p.parts || cores[i] < p.cores ? cores[i] : p.cores;
        p.parts++;
    }
    return p;
}

/* Reads "0-23,48-71" into the cores of this domain. False: it has no cpu at all, so mpirun, which
 * counts such a domain too, could not deal out over domains. */
static bool count_domain(const char *sys, const char *list, int domain, const cpu_set_t *allowed,
                         int64_t cores[PARTS_MAX])
{
    bool any = false;

    for (const char *at = list; *at >= '0' && *at <= '9';) {
        char *end;
        long first = strtol(at, &end, 10), last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        any = true;
        for (long cpu = first; cpu <= last && cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET(cpu, allowed) && is_first_of_core(sys, (int)cpu, allowed))
                count(cores, domain);
        at = *end == ',' ? end + 1 : end;
    }
    return any;
}

static struct placement_parts read_domains(const char *sys, const cpu_set_t *allowed)
{
    int64_t cores[PARTS_MAX] = {0};
    static const struct placement_parts unknown = {0, 0};

    for (int domain = 0; domain < PARTS_MAX; domain++) {
        char path[SYS_BYTES], text[4096];
        snprintf(path, sizeof path, "%s/devices/system/node/node%d/cpulist", sys, domain);
        if (read_text(path, text, sizeof text) && !count_domain(sys, text, domain, allowed, cores))
            return unknown;
    }
    return sum_up(cores);
}

static struct placement_parts read_sockets(const char *sys, const cpu_set_t *allowed)
{
    int64_t cores[PARTS_MAX] = {0};

    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, allowed) && is_first_of_core(sys, cpu, allowed))
            count(cores, read_number(sys, cpu, "topology/physical_package_id", -1));
    return sum_up(cores);
}

void placement_read(const char *sys, bool whole, struct placement_machine *machine)
{
    cpu_set_t allowed;

    *machine = (struct placement_machine){0};
    if (whole)
        memset(&allowed, 0xff, sizeof allowed);
    else if (sched_getaffinity(0, sizeof allowed, &allowed))
        return;
    machine->numa = read_domains(sys, &allowed);
    machine->sockets = read_sockets(sys, &allowed);
}

static struct placement_parts least(struct placement_parts a, struct placement_parts b)
{
    return (struct placement_parts){a.parts < b.parts ? a.parts : b.parts,
                                    a.cores < b.cores ? a.cores : b.cores};
}

struct placement_machine placement_least(struct placement_machine a, struct placement_machine b)
{
    return (struct placement_machine){least(a.numa, b.numa), least(a.sockets, b.sockets)};
}

/* mpirun deals them out in turn, so that a part gets one more than another at most. */
static bool fit(struct placement_parts p, int64_t workers, int64_t threads)
{
    return p.parts > 1 && threads > 0 && p.cores / threads * p.parts >= workers;
}

const char *placement_level(const struct placement_machine *m, int64_t workers, int64_t threads)
{
    return fit(m->numa, workers, threads)      ? "numa"
           : fit(m->sockets, workers, threads) ? "socket"
                                               : "slot";
}

void placement_words(const struct placement_machine *m, int64_t workers, int64_t threads,
                     char words[PLACEMENT_BYTES])
{
    snprintf(words, PLACEMENT_BYTES, "%s:PE=%lld", placement_level(m, workers, threads),
             (long long)threads);
}
