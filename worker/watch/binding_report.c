#include "worker/watch/binding_report.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/json.h"
#include "worker/kernels/bf16/bf16.h"
#include "worker/kernels/kind.h"
#include "worker/watch/binding.h"
#include "worker/watch/kernel_kinds.h"

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
        snprintf(mine.kernels, sizeof mine.kernels, "%s %s", kernels_kind(),
                 bf16_kind_name(bf16_kind()));
    int status = traincomm_gather(r->comm, &mine, sizeof mine, &all, &bytes);
    if (status)
        return error_set(e, ERR_NO_MEMORY, "where the ranks run cannot be gathered: %s",
                         traincomm_strerror(status));
    if (r->rank != 0)
        return 0;
    const char **hosts = calloc((size_t)r->world, sizeof *hosts);
    for (int i = 0; hosts && i < r->world; i++)
        hosts[i] = traincomm_host(r->comm, i);
    if (hosts)
        binding_describe(r, all, hosts);
    free(hosts);
    free(all);
    return 0;
}
