#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/check.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/text.h"
#include "worker/check/self_check_parts.h"
#include "worker/check/sgemm.h"
#include "worker/team/parallel.h"

#define SIZE             512  /* rows and columns: 1 MiB a matrix */
#define ONE_CORE_SECONDS 0.12 /* of each type */
#define ALL_SECONDS      0.35
#define COPY_SECONDS     0.15
#define COPY_BYTES_MIN                                                                             \
    ((size_t)32 << 20) /* read, and as much written: together more than caches hold */
#define COPY_BYTES_MAX ((size_t)256 << 20)
#define TYPES_MAX      8

/* ---- GEMM */

/* GFLOP/s over the whole time, the pauses between products with it; 0: no memory. */
static double self_check_speed_sgemm_rate(int threads, double seconds)
{
    struct sgemm *s = sgemm_create(SIZE, threads);
    double products = 0, elapsed = 0;

    if (!s)
        return 0;
    sgemm_round(s); /* warms up */
    for (double began = clock_monotonic(); elapsed < seconds; elapsed = clock_monotonic() - began) {
        sgemm_round(s);
        products += threads;
    }
    sgemm_destroy(s);
    return products * 2e-9 * SIZE * SIZE * SIZE / elapsed;
}

/* ---- types of cores */

struct core_type {
    char name[32];
    int cores, first; /* a hardware thread of it */
};

static bool self_check_speed_read_line(const char *path, char *line, size_t bytes)
{
    FILE *file = fopen(path, "re");
    bool got = file && fgets(line, (int)bytes, file);

    if (file)
        fclose(file);
    return got;
}

/* Is number in a list as "0-3,8,10-11"? */
static bool self_check_speed_in_list(const char *list, int number)
{
    while (*list) {
        char *end;
        long first = strtol(list, &end, 10), last = first;
        if (end == list)
            return false;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        if (number >= first && number <= last)
            return true;
        list = *end == ',' ? end + 1 : "";
    }
    return false;
}

/* Linux names the types of hybrid x86 processors, and gives others' cores a capacity (of 1024). */
static void self_check_cpu_type(int cpu, char name[32])
{
    char path[128], line[4096];

    snprintf(name, 32, "all");
    if (self_check_speed_read_line("/sys/devices/cpu_atom/cpus", line, sizeof line))
        snprintf(name, 32, self_check_speed_in_list(line, cpu) ? "efficiency" : "performance");
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpu_capacity", cpu);
    if (self_check_speed_read_line(path, line, sizeof line))
        snprintf(name, 32, "capacity %d", atoi(line));
}

static int self_check_speed_find_types(const cpu_set_t *allowed, struct core_type types[TYPES_MAX])
{
    int count = 0, t;
    char name[32];

    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, allowed))
            continue;
        self_check_cpu_type(cpu, name);
        for (t = 0; t < count && strcmp(types[t].name, name) != 0; t++)
            ;
        if (t == TYPES_MAX)
            continue;
        if (t == count) {
            types[count] = (struct core_type){.first = cpu};
            memcpy(types[count++].name, name, sizeof name);
        }
        types[t].cores++;
    }
    return count;
}

static double self_check_speed_rate_on(int cpu, const cpu_set_t *allowed)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    double rate = self_check_speed_sgemm_rate(1, ONE_CORE_SECONDS);
    sched_setaffinity(0, sizeof *allowed, allowed);
    return rate;
}

static json_t *self_check_speed_measure_types(const cpu_set_t *allowed, char *words, size_t bytes)
{
    struct core_type types[TYPES_MAX];
    int count = self_check_speed_find_types(allowed, types);
    json_t *list = json_array();
    size_t used = 0;

    for (int t = 0; t < count; t++) {
        double rate = self_check_speed_rate_on(types[t].first, allowed);
        json_array_append_new(list, json_pack("{s:s, s:i, s:o}", "type", types[t].name, "cores",
                                              types[t].cores, "gflops", json_number(rate)));
        if (used < bytes)
            used += (size_t)snprintf(words + used, bytes - used, "; one%s%s alone %.1f",
                                     count > 1 ? " of type " : "", count > 1 ? types[t].name : "",
                                     rate);
    }
    return list;
}

/* ---- memory */

struct copy {
    char *from, *to;
    size_t bytes; /* of a thread */
};

static void self_check_touch(int thread, int first, int end, void *context)
{
    struct copy *c = context;

    (void)thread;
    (void)end;
    memset(c->from + c->bytes * (size_t)first, 1, c->bytes);
    memset(c->to + c->bytes * (size_t)first, 2, c->bytes);
}

static void self_check_speed_copy_part(int thread, int first, int end, void *context)
{
    struct copy *c = context;

    (void)thread;
    (void)end;
    memcpy(c->to + c->bytes * (size_t)first, c->from + c->bytes * (size_t)first, c->bytes);
}

static size_t self_check_copy_bytes(void)
{
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    size_t wanted = cache > 0 ? (size_t)cache : 0;

    if (wanted > COPY_BYTES_MAX)
        return COPY_BYTES_MAX;
    return wanted > COPY_BYTES_MIN ? wanted : COPY_BYTES_MIN;
}

static double self_check_speed_measure_memory(int threads)
{
    struct copy c = {.bytes = self_check_copy_bytes() / (size_t)threads};
    size_t all = c.bytes * (size_t)threads;
    double copied = 0, elapsed = 0;

    c.from = mmap(NULL, 2 * all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (c.from == MAP_FAILED)
        return 0;
    madvise(c.from, 2 * all, MADV_HUGEPAGE);
    c.to = c.from + all;
    parallel_run(threads, threads, self_check_touch, &c);
    for (double began = clock_monotonic(); elapsed < COPY_SECONDS;
         elapsed = clock_monotonic() - began) {
        parallel_run(threads, threads, self_check_speed_copy_part, &c);
        copied += 2 * (double)all;
    }
    munmap(c.from, 2 * all);
    return copied / elapsed * 1e-9;
}

/* ---- clock */

#define ADDITIONS 1000000

/* The quickest of some runs: a moment without the processor is not a slow clock. */
static double self_check_speed_measure_clock(void)
{
    double best = 0;

    for (int run = 0; run < 8; run++) {
        unsigned long sum = 0, one = 1;
        double began = clock_monotonic();
        for (int i = 0; i < ADDITIONS / 8; i++) {
            /* not to be folded: each addition waits for the one before */
#define ADD                                                                                        \
    __asm__ volatile("" : "+r"(sum), "+r"(one));                                                   \
    sum += one;
            ADD ADD ADD ADD ADD ADD ADD ADD
#undef ADD
        }
        __asm__ volatile("" : "+r"(sum));
        double rate = 1e-9 * ADDITIONS / (clock_monotonic() - began);
        best = rate > best ? rate : best;
    }
    return best;
}

/* GHz that the processor should hold with all cores busy; 0: Linux does not say. */
static double self_check_speed_base_clock(void)
{
    char line[64];

    return self_check_speed_read_line("/sys/devices/system/cpu/cpu0/cpufreq/base_frequency", line,
                                      sizeof line)
               ? atof(line) * 1e-6
               : 0;
}

static void check_frequency(json_t *report, json_t *list)
{
    double ghz = self_check_speed_measure_clock(), base = self_check_speed_base_clock();

    json_object_set_new(report, "clock_ghz", json_number(ghz));
    if (base > 0)
        check_note(list, "frequency", ghz > 0.7 * base,
                   "look for heat, a power limit (BIOS, IPMI) or a saving governor "
                   "(cpupower frequency-info)",
                   "%.2f GHz; this processor's base is %.2f", ghz, base);
    else
        check_note(list, "frequency", true, NULL, "%.2f GHz", ghz);
}

void self_check_speed(json_t *report, json_t *list)
{
    char words[256] = "";
    cpu_set_t allowed;

    if (sched_getaffinity(0, sizeof allowed, &allowed)) {
        CPU_ZERO(&allowed);
        CPU_SET(0, &allowed);
    }
    int threads = CPU_COUNT(&allowed);
    json_t *types = self_check_speed_measure_types(&allowed, words, sizeof words);
    double all = self_check_speed_sgemm_rate(threads, ALL_SECONDS),
           memory = self_check_speed_measure_memory(threads);
    json_object_set_new(report, "cores", json_integer(threads));
    json_object_set_new(report, "gflops", json_number(all));
    json_object_set_new(report, "core_types", types);
    json_object_set_new(report, "memory_gb_per_sec", json_number(memory));
    check_note(list, "GEMM", all > 0, "free some memory", "%.1f GFLOP/s on %d core%s%s", all,
               threads, plural(threads), words);
    check_note(list, "bandwidth", memory > 0, "free some memory", "%.1f GB/s of memory, copying",
               memory);
    check_frequency(report, list);
}
