#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/error.h"
#include "common/system/file.h"
#include "common/system/placement.h"

static void put_file(const char *sys, const char *name, const char *text)
{
    char path[512];
    struct error e;

    snprintf(path, sizeof path, "%s/%s", sys, name);
    *strrchr(path, '/') = '\0';
    cr_assert_eq(file_make_dirs(path, &e), 0);
    snprintf(path, sizeof path, "%s/%s", sys, name);
    cr_assert_eq(file_write_unsynced(path, text, strlen(text), &e), 0);
}

/* A machine's /sys: the second hardware threads have the numbers behind all cores, as Linux does.
 */
static void make_sys(char *sys, int sockets, int domains, int cores, int smt, bool bare)
{
    char name[128], text[128];
    int all = sockets * domains * cores;

    cr_assert_not_null(mkdtemp(sys));
    for (int cpu = 0; cpu < all * smt; cpu++) {
        int core = cpu % all;
        snprintf(name, sizeof name, "devices/system/cpu/cpu%d/topology/physical_package_id", cpu);
        snprintf(text, sizeof text, "%d\n", core / (domains * cores));
        put_file(sys, name, text);
        snprintf(name, sizeof name, "devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
        snprintf(text, sizeof text, smt > 1 ? "%d,%d\n" : "%d\n", core, core + all);
        put_file(sys, name, text);
    }
    for (int d = 0; d < sockets * domains; d++) {
        snprintf(name, sizeof name, "devices/system/node/node%d/cpulist", d);
        snprintf(text, sizeof text, smt > 1 ? "%d-%d,%d-%d\n" : "%d-%d\n", d * cores,
                 (d + 1) * cores - 1, all + d * cores, all + (d + 1) * cores - 1);
        put_file(sys, name, text);
    }
    if (bare) { /* memory alone */
        snprintf(name, sizeof name, "devices/system/node/node%d/cpulist", sockets * domains);
        put_file(sys, name, "\n");
    }
}

static struct placement_machine machine(int sockets, int domains, int cores, int smt, bool bare)
{
    char sys[] = "/tmp/placement-XXXXXX";
    struct placement_machine m;
    struct error e;

    make_sys(sys, sockets, domains, cores, smt, bare);
    placement_read(sys, &m);
    file_remove_tree(sys, &e);
    return m;
}

static struct placement_wish wish(enum job_bind bind, bool smt, int64_t workers, int64_t threads)
{
    return (struct placement_wish){bind, smt, workers, threads, 0};
}

static void expect_of(struct placement_machine m, struct placement_wish w, const char *words)
{
    struct placement p = placement_choose(&m, &w);
    const char *options[PLACEMENT_OPTIONS];
    char got[128] = "";

    placement_options(&p, options);
    for (int i = 1; options[i]; i++) /* behind --map-by */
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s", i > 1 ? " " : "", options[i]);
    cr_expect_str_eq(got, words, "%lld x %lld: %s, not %s", (long long)w.workers,
                     (long long)w.threads, got, words);
}

static void expect_placement(struct placement_machine m, int64_t workers, int64_t threads,
                             const char *words)
{
    char all[64];

    snprintf(all, sizeof all, "%s --bind-to core", words);
    expect_of(m, wish(JOB_BIND_AUTO, false, workers, threads), all);
}

static void expect_problem(struct placement_machine m, struct placement_wish w, const char *words)
{
    struct error e;

    cr_expect_eq(placement_check(&m, &w, &e), -(int)ERR_INVALID, "%s", words);
    cr_expect_not_null(strstr(e.text, words), "%s, not %s", e.text, words);
}

static void expect_room(struct placement_machine m, struct placement_wish w)
{
    struct error e;

    cr_expect_eq(placement_check(&m, &w, &e), 0, "%s", e.text);
}

Test(placement, two_sockets_of_24)
{
    struct placement_machine m = machine(2, 1, 24, 1, false);

    cr_assert_eq(m.numa.parts, 2);
    cr_assert_eq(m.numa.cores, 24);
    cr_assert_eq(m.sockets.parts, 2);
    expect_placement(m, 2, 22, "numa:PE=22");
    expect_placement(m, 4, 11, "numa:PE=11");
    expect_placement(m, 6, 8, "numa:PE=8");
    expect_placement(m, 1, 22, "numa:PE=22");
    expect_placement(m, 3, 16, "slot:PE=16");
    expect_placement(m, 1, 48, "slot:PE=48");
    expect_placement(m, 48, 1, "numa:PE=1");
}

Test(placement, open_mpi_5_binds_no_worker_over_sockets)
{
    struct placement_machine m = machine(2, 1, 24, 1, false);
    struct placement_wish three = wish(JOB_BIND_AUTO, false, 3, 16),
                          two = wish(JOB_BIND_AUTO, false, 2, 22);
    static const char free_words[] = "slot:OVERSUBSCRIBE --bind-to none";

    cr_assert(placement_spans(&m, &three));
    cr_assert_not(placement_spans(&m, &two));
    three.mpi = two.mpi = placement_mpi_version("mpirun (Open MPI) 5.0.7\n\nReport bugs to");
    cr_assert_eq(three.mpi, 5);
    expect_of(m, three, free_words);
    expect_of(m, two, "numa:PE=22 --bind-to core");
    three.mpi = placement_mpi_version("Open MPI v4.1.4, package: Debian OpenMPI");
    cr_assert_eq(three.mpi, 4);
    expect_of(m, three, "slot:PE=16 --bind-to core");
    three = wish(JOB_BIND_CORE, false, 1, 48);
    three.mpi = 5;
    expect_of(m, three, free_words);
    cr_assert_eq(placement_mpi_version("HYDRA build details: Version: 4.0.2"), 0);
    m = machine(1, 2, 24, 1, false); /* domains of one socket */
    three.threads = 48;
    expect_of(m, three, "slot:PE=48 --bind-to core");
}

Test(placement, hardware_threads_are_no_cores)
{
    struct placement_machine m = machine(2, 1, 32, 2, false);

    cr_assert_eq(m.numa.cores, 32);
    expect_placement(m, 2, 32, "numa:PE=32");
    expect_placement(m, 2, 33, "slot:PE=33");
}

Test(placement, four_domains_on_two_sockets)
{
    struct placement_machine m = machine(2, 2, 12, 1, false);

    cr_assert_eq(m.numa.parts, 4);
    cr_assert_eq(m.sockets.cores, 24);
    expect_placement(m, 4, 12, "numa:PE=12");
    expect_placement(m, 2, 12, "numa:PE=12");
    expect_placement(m, 2, 22, "socket:PE=22");
    expect_placement(m, 8, 6, "numa:PE=6");
}

Test(placement, one_socket_and_unknown_ones)
{
    expect_placement(machine(1, 1, 2, 1, false), 2, 1, "slot:PE=1");
    expect_placement((struct placement_machine){0}, 2, 22, "slot:PE=22");
    /* A domain of memory alone: mpirun would try to put a rank there. */
    struct placement_machine m = machine(2, 1, 24, 1, true);
    cr_assert_eq(m.numa.parts, 0);
    expect_placement(m, 2, 22, "socket:PE=22");
    expect_placement(placement_least(machine(2, 1, 24, 1, false), machine(1, 1, 48, 1, false)), 2,
                     22, "slot:PE=22");
}

Test(placement, goes_where_the_document_says)
{
    struct placement_machine m = machine(2, 2, 12, 1, false);

    expect_of(m, wish(JOB_BIND_CORE, false, 2, 12), "slot:PE=12 --bind-to core");
    expect_of(m, wish(JOB_BIND_SOCKET, false, 2, 7), "socket:PE=7 --bind-to core");
    expect_of(m, wish(JOB_BIND_NUMA, false, 2, 7), "numa:PE=7 --bind-to core");
    expect_of(m, wish(JOB_BIND_NONE, false, 2, 7), "slot:OVERSUBSCRIBE --bind-to none");
    expect_of((struct placement_machine){0}, wish(JOB_BIND_NUMA, false, 2, 7),
              "numa:PE=7 --bind-to core");
}

Test(placement, hardware_threads_are_slots_where_the_document_says_so)
{
    struct placement_machine m = machine(2, 1, 32, 2, false);

    cr_assert_eq(m.numa.cpus, 64);
    cr_assert_eq(placement_slots(&m, false), 64);
    cr_assert_eq(placement_slots(&m, true), 128);
    expect_of(m, wish(JOB_BIND_AUTO, true, 2, 64),
              "numa:PE=64 --bind-to hwthread --use-hwthread-cpus");
    expect_of(m, wish(JOB_BIND_AUTO, true, 3, 40),
              "slot:PE=40 --bind-to hwthread --use-hwthread-cpus");
    expect_of(m, wish(JOB_BIND_NONE, true, 2, 64), "slot:OVERSUBSCRIBE --bind-to none");
    expect_room(m, wish(JOB_BIND_NUMA, true, 2, 64));
    expect_problem(m, wish(JOB_BIND_NUMA, false, 2, 64),
                   "has 2 NUMA domains of 32 cores, too few for 2 workers of 64 threads");
    expect_problem(m, wish(JOB_BIND_AUTO, true, 3, 64),
                   "has 128 hardware threads, too few for 3 workers of 64 threads");
}

Test(placement, what_does_not_fit_is_refused_with_what_is_there)
{
    struct placement_machine m = machine(2, 2, 12, 1, false), one = machine(1, 1, 2, 1, false);

    expect_room(m, wish(JOB_BIND_AUTO, false, 3, 16));
    expect_room(m, wish(JOB_BIND_SOCKET, false, 2, 24));
    expect_room(m, wish(JOB_BIND_NUMA, false, 8, 6));
    expect_problem(m, wish(JOB_BIND_NUMA, false, 2, 22),
                   "has 4 NUMA domains of 12 cores, too few for 2 workers of 22 threads: "
                   "use fewer workers or threads, or another cluster.bind");
    expect_problem(m, wish(JOB_BIND_SOCKET, false, 3, 16), "has 2 sockets of 24 cores");
    expect_problem(m, wish(JOB_BIND_CORE, false, 4, 13), "has 48 cores");
    expect_room(one, wish(JOB_BIND_SOCKET, false, 2, 1));
    expect_problem(one, wish(JOB_BIND_SOCKET, false, 3, 1), "has 1 socket of 2 cores");
    expect_room(one, wish(JOB_BIND_NONE, false, 3, 1));
    expect_problem(machine(2, 1, 24, 1, true), wish(JOB_BIND_NUMA, false, 2, 1),
                   "has no NUMA domains that all have cores");
    expect_room((struct placement_machine){0}, wish(JOB_BIND_NUMA, false, 2, 22));
}

Test(placement, a_cpu_that_compute_threads_leave_free)
{
    static const struct {
        int cores, smt;
        uint64_t cpus; /* that the ranks may use */
        int threads, ranks, spare[3];
    } cases[] = {
        {4, 2, 0xff, 4, 1, {7}      }, /* no core is idle, but their second threads */
        {4, 2, 0xff, 3, 1, {7}      }, /* one is */
        {4, 2, 0x22, 1, 1, {5}      }, /* bound to the second core */
        {4, 2, 0xff, 8, 1, {-1}     }, /* cluster.smt: none is */
        {4, 2, 0x0f, 4, 1, {-1}     }, /* one thread a core is allowed */
        {4, 2, 0x1f, 4, 1, {4}      }, /* two of the first core alone */
        {4, 2, 0x1f, 4, 2, {-1, -1} }, /* and two ranks */
        {4, 2, 0xff, 4, 2, {7, 6}   }, /* unbound: not the same */
        {4, 2, 0xff, 7, 2, {-1, -1} }, /* one for two */
        {4, 1, 0x0f, 4, 2, {-1, -1} }, /* none is spare */
        {4, 1, 0x0f, 3, 1, {3}      },
        {4, 1, 0x0f, 2, 2, {3, 2}   },
        {4, 1, 0x07, 2, 2, {-1, -1} },
        {1, 2, 0x03, 1, 1, {1}      },
        {8, 1, 0xff, 3, 3, {7, 6, 5}},
    };
    struct error e;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char sys[] = "/tmp/placement-XXXXXX";
        cpu_set_t cpus;
        CPU_ZERO(&cpus);
        for (int cpu = 0; cpu < 64; cpu++)
            if (cases[i].cpus >> cpu & 1)
                CPU_SET(cpu, &cpus);
        make_sys(sys, 1, 1, cases[i].cores, cases[i].smt, false);
        for (int rank = 0; rank < cases[i].ranks; rank++) {
            int got = placement_spare_cpu(sys, &cpus, cases[i].threads, cases[i].ranks, rank);
            cr_expect_eq(got, cases[i].spare[rank], "case %zu, rank %d: %d", i, rank, got);
        }
        file_remove_tree(sys, &e);
    }
    char nowhere[] = "/nowhere";
    cpu_set_t two;
    CPU_ZERO(&two);
    CPU_SET(0, &two);
    CPU_SET(1, &two);
    cr_expect_eq(placement_spare_cpu(nowhere, &two, 1, 1, 0), 1, "each a core where none is known");
}
