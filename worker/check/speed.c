#include "worker/check/speed.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "common/check.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/text.h"
#include "worker/kernels/gemm.h"
#include "worker/team/parallel.h"
#define SIZE             512  /* rows and columns: 1 MiB a matrix */
#define ONE_CORE_SECONDS 0.12 /* per type */
#define ALL_SECONDS      0.35
#define STREAM_ROUNDS    8                 /* other programs may use the memory in some of them */
#define STREAM_BYTES_MIN ((size_t)8 << 20) /* of an array of a thread */
#define STREAM_BYTES_MAX ((size_t)64 << 20)
#define TYPES_MAX        8

/* ---- SGEMM */

struct sgemm {
    int threads;
    size_t size, floats; /* per matrix */
    float *matrices;     /* (threads, 3, size, size) */
    double *gflops;      /* (threads), of the last round */
};

static size_t speed_sgemm_matrix_bytes(const struct sgemm *s)
{
    return 3 * s->floats * (size_t)s->threads * sizeof(float);
}

/* First touch by the thread that uses it. */
static void speed_sgemm_fill(int thread, int first, int end, void *context)
{
    struct sgemm *s = context;
    float *m = s->matrices + 3 * s->floats * (size_t)first;

    (void)thread;
    (void)end;
    for (size_t i = 0; i < 3 * s->floats; i++)
        m[i] = (float)(i % 17) / 17;
}

static double speed_sgemm_cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void speed_sgemm_multiply(int thread, int first, int end, void *context)
{
    struct sgemm *s = context;
    float *m = s->matrices + 3 * s->floats * (size_t)first;
    double start = speed_sgemm_cpu_seconds(), n = (double)s->size;

    (void)thread;
    (void)end;
    gemm_nn(s->size, s->size, s->size, m, s->size, m + s->floats, s->size, m + 2 * s->floats,
            s->size, false);
    s->gflops[first] = 2e-9 * n * n * n / (speed_sgemm_cpu_seconds() - start);
}

static void speed_sgemm_destroy(struct sgemm *s)
{
    if (!s)
        return;
    if (s->matrices != MAP_FAILED)
        munmap(s->matrices, speed_sgemm_matrix_bytes(s));
    free(s->gflops);
    free(s);
}

/* size: rows and columns of a matrix; each thread has three. Returns NULL without memory. */
static struct sgemm *speed_sgemm_create(int size, int threads)
{
    struct sgemm *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->threads = threads;
    s->size = (size_t)size;
    s->floats = s->size * s->size;
    s->gflops = calloc((size_t)threads, sizeof *s->gflops);
    /* Mapped, because freeing large blocks would change malloc's behaviour in the run that
     * follows. */
    s->matrices = mmap(NULL, speed_sgemm_matrix_bytes(s), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (s->matrices == MAP_FAILED || !s->gflops) {
        speed_sgemm_destroy(s);
        return NULL;
    }
    gemm_single_threaded();
    parallel_run(threads, threads, speed_sgemm_fill, s);
    return s;
}

static double speed_sgemm_round(struct sgemm *s)
{
    double all = 0;

    parallel_run(s->threads, s->threads, speed_sgemm_multiply, s);
    for (int t = 0; t < s->threads; t++)
        all += s->gflops[t];
    return all;
}

#define PEAK_SIZE   1024 /* 4 MiB a matrix: within 2 % of larger ones, in a third of the time */
#define PEAK_ROUNDS 6    /* other programs may use the cores in some of them */

double speed_sgemm_peak(struct traincomm *comm, int threads)
{
    struct sgemm *s = speed_sgemm_create(PEAK_SIZE, threads);
    double ready = s != NULL, best = 0;

    traincomm_reduce(comm, TRAINCOMM_MIN, &ready, 1);
    for (int i = 0; ready > 0 && i < PEAK_ROUNDS; i++) {
        traincomm_barrier(comm);
        double all = speed_sgemm_round(s);
        traincomm_reduce(comm, TRAINCOMM_SUM, &all, 1);
        if (all > best)
            best = all;
    }
    speed_sgemm_destroy(s);
    return best;
}

/* GFLOP/s of elapsed time, including pauses between products; 0 without memory. */
static double speed_sgemm_rate(int threads, double seconds)
{
    struct sgemm *s = speed_sgemm_create(SIZE, threads);
    double products = 0, elapsed = 0;

    if (!s)
        return 0;
    speed_sgemm_round(s); /* warm-up */
    for (double began = clock_monotonic(); elapsed < seconds; elapsed = clock_monotonic() - began) {
        speed_sgemm_round(s);
        products += threads;
    }
    speed_sgemm_destroy(s);
    return products * 2e-9 * SIZE * SIZE * SIZE / elapsed;
}

struct core_type {
    char name[32];
    int cores, first; /* one of its hardware threads */
};

static bool speed_read_line(const char *path, char *line, size_t bytes)
{
    FILE *file = fopen(path, "re");
    bool got = file && fgets(line, (int)bytes, file);

    if (file)
        fclose(file);
    return got;
}

static bool speed_in_list(const char *list, int number)
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

/* Linux names the core types of hybrid x86 processors, and gives others a capacity (of 1024). */
static void speed_cpu_type(int cpu, char name[32])
{
    char path[128], line[4096];

    snprintf(name, 32, "all");
    if (speed_read_line("/sys/devices/cpu_atom/cpus", line, sizeof line))
        snprintf(name, 32, speed_in_list(line, cpu) ? "efficiency" : "performance");
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpu_capacity", cpu);
    if (speed_read_line(path, line, sizeof line))
        snprintf(name, 32, "capacity %d", atoi(line));
}

static int speed_find_types(const cpu_set_t *allowed, struct core_type types[TYPES_MAX])
{
    int count = 0, t;
    char name[32];

    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, allowed))
            continue;
        speed_cpu_type(cpu, name);
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

static double speed_rate_on(int cpu, const cpu_set_t *allowed)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    double rate = speed_sgemm_rate(1, ONE_CORE_SECONDS);
    sched_setaffinity(0, sizeof *allowed, allowed);
    return rate;
}

static json_t *speed_measure_types(const cpu_set_t *allowed, char *words, size_t bytes)
{
    struct core_type types[TYPES_MAX];
    int count = speed_find_types(allowed, types);
    json_t *list = json_array();
    size_t used = 0;

    for (int t = 0; t < count; t++) {
        double rate = speed_rate_on(types[t].first, allowed);
        json_array_append_new(list, json_pack("{s:s, s:i, s:o}", "type", types[t].name, "cores",
                                              types[t].cores, "gflops", json_number(rate)));
        if (used < bytes)
            used += (size_t)snprintf(words + used, bytes - used, "; one%s%s alone %.1f",
                                     count > 1 ? " of type " : "", count > 1 ? types[t].name : "",
                                     rate);
    }
    return list;
}

struct stream {
    int threads;
    size_t floats; /* of an array of a thread */
    float *arrays; /* (threads, 3, floats) */
};

static size_t speed_stream_bytes(const struct stream *s)
{
    return 3 * s->floats * (size_t)s->threads * sizeof(float);
}

/* Arrays that exceed a thread's share of the caches, and are no power of 2 apart, which would put
 * their lines into the same banks of the memory. */
static size_t speed_stream_floats(void)
{
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE), cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t wanted = cache > 0 && cores > 0 ? 2 * (size_t)(cache / cores) : 0;

    wanted = wanted > STREAM_BYTES_MIN ? wanted : STREAM_BYTES_MIN;
    return ((wanted < STREAM_BYTES_MAX ? wanted : STREAM_BYTES_MAX) + (1 << 20)) / sizeof(float);
}

static void speed_stream_touch(int thread, int first, int end, void *context)
{
    const struct stream *s = context;

    (void)thread;
    (void)end;
    memset(s->arrays + 3 * s->floats * (size_t)first, 0, 3 * s->floats * sizeof(float));
}

static void speed_stream_move(int thread, int first, int end, void *context)
{
    const struct stream *s = context;
    float *a = s->arrays + 3 * s->floats * (size_t)first;

    (void)thread;
    (void)end;
    speed_stream_part(a, a + s->floats, a + 2 * s->floats, s->floats);
}

static bool speed_stream_create(struct stream *s, int threads)
{
    *s = (struct stream){.threads = threads, .floats = speed_stream_floats()};
    s->arrays = mmap(NULL, speed_stream_bytes(s), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (s->arrays == MAP_FAILED)
        return false;
    madvise(s->arrays, speed_stream_bytes(s), MADV_HUGEPAGE);
    parallel_run(threads, threads, speed_stream_touch, s);
    return true;
}

static double speed_stream_seconds(struct stream *s)
{
    double began = clock_monotonic();

    parallel_run(s->threads, s->threads, speed_stream_move, s);
    return clock_monotonic() - began;
}

double speed_stream(struct traincomm *comm, int threads)
{
    struct stream s;
    double ready = speed_stream_create(&s, threads), bytes = 5 * speed_stream_bytes(&s) / 3.0,
           best = 0;

    if (comm) {
        traincomm_reduce(comm, TRAINCOMM_MIN, &ready, 1);
        traincomm_reduce(comm, TRAINCOMM_SUM, &bytes, 1);
    }
    for (int i = 0; ready > 0 && i < STREAM_ROUNDS; i++) {
        if (comm)
            traincomm_barrier(comm);
        double seconds = speed_stream_seconds(&s);
        if (comm)
            traincomm_reduce(comm, TRAINCOMM_MAX, &seconds, 1);
        best = fmax(best, 1e-9 * bytes / seconds);
    }
    if (s.arrays != MAP_FAILED)
        munmap(s.arrays, speed_stream_bytes(&s));
    return best;
}

#define ADDITIONS 1000000

/* The fastest of several runs, to exclude time without the processor. */
static double speed_measure_clock(void)
{
    double best = 0;

    for (int run = 0; run < 8; run++) {
        unsigned long sum = 0, one = 1;
        double began = clock_monotonic();
        for (int i = 0; i < ADDITIONS / 8; i++) {
            /* prevents folding: each addition depends on the previous one */
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

/* GHz that the processor sustains with all cores busy; 0: unknown. */
static double speed_base_clock(void)
{
    char line[64];

    return speed_read_line("/sys/devices/system/cpu/cpu0/cpufreq/base_frequency", line, sizeof line)
               ? atof(line) * 1e-6
               : 0;
}

static void speed_check_frequency(json_t *report, json_t *list)
{
    double ghz = speed_measure_clock(), base = speed_base_clock();

    json_object_set_new(report, "clock_ghz", json_number(ghz));
    if (base > 0)
        check_note(list, "frequency", ghz > 0.7 * base,
                   "look for heat, a power limit (BIOS, IPMI) or a saving governor "
                   "(cpupower frequency-info)",
                   "%.2f GHz; this processor's base is %.2f", ghz, base);
    else
        check_note(list, "frequency", true, NULL, "%.2f GHz", ghz);
}

void speed_measure(json_t *report, json_t *list)
{
    char words[256] = "";
    cpu_set_t allowed;

    if (sched_getaffinity(0, sizeof allowed, &allowed)) {
        CPU_ZERO(&allowed);
        CPU_SET(0, &allowed);
    }
    int threads = CPU_COUNT(&allowed);
    json_t *types = speed_measure_types(&allowed, words, sizeof words);
    double all = speed_sgemm_rate(threads, ALL_SECONDS), memory = speed_stream(NULL, threads);
    json_object_set_new(report, "cores", json_integer(threads));
    json_object_set_new(report, "gflops", json_number(all));
    json_object_set_new(report, "core_types", types);
    json_object_set_new(report, "memory_gb_per_sec", json_number(memory));
    check_note(list, "GEMM", all > 0, "free some memory", "%.1f GFLOP/s on %d core%s%s", all,
               threads, plural(threads), words);
    check_note(list, "bandwidth", memory > 0, "free some memory",
               "%.1f GB/s of memory, read and written", memory);
    speed_check_frequency(report, list);
}
