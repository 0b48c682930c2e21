#include "worker/watch/binding.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json.h"
#include "common/system/placement.h"
#include "common/xalloc.h"
#include "worker/kernels/bf16.h"
#include "worker/kernels/gemm.h"

#define CPUS_BYTES 128

static void binding_copy_word(char to[BINDING_WORD_BYTES], const char *from)
{
    snprintf(to, BINDING_WORD_BYTES, "%s", from ? from : "");
}

static int binding_numa_node_of(int cpu)
{
    char path[96];

    for (int node = 0; node < 32; node++) {
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/node%d", cpu, node);
        if (access(path, F_OK) == 0)
            return node;
    }
    return 0;
}

/* OMP_PROC_BIND and OMP_PLACES may bind each thread separately. */
static void binding_read_threads(int threads, cpu_set_t *all)
{
    CPU_ZERO(all);
#pragma omp parallel num_threads(threads)
    {
        cpu_set_t self;
        if (sched_getaffinity(0, sizeof self, &self) == 0) {
#pragma omp critical(binding)
            CPU_OR(all, all, &self);
        }
    }
}

void binding_read(int threads, struct binding *b)
{
    memset(b, 0, sizeof *b);
    if (sched_getaffinity(0, sizeof b->cpus, &b->cpus))
        CPU_ZERO(&b->cpus);
    b->threads = threads;
    b->machine_cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
    binding_read_threads(threads, &b->thread_cpus);
    /* OMP_PROC_BIND binds the calling thread too, so use the union over all threads. */
    CPU_OR(&b->cpus, &b->cpus, &b->thread_cpus);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &b->cpus))
            b->numa_nodes |= 1u << binding_numa_node_of(cpu);
    struct placement_machine machine;
    placement_read("/sys", &machine);
    b->numa_cores = machine.numa.parts > 0 ? (int)machine.numa.cores : 0;
    placement_read_cpus(&b->cpus, &machine);
    b->cores = (int)machine.whole.cores;
    b->sockets = (int)machine.sockets.parts;
    binding_copy_word(b->omp_threads, getenv("OMP_NUM_THREADS"));
    binding_copy_word(b->blas_threads, getenv("OPENBLAS_NUM_THREADS"));
    binding_copy_word(b->kernels, isa_level());
    gemm_library(b->openblas);
}

void binding_cpus_to_text(const cpu_set_t *cpus, char *text, size_t bytes)
{
    size_t used = 0;

    text[0] = '\0';
    for (int cpu = 0; cpu < CPU_SETSIZE && used < bytes; cpu++) {
        int first = cpu;
        if (!CPU_ISSET(cpu, cpus))
            continue;
        while (cpu + 1 < CPU_SETSIZE && CPU_ISSET(cpu + 1, cpus))
            cpu++;
        used += (size_t)snprintf(text + used, bytes - used, cpu > first ? "%s%d-%d" : "%s%d",
                                 used ? "," : "", first, cpu);
    }
}

#define REMEDY                                                                                     \
    "start with mpirun --map-by slot:PE=%d --bind-to core, or in Slurm srun --cpus-per-task=%d "   \
    "--cpu-bind=cores"

static bool binding_is_bound(const struct binding *b)
{
    return CPU_COUNT(&b->cpus) < b->machine_cpus;
}

/* Reports a rank that spans two NUMA domains although its threads would fit into one. */
static void binding_check_numa(const struct binding *b, int rank, const char *host, bool *reported,
                               json_t *problems)
{
    char where[CPUS_BYTES];

    if (*reported || b->numa_cores < b->threads || !binding_is_bound(b) ||
        (b->numa_nodes & (b->numa_nodes - 1)) == 0)
        return;
    *reported = true;
    binding_cpus_to_text(&b->cpus, where, sizeof where);
    json_array_append_new(
        problems,
        json_sprintf(
            "rank %d on %s spans NUMA domains with cores %s, although one of them has %d cores for "
            "its %d threads: start with mpirun --map-by numa:PE=%d --bind-to core",
            rank, host, where, b->numa_cores, b->threads, b->threads));
}

static void binding_check_rank(const struct binding *b, int rank, const char *host, bool smt,
                               bool reported[2], json_t *problems)
{
    int cpus = CPU_COUNT(&b->cpus), slots = smt || !b->cores ? cpus : b->cores;
    char where[CPUS_BYTES];

    binding_cpus_to_text(&b->thread_cpus, where, sizeof where);
    if (!reported[0] && b->threads > 1 && CPU_COUNT(&b->thread_cpus) == 1 && cpus > 1) {
        reported[0] = true;
        json_array_append_new(
            problems,
            json_sprintf("all %d threads of rank %d on %s run on core %s of its %d: unset "
                         "OMP_PLACES, or set OMP_PLACES=cores and OMP_PROC_BIND=close",
                         b->threads, rank, host, where, cpus));
    }
    if (!reported[1] && slots > 0 && b->threads > slots) {
        reported[1] = true;
        binding_cpus_to_text(&b->cpus, where, sizeof where);
        json_array_append_new(
            problems, json_sprintf("rank %d on %s computes with %d threads, but has %s %s: " REMEDY,
                                   rank, host, b->threads, cpus > 1 ? "only cores" : "only core",
                                   where, b->threads, b->threads));
    }
}

static void binding_name_pair(const struct binding *ranks, const char *host, int a, int b,
                              const cpu_set_t *both, json_t *problems)
{
    char where[CPUS_BYTES];

    binding_cpus_to_text(both, where, sizeof where);
    json_array_append_new(problems,
                          json_sprintf("ranks %d and %d on %s share core%s %s: " REMEDY
                                       "; without --cpu-set, and with one mpirun per machine",
                                       a, b, host, CPU_COUNT(both) > 1 ? "s" : "", where,
                                       ranks[a].threads, ranks[a].threads));
}

static void binding_find_pair(const struct binding *ranks, const int *here, int n, const char *host,
                              json_t *problems)
{
    for (int a = 0; a < n; a++)
        for (int b = a + 1; b < n; b++) {
            cpu_set_t both;
            CPU_AND(&both, &ranks[here[a]].cpus, &ranks[here[b]].cpus);
            if (CPU_COUNT(&both)) {
                binding_name_pair(ranks, host, here[a], here[b], &both, problems);
                return;
            }
        }
}

static bool binding_check_machine(const struct binding *ranks, const char *const *hosts, int count,
                                  int from, int *here, json_t *problems)
{
    int threads = 0, n = 0;
    bool bound = false;
    cpu_set_t all;

    CPU_ZERO(&all);
    for (int i = from; i < count; i++) {
        if (strcmp(hosts[i], hosts[from]) != 0)
            continue;
        here[n++] = i;
        threads += ranks[i].threads;
        bound |= binding_is_bound(&ranks[i]);
        CPU_OR(&all, &all, &ranks[i].cpus);
    }
    if (threads <= CPU_COUNT(&all))
        return false;
    if (bound)
        binding_find_pair(ranks, here, n, hosts[from], problems);
    else
        json_array_append_new(
            problems,
            json_sprintf("the %d ranks on %s compute with %d threads in total on %d cores: fewer "
                         "cluster.workers_per_node or threads_per_worker would be faster",
                         n, hosts[from], threads, ranks[from].machine_cpus));
    return true;
}

/* Returns NULL if the rank got the requested binding. here: all CPUs of ranks on its host. */
static const char *binding_what_differs(const struct binding *b, const cpu_set_t *here,
                                        const struct placement_wish *asked)
{
    int slots = asked->smt || !b->cores ? CPU_COUNT(&b->cpus) : b->cores;

    if (asked->bind == JOB_BIND_NONE)
        return CPU_EQUAL(&b->cpus, here) ? NULL : "is bound";
    if (slots > b->threads)
        return "is bound to more cores than it has threads, or not at all";
    if (asked->bind == JOB_BIND_SOCKET && b->sockets > 1)
        return "spans sockets";
    if (asked->bind == JOB_BIND_NUMA && (b->numa_nodes & (b->numa_nodes - 1)) != 0)
        return "spans NUMA domains";
    return NULL;
}

/* Arguments of mpirun, site settings or Slurm may override the job's request. */
static void binding_check_asked(const struct binding *ranks, const char *const *hosts, int count,
                                const struct placement_wish *asked, json_t *problems)
{
    static const char *const names[] = {"auto", "core", "socket", "numa", "none"};
    cpu_set_t here;
    char where[CPUS_BYTES];

    for (int i = 0, from = -1; i < count && asked->bind != JOB_BIND_AUTO; i++) {
        if (from < 0 || strcmp(hosts[i], hosts[from]) != 0) {
            from = i;
            CPU_ZERO(&here);
            for (int k = i; k < count && strcmp(hosts[k], hosts[i]) == 0; k++)
                CPU_OR(&here, &here, &ranks[k].cpus);
        }
        const char *differs = binding_what_differs(&ranks[i], &here, asked);
        if (!differs)
            continue;
        binding_cpus_to_text(&ranks[i].cpus, where, sizeof where);
        json_array_append_new(
            problems, json_sprintf("rank %d on %s %s (cores %s), but cluster.bind is \"%s\": an "
                                   "argument or a setting of mpirun or Slurm overrides it",
                                   i, hosts[i], differs, where, names[asked->bind]));
        return;
    }
}

json_t *binding_problems(const struct binding *ranks, const char *const *hosts, int count,
                         const struct placement_wish *asked)
{
    json_t *problems = json_array();
    int *here = xcalloc((size_t)count, sizeof *here);
    bool reported[2] = {false, false}, numa_reported = false, shared = false;

    for (int i = 0; i < count; i++)
        binding_check_rank(&ranks[i], i, hosts[i], asked->smt, reported, problems);
    for (int i = 0; i < count; i++)
        binding_check_numa(&ranks[i], i, hosts[i], &numa_reported, problems);
    binding_check_asked(ranks, hosts, count, asked, problems);
    for (int i = 0; i < count && !shared && !reported[1]; i++)
        if (i == 0 || strcmp(hosts[i], hosts[i - 1]) != 0)
            shared = binding_check_machine(ranks, hosts, count, i, here, problems);
    free(here);
    return problems;
}

#define HOSTS_LISTED 8 /* hosts listed per kind in the warning */

static json_t *binding_kind_of(json_t *kinds, const struct binding *b)
{
    json_t *kind;
    size_t i;

    json_array_foreach (kinds, i, kind)
        if (strcmp(json_get_text(kind, "kernels", NULL), b->kernels) == 0 &&
            strcmp(json_get_text(kind, "openblas", NULL), b->openblas) == 0)
            return kind;
    kind = json_pack("{s:s, s:s, s:[]}", "kernels", b->kernels, "openblas", b->openblas, "hosts");
    json_array_append_new(kinds, kind);
    return kind;
}

static void binding_add_host(json_t *hosts, const char *host)
{
    const json_t *there;
    size_t i;

    json_array_foreach (hosts, i, there)
        if (strcmp(json_string_value(there), host) == 0)
            return;
    if (i < KERNEL_KINDS_HOSTS)
        json_array_append_new(hosts, json_string(host));
}

json_t *kernel_kinds(const struct binding *ranks, const char *const *hosts, int count)
{
    json_t *kinds = json_array();

    for (int i = 0; i < count; i++)
        binding_add_host(json_object_get(binding_kind_of(kinds, &ranks[i]), "hosts"), hosts[i]);
    return kinds;
}

static void binding_print_kind(FILE *out, const json_t *kind)
{
    const json_t *hosts = json_object_get(kind, "hosts"), *host;
    size_t i;

    fprintf(out, "%s with OpenBLAS %s on ", json_get_text(kind, "kernels", NULL),
            json_get_text(kind, "openblas", NULL));
    json_array_foreach (hosts, i, host)
        if (i < HOSTS_LISTED)
            fprintf(out, "%s%s", i ? ", " : "", json_string_value(host));
    if (i > HOSTS_LISTED)
        fputs(" and others", out);
}

json_t *kernel_kinds_problem(const json_t *kinds)
{
    const json_t *kind;
    char *text = NULL;
    size_t bytes, i;
    FILE *out;

    if (json_array_size(kinds) < 2)
        return NULL;
    out = must_alloc(open_memstream(&text, &bytes));
    fputs("kernels differ between hosts, so results differ in the last bits and the replicas "
          "diverge: ",
          out);
    json_array_foreach (kinds, i, kind) {
        fputs(i ? "; " : "", out);
        binding_print_kind(out, kind);
    }
    fputs(": use machines of one kind with the same OpenBLAS, or set "
          "GLIBC_TUNABLES=glibc.cpu.hwcaps and OPENBLAS_CORETYPE for the least capable kind",
          out);
    fclose(out);
    json_t *problem = json_string(text);
    free(text);
    return problem;
}

#define RANKS_SHOWN 64
#define CPUS_BYTES  128
static json_t *binding_report_numa_to_json(unsigned nodes)
{
    json_t *list = json_array();

    for (int n = 0; n < 32; n++)
        if (nodes & 1u << n)
            json_array_append_new(list, json_integer(n));
    return list;
}

static json_t *binding_report_rank_to_json(const struct binding *b, int rank, const char *host)
{
    char cpus[CPUS_BYTES];

    binding_cpus_to_text(&b->cpus, cpus, sizeof cpus);
    return json_pack("{s:i, s:s, s:s, s:i, s:o, s:o, s:o, s:o, s:s, s:s}", "rank", rank, "host",
                     host, "cpus", cpus, "threads", b->threads, "comm_cpu",
                     b->comm_cpu < 0 ? json_null() : json_integer(b->comm_cpu), "numa_nodes",
                     binding_report_numa_to_json(b->numa_nodes), "omp_num_threads",
                     json_text_or_null(b->omp_threads), "openblas_num_threads",
                     json_text_or_null(b->blas_threads), "kernels", b->kernels, "openblas",
                     b->openblas);
}

static void binding_report_print_rank(const struct binding *b, int rank, const char *host)
{
    char cpus[CPUS_BYTES];

    binding_cpus_to_text(&b->cpus, cpus, sizeof cpus);
    if (rank == 0)
        printf("%6s  %-20s %-16s %8s  %-16s %-20s %-8s %s\n", "rank", "host", "cores", "threads",
               "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "kernels", "OpenBLAS");
    printf("%6d  %-20s %-16s %8d  %-16s %-20s %-8s %s\n", rank, host, cpus, b->threads,
           *b->omp_threads ? b->omp_threads : "-", *b->blas_threads ? b->blas_threads : "-",
           b->kernels, b->openblas);
}

static void binding_describe(struct run *r, const struct binding *ranks, const char *const *hosts)
{
    struct placement_wish asked = placement_wish_of(r->spec, r->threads);
    json_t *problems = binding_problems(ranks, hosts, r->world, &asked);
    int shown = r->world < RANKS_SHOWN ? r->world : RANKS_SHOWN;

    r->binding = json_array();
    for (int i = 0; i < shown; i++) {
        binding_report_print_rank(&ranks[i], i, hosts[i]);
        json_array_append_new(r->binding, binding_report_rank_to_json(&ranks[i], i, hosts[i]));
    }
    if (shown < r->world)
        printf("%6s  and %d more\n", "", r->world - shown);
    fflush(stdout);
    json_array_extend(r->warnings, problems);
    json_decref(problems);
    r->kernel_kinds = kernel_kinds(ranks, hosts, r->world);
    json_t *differ = kernel_kinds_problem(r->kernel_kinds);
    if (differ)
        json_array_append_new(r->warnings, differ);
}

int binding_report(struct run *r, struct error *e)
{
    struct binding mine;
    void *all = NULL;
    size_t bytes;

    binding_read(r->threads, &mine);
    mine.comm_cpu = r->comm_cpu;
    if (r->spec->precision == JOB_PRECISION_BF16)
        snprintf(mine.kernels, sizeof mine.kernels, "%s %s", isa_level(),
                 bf16_kind_name(bf16_kind()));
    int status = traincomm_gather(r->comm, &mine, sizeof mine, &all, &bytes);
    if (status)
        return error_set(e, ERR_NO_MEMORY, "cannot collect the CPU bindings of the ranks: %s",
                         traincomm_strerror(status));
    if (r->rank != 0)
        return 0;
    const char **hosts = xcalloc((size_t)r->world, sizeof *hosts);
    for (int i = 0; i < r->world; i++)
        hosts[i] = traincomm_host(r->comm, i);
    binding_describe(r, all, hosts);
    free(hosts);
    free(all);
    return 0;
}
