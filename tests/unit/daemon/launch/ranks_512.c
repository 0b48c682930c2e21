/* Jobs of 512 ranks, on paper: what mpirun and Slurm are told of them, and what a worker needs. */
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/job/job_document.h"
#include "common/plan/plan_build.h"
#include "common/system/file.h"
#include "daemon/launch/slurm.h"
#include "daemon/launch/slurm_script.h"
#include "launch/command.h"
#include "launch/hosts.h"
#include "tests/unit/common/job.h"
#include "tests/unit/folder.h"

#define SILENT 40 /* of the hosts, the one that does not answer */

/* As an agent: answers for every host but one as train-worker --probe does there. */
static const char agent_script[] =
    "[ \"$1\" != 198.18.0.40 ] || { echo 'no route to host' >&2; exit 255; }\n"
    "echo \"{\\\"host\\\": \\\"h$1\\\", \\\"machine\\\": \\\"m$1\\\", \\\"version\\\": \\\"1\\\", "
    "\\\"mpi\\\": \\\"4\\\", \\\"digest\\\": \\\"d\\\", \\\"interface\\\": true, "
    "\\\"run_dir\\\": true, \\\"whole\\\": [1, 48, 48]}\"\n";

static char agent[300];

static void make_attempt(void)
{
    use_source_presets();
    make_folder();
    write_in_folder("agent", agent_script);
    snprintf(agent, sizeof agent, "/bin/sh %s", in_folder("agent"));
}

TestSuite(ranks_512, .init = make_attempt, .fini = remove_folder);

/* Of the network for benchmarks (RFC 2544), so that no name service is asked. */
static void host_name(char name[32], int i)
{
    snprintf(name, 32, "198.18.%d.%d", i / 250, i % 250);
}

/* SURFsara's recipe, on so many nodes; hosts: named in the job, 0 for none. */
static struct job_spec *job_on(const char *launcher, int nodes, int workers, int hosts)
{
    char *text, name[32];
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    fprintf(out,
            "{\"preset\": \"surfsara-24k\", \"data\": {\"train\": \"x\"}, \"cluster\": {"
            "\"launcher\": \"%s\", \"nodes\": %d, \"workers_per_node\": %d, "
            "\"threads_per_worker\": %d",
            launcher, nodes, workers, 48 / workers);
    for (int i = 0; i < hosts; i++) {
        host_name(name, i);
        fprintf(out, "%s\"%s\"", i ? ", " : ", \"interface\": \"ib0\", \"hosts\": [", name);
    }
    fputs(hosts ? "]}}" : "}}", out);
    fclose(out);
    struct job_spec *spec = job_of(text);
    free(text);
    return spec;
}

static struct launch_request ranks_request(const struct job_spec *spec)
{
    static const struct slurm_settings plain = {0};

    return (struct launch_request){.job_id = 7,
                                   .attempt = 1,
                                   .stall_seconds = 60,
                                   .run_dir = folder,
                                   .spec = spec,
                                   .threads = spec->cluster.threads_per_worker,
                                   .bind = JOB_BIND_AUTO,
                                   .mpirun = "/bin/echo",
                                   .worker = "/opt/train-worker",
                                   .agent = agent,
                                   .slurm = &plain,
                                   .time_limit_seconds = NAN};
}

static char *read_in_folder(const char *name)
{
    char *text;
    size_t bytes;
    struct error e;

    cr_assert_eq(file_read(in_folder(name), 65536, &text, &bytes, &e), 0, "%s", e.text);
    return text;
}

/* What mpirun would be started with, after the hosts were asked: the launcher's own program becomes
 * echo here. The hostfile is in folder. */
static char *launch_ranks(const struct launch_request *r)
{
    struct error e;
    int status;

    cr_assert_eq(hosts_write(r, folder, &e), 0, "%s", e.text);
    char **argv = command_argv(r, folder, false), **first = command_on_hosts(argv, folder);
    pid_t child = fork();

    if (child == 0) {
        dup2(open(in_folder("out"), O_WRONLY | O_CREAT | O_TRUNC, 0644), STDOUT_FILENO);
        _exit(hosts_launch(first + 2));
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
    command_free(first);
    command_free(argv);
    return read_in_folder("out");
}

static void expect_words(const char *text, const char *words)
{
    cr_assert_not_null(strstr(text, words), "%s\nlacks\n%s", text, words);
}

/* Every host that answers once, in the job's order, with the job's workers. */
static void check_hostfile(int nodes, int workers)
{
    char *text = read_in_folder("hostfile"), *line = text, expected[64], name[32];
    for (int i = 0; i < nodes; i++) {
        host_name(name, i < SILENT ? i : i + 1);
        snprintf(expected, sizeof expected, "%s slots=%d\n", name, workers);
        cr_assert_eq(strncmp(line, expected, strlen(expected)), 0, "node %d: %.40s is not %s", i,
                     line, expected);
        line += strlen(expected);
    }
    cr_assert_str_eq(line, "", "nothing else");
    free(text);
}

/* One host more than needed is named, as one of them is silent. */
static void check_local(int nodes, int workers)
{
    char words[64];
    struct job_spec *spec = job_on("local", nodes, workers, nodes + 1);
    struct launch_request r = ranks_request(spec);

    char *many = launch_ranks(&r);
    check_hostfile(nodes, workers);
    expect_words(many, "-np 512 --hostfile ");
    snprintf(words, sizeof words, " --map-by slot:PE=%d --bind-to core ", 48 / workers);
    expect_words(many, words);
    expect_words(many, " --mca oob_tcp_if_include ib0 --mca btl_tcp_if_include ib0 ");
    cr_assert_null(strstr(many, "198.18."), "the hosts stand in the hostfile alone");
    cr_assert_lt(strlen(many), 2000 + 4 * strlen(folder));
    free(many);
    job_spec_destroy(spec);
}

Test(ranks_512, mpirun_is_given_256_hosts_of_2_by_a_hostfile)
{
    check_local(256, 2);
}

Test(ranks_512, mpirun_is_given_64_hosts_of_8)
{
    check_local(64, 8);
}

static void check_slurm_ranks(int nodes, int workers, bool srun)
{
    char words[160];
    struct error e;
    struct job_spec *spec = job_on("slurm", nodes, workers, 0);
    struct launch_request r = ranks_request(spec);
    struct slurm_settings settings = {.srun = srun};
    char *text;

    r.slurm = &settings;
    cr_assert_eq(slurm_script(&r, &text, &e), 0, "%s", e.text);
    snprintf(words, sizeof words, "#SBATCH --nodes=%d --ntasks-per-node=%d --cpus-per-task=%d\n",
             nodes, workers, 48 / workers);
    expect_words(text, words);
    if (srun)
        snprintf(words, sizeof words,
                 "--nodes=%d --ntasks=512 --ntasks-per-node=%d --cpus-per-task=%d ", nodes, workers,
                 48 / workers);
    else
        snprintf(words, sizeof words, " -np 512 $place ");
    expect_words(text, words);
    free(text);
    job_spec_destroy(spec);
}

Test(ranks_512, slurm_is_asked_for_the_plans_nodes_tasks_and_cores)
{
    check_slurm_ranks(256, 2, false);
    check_slurm_ranks(256, 2, true);
    check_slurm_ranks(64, 8, false);
    check_slurm_ranks(64, 8, true);
}

static int64_t ranks_memory(int nodes, int workers)
{
    struct job_spec *spec = job_on("slurm", nodes, workers, 0);
    spec->cluster.threads_per_worker = 6; /* each takes memory too */
    struct plan_inputs in = {.train_images = 1281167};
    struct problems problems = {0};
    struct plan *plan = plan_make(spec, &in, &problems);

    cr_assert_not_null(plan);
    cr_assert_eq(plan->world_size, nodes * workers);
    int64_t bytes = plan->memory_bytes_per_worker;
    plan_destroy(plan);
    job_spec_destroy(spec);
    return bytes;
}

/* Measured for common/plan/memory.c: 51.1 MB an image and 337 MB besides. */
Test(ranks_512, a_worker_needs_no_more_memory_than_in_a_small_job)
{
    int64_t one = ranks_memory(1, 2);

    cr_assert_float_eq((double)one, 48 * 51.1e6 + 337e6, 0.05 * (double)one);
    cr_assert_eq(ranks_memory(256, 2), one);
    cr_assert_eq(ranks_memory(64, 8), one);
}
