#include "common/system/placement.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SYS_BYTES 512
#define PARTS_MAX 256 /* maximum number of sockets, or of NUMA domains */

static bool placement_read_text(const char *path, char *text, int bytes)
{
    FILE *file = fopen(path, "re");
    bool good = file && fgets(text, bytes, file);

    if (file)
        fclose(file);
    return good;
}

static int placement_read_number(const char *sys, int cpu, const char *name, int otherwise)
{
    char path[SYS_BYTES], text[32];

    snprintf(path, sizeof path, "%s/devices/system/cpu/cpu%d/%s", sys, cpu, name);
    return placement_read_text(path, text, sizeof text) ? (int)strtol(text, NULL, 10) : otherwise;
}

/* Finds the numbers N of the folders NAME<N> in /sys; trying each would take a thousand calls. */
static void placement_find(const char *sys, const char *folder, const char *name, cpu_set_t *found)
{
    char path[SYS_BYTES];
    struct dirent *entry;

    CPU_ZERO(found);
    snprintf(path, sizeof path, "%s/devices/system/%s", sys, folder);
    DIR *dir = opendir(path);
    while (dir && (entry = readdir(dir))) {
        size_t prefix = strlen(name);
        const char *digits = entry->d_name + prefix;
        if (strncmp(entry->d_name, name, prefix) == 0 && *digits >= '0' && *digits <= '9')
            CPU_SET(strtoul(digits, NULL, 10), found); /* ignores numbers that are too large */
    }
    if (dir)
        closedir(dir);
}

/* In a list such as "0-3,8", the first CPU represents the core. */
static bool placement_is_first_of_core(const char *sys, int cpu, const cpu_set_t *allowed)
{
    int first = placement_read_number(sys, cpu, "topology/thread_siblings_list", cpu);
    return first == cpu || first < 0 || first >= CPU_SETSIZE || !CPU_ISSET(first, allowed);
}

struct counts {
    struct {
        int64_t cores, cpus;
    } part[PARTS_MAX];
};

static void placement_count(const char *sys, int cpu, const cpu_set_t *allowed, int part,
                            struct counts *c)
{
    if (part < 0 || part >= PARTS_MAX || !CPU_ISSET(cpu, allowed))
        return;
    c->part[part].cpus++;
    if (placement_is_first_of_core(sys, cpu, allowed))
        c->part[part].cores++;
}

static int64_t placement_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static struct placement_parts placement_sum_up(const struct counts *c)
{
    struct placement_parts p = {0};

    for (int i = 0; i < PARTS_MAX; i++) {
        if (!c->part[i].cores)
            continue;
        p.cores = p.parts ? placement_min(p.cores, c->part[i].cores) : c->part[i].cores;
        p.cpus = p.parts ? placement_min(p.cpus, c->part[i].cpus) : c->part[i].cpus;
        p.parts++;
    }
    return p;
}

/* Counts the CPUs of this domain, listed as "0-23,48-71". Returns false if it has none: mpirun
 * counts such a domain too, so workers cannot be distributed over domains. */
static bool placement_count_domain(const char *sys, const char *list, int domain,
                                   const cpu_set_t *allowed, struct counts *c)
{
    bool any = false;

    for (const char *at = list; *at >= '0' && *at <= '9';) {
        char *end;
        long first = strtol(at, &end, 10), last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        any = true;
        for (long cpu = first; cpu <= last && cpu < CPU_SETSIZE; cpu++)
            placement_count(sys, (int)cpu, allowed, domain, c);
        at = *end == ',' ? end + 1 : end;
    }
    return any;
}

static struct placement_parts placement_read_domains(const char *sys, const cpu_set_t *allowed)
{
    struct counts c = {0};
    cpu_set_t domains;

    placement_find(sys, "node", "node", &domains);
    for (int domain = 0; domain < PARTS_MAX; domain++) {
        char path[SYS_BYTES], text[4096];
        if (!CPU_ISSET(domain, &domains))
            continue;
        snprintf(path, sizeof path, "%s/devices/system/node/node%d/cpulist", sys, domain);
        if (placement_read_text(path, text, sizeof text) &&
            !placement_count_domain(sys, text, domain, allowed, &c))
            return (struct placement_parts){0};
    }
    return placement_sum_up(&c);
}

/* all: the allowed CPUs include ones that are offline. */
static void placement_read_sockets(const char *sys, const cpu_set_t *allowed, bool all,
                                   struct placement_machine *m)
{
    struct counts sockets = {0}, whole = {0};

    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, allowed))
            continue;
        int socket = placement_read_number(sys, cpu, "topology/physical_package_id", PARTS_MAX);
        placement_count(sys, cpu, allowed, socket, &sockets);
        placement_count(sys, cpu, allowed, all && socket == PARTS_MAX ? -1 : 0, &whole);
    }
    m->sockets = placement_sum_up(&sockets);
    m->whole = placement_sum_up(&whole);
}

void placement_read_cpus(const cpu_set_t *cpus, struct placement_machine *machine)
{
    machine->numa = placement_read_domains("/sys", cpus);
    placement_read_sockets("/sys", cpus, false, machine);
}

void placement_read(const char *sys, struct placement_machine *machine)
{
    cpu_set_t all;

    placement_find(sys, "cpu", "cpu", &all);
    machine->numa = placement_read_domains(sys, &all);
    placement_read_sockets(sys, &all, true, machine);
}

/* Cached by CPU set: it reads hundreds of files, and the daemon calls it for each submission. */
void placement_read_mine(struct placement_machine *machine)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static cpu_set_t known_cpus;
    static struct placement_machine known;
    cpu_set_t allowed;

    *machine = (struct placement_machine){0};
    if (sched_getaffinity(0, sizeof allowed, &allowed))
        return;
    pthread_mutex_lock(&lock);
    if (!CPU_EQUAL(&allowed, &known_cpus)) {
        placement_read_cpus(&allowed, &known);
        known_cpus = allowed;
    }
    *machine = known;
    pthread_mutex_unlock(&lock);
}

static struct placement_parts placement_min_parts(struct placement_parts a,
                                                  struct placement_parts b)
{
    return (struct placement_parts){placement_min(a.parts, b.parts),
                                    placement_min(a.cores, b.cores), placement_min(a.cpus, b.cpus)};
}

struct placement_machine placement_least(struct placement_machine a, struct placement_machine b)
{
    return (struct placement_machine){placement_min_parts(a.numa, b.numa),
                                      placement_min_parts(a.sockets, b.sockets),
                                      placement_min_parts(a.whole, b.whole)};
}

int64_t placement_slots(const struct placement_machine *m, bool smt)
{
    return smt ? m->whole.cpus : m->whole.cores;
}

int placement_spare_cpu(const char *sys, const cpu_set_t *cpus, int threads, int ranks, int rank)
{
    int here[CPU_SETSIZE] = {0}, last[CPU_SETSIZE],
        cores = 0; /* of a core, which is represented by its first CPU */

    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, cpus))
            continue;
        int first = placement_read_number(sys, cpu, "topology/thread_siblings_list", cpu);
        unsigned core = (unsigned)first % CPU_SETSIZE;
        cores += here[core]++ == 0;
        last[core] = cpu;
    }
    bool whole = cores - threads >= ranks;
    if (!whole && CPU_COUNT(cpus) - threads < ranks)
        return -1;
    for (int i = CPU_SETSIZE - 1; i >= 0; i--)
        if (here[i] > !whole && rank-- == 0)
            return last[i];
    return -1;
}

struct placement_wish placement_wish_of(const struct job_spec *spec, int64_t threads)
{
    return (struct placement_wish){spec->cluster.bind, spec->cluster.smt,
                                   spec->cluster.workers_per_node, threads, 0};
}

/* mpirun deals out the workers in turn, so their numbers per part differ by at most one. */
static bool placement_fits(const struct placement_parts *p, const struct placement_wish *w)
{
    int64_t slots = w->smt ? p->cpus : p->cores;
    return p->parts > 0 && w->threads > 0 && slots / w->threads * p->parts >= w->workers;
}

static const struct placement_parts *placement_parts_of(const struct placement_machine *m,
                                                        enum job_bind bind)
{
    return bind == JOB_BIND_NUMA ? &m->numa : bind == JOB_BIND_SOCKET ? &m->sockets : &m->whole;
}

int placement_check(const struct placement_machine *m, const struct placement_wish *w,
                    struct error *e)
{
    const struct placement_parts *p = placement_parts_of(m, w->bind);
    const char *slot = w->smt ? "hardware threads" : "cores";
    char has[64];

    if (w->bind == JOB_BIND_NONE || m->whole.parts == 0 || placement_fits(p, w))
        return 0;
    if (p == &m->whole)
        snprintf(has, sizeof has, "%lld %s", (long long)placement_slots(m, w->smt), slot);
    else if (p->parts == 0)
        snprintf(has, sizeof has, "no NUMA domains that all have cores");
    else
        snprintf(has, sizeof has, "%lld %s%s of %lld %s", (long long)p->parts,
                 p == &m->numa ? "NUMA domain" : "socket", p->parts > 1 ? "s" : "",
                 (long long)(w->smt ? p->cpus : p->cores), slot);
    return error_set(e, ERR_INVALID,
                     "has %s, too few for %lld workers of %lld threads: use fewer workers or "
                     "threads, or another cluster.bind (none: no binding)",
                     has, (long long)w->workers, (long long)w->threads);
}

static const char *placement_level_of(const struct placement_machine *m,
                                      const struct placement_wish *w)
{
    bool decides = w->bind == JOB_BIND_AUTO;

    if (w->bind == JOB_BIND_NUMA || (decides && m->numa.parts > 1 && placement_fits(&m->numa, w)))
        return "numa";
    if (w->bind == JOB_BIND_SOCKET ||
        (decides && m->sockets.parts > 1 && placement_fits(&m->sockets, w)))
        return "socket";
    return "slot";
}

int placement_mpi_version(const char *text)
{
    static const char name[] = "Open MPI";
    const char *at = strstr(text, name);
    int version = 0;

    if (at && sscanf(at + strlen(name), "%*[) v]%d", &version) != 1)
        version = 0;
    return version;
}

bool placement_spans(const struct placement_machine *m, const struct placement_wish *w)
{
    return w->bind != JOB_BIND_NONE && m->sockets.parts > 1 && !placement_fits(&m->sockets, w);
}

struct placement placement_choose(const struct placement_machine *m, const struct placement_wish *w)
{
    struct placement p = {.bind_to = w->smt ? "hwthread" : "core"};

    if (w->bind == JOB_BIND_NONE || (w->mpi >= 5 && placement_spans(m, w))) {
        p.bind_to = "none";
        snprintf(p.map_by, sizeof p.map_by, "slot:OVERSUBSCRIBE");
    } else {
        snprintf(p.map_by, sizeof p.map_by, "%s:PE=%lld", placement_level_of(m, w),
                 (long long)w->threads);
    }
    return p;
}

void placement_options(const struct placement *p, const char *options[PLACEMENT_OPTIONS])
{
    const char *all[PLACEMENT_OPTIONS] = {
        "--map-by", p->map_by, "--bind-to", p->bind_to,
        strcmp(p->bind_to, "hwthread") == 0 ? "--use-hwthread-cpus" : NULL};

    memcpy(options, all, sizeof all);
}
