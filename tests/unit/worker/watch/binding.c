#include <criterion/criterion.h>
#include <string.h>

#include "worker/watch/binding.h"

#define HAS(text) (strstr(json_string_value(json_array_get(problems, 0)), text) != NULL)

static const struct placement_wish any = {.bind = JOB_BIND_AUTO};

static struct binding rank_on(int first, int cpus, int threads, int machine)
{
    struct binding b = {.threads = threads,
                        .machine_cpus = machine,
                        .kernels = "avx2",
                        .openblas = "0.3.21 Haswell"};
    for (int i = first; i < first + cpus; i++)
        CPU_SET(i, &b.cpus);
    b.thread_cpus = b.cpus;
    return b;
}

Test(binding, writes_cores_as_ranges)
{
    struct binding b = rank_on(3, 4, 1, 16);
    char text[32];

    CPU_SET(9, &b.cpus);
    binding_cpus_to_text(&b.cpus, text, sizeof text);
    cr_assert_str_eq(text, "3-6,9");
    binding_cpus_to_text(&b.cpus, text, 4);
    cr_assert_str_eq(text, "3-6");
}

Test(binding, finds_nothing_where_nothing_is_wrong)
{
    const char *hosts[] = {"a", "a", "b", "b"};
    struct binding right[] = {rank_on(0, 4, 4, 8), rank_on(4, 4, 4, 8), rank_on(0, 4, 4, 8),
                              rank_on(4, 4, 4, 8)};
    struct binding unbound[] = {rank_on(0, 8, 4, 8), rank_on(0, 8, 4, 8)};
    struct binding set[] = {rank_on(0, 4, 2, 8), rank_on(0, 4, 2, 8)};

    json_t *problems = binding_problems(right, hosts, 4, &any);
    cr_assert_eq(json_array_size(problems), 0);
    json_decref(problems);
    problems = binding_problems(unbound, hosts, 2, &any);
    cr_assert_eq(json_array_size(problems), 0);
    json_decref(problems);
    problems = binding_problems(set, hosts, 2, &any);
    cr_assert_eq(json_array_size(problems), 0, "a common set that is large enough");
    json_decref(problems);
}

Test(binding, names_ranks_that_share_cores_on_any_host)
{
    const char *hosts[] = {"a", "a", "b", "b", "b"};
    struct binding ranks[] = {rank_on(0, 2, 2, 8), rank_on(2, 2, 2, 8), rank_on(0, 2, 2, 8),
                              rank_on(2, 2, 2, 8), rank_on(3, 2, 2, 8)};

    json_t *problems = binding_problems(ranks, hosts, 5, &any);
    cr_assert_eq(json_array_size(problems), 1);
    cr_assert(HAS("ranks 3 and 4 on b share core 3: "));
    cr_assert(HAS("--map-by slot:PE=2 --bind-to core"));
    cr_assert(HAS("--cpus-per-task=2"));
    json_decref(problems);
}

Test(binding, names_threads_on_one_core)
{
    const char *hosts[] = {"a", "b"};
    struct binding ranks[] = {rank_on(0, 4, 4, 4), rank_on(0, 4, 4, 4)};

    CPU_ZERO(&ranks[1].thread_cpus);
    CPU_SET(2, &ranks[1].thread_cpus);
    json_t *problems = binding_problems(ranks, hosts, 2, &any);
    cr_assert(HAS("all 4 threads of rank 1 on b run on core 2 of its 4: "));
    json_decref(problems);
    ranks[1] = ranks[0];
    ranks[1] = rank_on(1, 1, 3, 4);
    problems = binding_problems(ranks, hosts, 2, &any);
    cr_assert(HAS("rank 1 on b computes with 3 threads, but has only core 1: "));
    json_decref(problems);
}

Test(binding, warns_of_a_rank_that_spans_numa_domains)
{
    const char *hosts[] = {"a", "a"};
    struct binding ranks[] = {rank_on(0, 22, 22, 48), rank_on(22, 22, 22, 48)};

    ranks[0].numa_cores = ranks[1].numa_cores = 24;
    ranks[0].numa_nodes = 1;
    ranks[1].numa_nodes = 3;
    json_t *problems = binding_problems(ranks, hosts, 2, &any);
    cr_assert_eq(json_array_size(problems), 1);
    cr_assert(HAS("rank 1 on a spans NUMA domains with cores 22-43, although one of them has 24 "
                  "cores for its "
                  "22 threads: start with mpirun --map-by numa:PE=22"));
    json_decref(problems);
    ranks[1].numa_cores = 12;
    problems = binding_problems(ranks, hosts, 2, &any);
    cr_assert_eq(json_array_size(problems), 0, "it fits into none");
    json_decref(problems);
}

Test(binding, names_hosts_whose_kernels_differ)
{
    const char *hosts[] = {"a", "a", "b", "c"};
    struct binding ranks[4];

    for (int i = 0; i < 4; i++)
        ranks[i] = rank_on(i, 1, 1, 4);
    json_t *kinds = kernel_kinds(ranks, hosts, 4);
    cr_assert_eq(json_array_size(kinds), 1);
    cr_assert_eq(json_array_size(json_object_get(json_array_get(kinds, 0), "hosts")), 3);
    cr_assert_null(kernel_kinds_problem(kinds));
    json_decref(kinds);
    strcpy(ranks[2].openblas, "0.3.21 SkylakeX");
    kinds = kernel_kinds(ranks, hosts, 4);
    json_t *problem = kernel_kinds_problem(kinds);
    cr_assert_not_null(strstr(json_string_value(problem),
                              ": avx2 with OpenBLAS 0.3.21 Haswell on a, c; avx2 with OpenBLAS "
                              "0.3.21 SkylakeX on b: use machines of one kind"));
    json_decref(problem);
    json_decref(kinds);
}

static void binding_warns(const struct binding *ranks, enum job_bind bind, const char *words)
{
    const char *hosts[] = {"a", "a"};
    const struct placement_wish asked = {.bind = bind};
    json_t *problems = binding_problems(ranks, hosts, 2, &asked);

    cr_expect_eq(json_array_size(problems), words ? 1 : 0);
    if (words)
        cr_expect(HAS(words), "%s", json_string_value(json_array_get(problems, 0)));
    json_decref(problems);
}

Test(binding, warns_where_ranks_did_not_get_what_the_job_asked_for)
{
    struct binding bound[] = {rank_on(0, 4, 4, 16), rank_on(8, 4, 4, 16)};
    struct binding unbound[] = {rank_on(0, 16, 4, 16), rank_on(0, 16, 4, 16)};

    binding_warns(bound, JOB_BIND_CORE, NULL);
    binding_warns(unbound, JOB_BIND_NONE, NULL);
    binding_warns(bound, JOB_BIND_NONE,
                  "rank 0 on a is bound (cores 0-3), but cluster.bind is \"none\"");
    binding_warns(
        unbound, JOB_BIND_CORE,
        "rank 0 on a is bound to more cores than it has threads, or not at all (cores 0-15), but "
        "cluster.bind is \"core\": an argument or a setting of mpirun or Slurm overrides it");
    bound[1].sockets = 2;
    binding_warns(bound, JOB_BIND_SOCKET, "rank 1 on a spans sockets (cores 8-11)");
    bound[1].numa_nodes = 3;
    binding_warns(bound, JOB_BIND_NUMA, "rank 1 on a spans NUMA domains (cores 8-11)");
}
