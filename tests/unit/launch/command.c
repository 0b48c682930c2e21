#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/system/file.h"
#include "launch/command.h"

static char arg_a[] = "--mca", arg_b[] = "it's $(here)";

static struct launch_request command_request(struct job_spec *spec)
{
    static char *args[] = {arg_a, arg_b};
    *spec = (struct job_spec){0};
    spec->cluster.nodes = 1;
    spec->cluster.workers_per_node = 4;
    spec->cluster.mpi_args = args;
    spec->cluster.mpi_arg_count = 2;
    return (struct launch_request){.job_id = 7,
                                   .attempt = 2,
                                   .stall_seconds = 60,
                                   .run_dir = "/state/jobs/7",
                                   .spec = spec,
                                   .threads = 3,
                                   .bind = JOB_BIND_AUTO,
                                   .mpirun = "/usr/bin/mpirun",
                                   .worker = "/opt/train-worker"};
}

static int command_index(char **argv, const char *word)
{
    for (int i = 0; argv[i]; i++)
        if (strcmp(argv[i], word) == 0)
            return i;
    return -1;
}

/* The argument behind a word, "" if the word is not there. */
static const char *behind(char **argv, const char *word)
{
    int i = command_index(argv, word);
    return i >= 0 && argv[i + 1] ? argv[i + 1] : "";
}

Test(command, has_ranks_hostfile_cores_and_worker)
{
    struct job_spec spec;
    struct launch_request r = command_request(&spec);
    char **argv = command_argv(&r, "/state/jobs/7/attempt-2", false);

    cr_assert_str_eq(argv[0], "/usr/bin/mpirun");
    cr_assert_eq(command_index(argv, "--allow-run-as-root"), -1);
    cr_assert_str_eq(behind(argv, "-np"), "4");
    cr_assert_str_eq(behind(argv, "--hostfile"), "/state/jobs/7/attempt-2/hostfile");
    cr_assert_str_eq(behind(argv, "--map-by"), "slot:PE=3");
    cr_assert_str_eq(behind(argv, "--bind-to"), "core");
    cr_assert_str_eq(behind(argv, "--job"), "/state/jobs/7/job.json");
    cr_assert_str_eq(behind(argv, "--run-dir"), "/state/jobs/7");
    cr_assert_str_eq(behind(argv, "--attempt"), "2");
    cr_assert_str_eq(behind(argv, "--stall-seconds"), "60");
    command_free(argv);
}

Test(command, puts_mpi_args_before_the_worker_and_its_arguments_after)
{
    struct job_spec spec;
    struct launch_request r = command_request(&spec);
    char **argv = command_argv(&r, "/a", true);
    int worker = command_index(argv, "/opt/train-worker");

    cr_assert_str_eq(argv[1], "--allow-run-as-root");
    cr_assert_str_eq(argv[worker - 1], arg_b);
    cr_assert_str_eq(argv[worker - 2], arg_a);
    cr_assert_str_eq(argv[worker + 1], "--job");
    command_free(argv);
}

Test(command, gives_ranks_the_variables_of_the_job)
{
    struct job_spec spec;
    struct launch_request r = command_request(&spec);
    char wait[] = "OMP_WAIT_POLICY=active", core[] = "OPENBLAS_CORETYPE=HASWELL", n1[] = "n1",
         *variables[] = {wait, core}, *hosts[] = {n1};
    spec.cluster.env = variables;
    spec.cluster.env_count = 2;
    spec.cluster.hosts = hosts;
    spec.cluster.host_count = 1;
    setenv("OPENBLAS_CORETYPE", "ZEN", 1);
    char **argv = command_argv(&r, "/a", false);
    int first = command_index(argv, wait);

    cr_assert_gt(first, 0);
    cr_assert_str_eq(argv[first - 1], "-x");
    cr_assert_str_eq(argv[first + 1], "-x");
    cr_assert_str_eq(argv[first + 2], core);
    cr_assert_lt(first, command_index(argv, "/opt/train-worker"));
    cr_assert_eq(command_index(argv, "OPENBLAS_CORETYPE"), -1, "it stands there once");
    unsetenv("OPENBLAS_CORETYPE");
    command_free(argv);
}

Test(command, binds_as_the_document_says)
{
    struct job_spec spec;
    struct launch_request r = command_request(&spec);

    r.bind = JOB_BIND_SOCKET;
    spec.cluster.smt = true;
    char **argv = command_argv(&r, "/a", false);
    cr_assert_str_eq(behind(argv, "--map-by"), "socket:PE=3");
    cr_assert_str_eq(behind(argv, "--bind-to"), "hwthread");
    cr_assert_gt(command_index(argv, "--use-hwthread-cpus"), 0);
    command_free(argv);
}

Test(command, binds_nothing_where_cores_are_shared)
{
    struct job_spec spec;
    struct launch_request r = command_request(&spec);
    r.bind = JOB_BIND_NONE;
    char **argv = command_argv(&r, "/a", false);

    cr_assert_str_eq(behind(argv, "--map-by"), "slot:OVERSUBSCRIBE");
    cr_assert_str_eq(behind(argv, "--bind-to"), "none");
    command_free(argv);
    char *hostfile = command_hostfile(&r);
    cr_assert_str_eq(hostfile, "localhost slots=4\n");
    free(hostfile);
}

Test(command, tells_mpirun_of_the_network_between_hosts)
{
    struct job_spec spec;
    struct launch_request r = command_request(&spec);
    char n1[] = "n1:8", n2[] = "n2", interface[] = "ib0", *hosts[] = {n1, n2};
    spec.cluster.nodes = 2;
    spec.cluster.hosts = hosts;
    spec.cluster.host_count = 2;
    spec.cluster.interface = interface;
    spec.cluster.has_ssh_port = true;
    spec.cluster.ssh_port = 2222;
    r.agent = "ssh -o BatchMode=yes";
    char **argv = command_argv(&r, "/a", false);

    cr_assert_str_eq(behind(argv, "-np"), "8");
    cr_assert_str_eq(behind(argv, "plm_rsh_agent"), "ssh -o BatchMode=yes -p 2222");
    cr_assert_str_eq(behind(argv, "btl_tcp_if_include"), "ib0");
    cr_assert_str_eq(behind(argv, "oob_tcp_if_include"), "ib0");
    cr_assert_str_eq(behind(argv, "oob_tcp_keepalive_time"), "5");
    cr_assert_str_eq(behind(argv, "oob_tcp_keepalive_intvl"), "1");
    cr_assert_str_eq(behind(argv, "oob_tcp_keepalive_probes"), "5");
    cr_assert_str_eq(behind(argv, "opal_abort_delay"), "5");
    char **first = command_on_hosts(argv, "/a");
    cr_assert_str_eq(first[1], "--launch-hosts");
    cr_assert_str_eq(first[2], "/a");
    cr_assert_str_eq(first[3], argv[0]);
    command_free(first);
    command_free(argv);
}

Test(command, ranks_on_hosts_get_what_chooses_their_kernels)
{
    struct job_spec spec;
    struct launch_request r = command_request(&spec);
    char n1[] = "n1", *hosts[] = {n1};

    setenv("OPENBLAS_CORETYPE", "Haswell", 1);
    unsetenv("GLIBC_TUNABLES");
    char **argv = command_argv(&r, "/a", false);
    cr_assert_eq(command_index(argv, "OPENBLAS_CORETYPE"), -1, "here it is inherited");
    command_free(argv);
    spec.cluster.hosts = hosts;
    spec.cluster.host_count = 1;
    argv = command_argv(&r, "/a", false);
    int at = command_index(argv, "OPENBLAS_CORETYPE");
    cr_assert_gt(at, 0);
    cr_assert_str_eq(argv[at - 1], "-x");
    cr_assert_eq(command_index(argv, "GLIBC_TUNABLES"), -1);
    command_free(argv);
    unsetenv("OPENBLAS_CORETYPE");
}

static char *command_value(char **environment, const char *name)
{
    size_t length = strlen(name);
    for (; *environment; environment++)
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
            return *environment + length + 1;
    return NULL;
}

Test(command, cleans_the_environment_of_an_outer_mpirun)
{
    struct job_spec spec;
    struct launch_request r = command_request(&spec);
    char path[] = "PATH=/bin", rank[] = "OMPI_COMM_WORLD_RANK=3", pmix[] = "PMIX_RANK=3";
    char slurm[] = "SLURM_JOB_ID=12", omp[] = "OMP_NUM_THREADS=64",
         root[] = "OMPI_ALLOW_RUN_AS_ROOT=1";
    char notify[] = "NOTIFY_SOCKET=/run/x", mca[] = "OMPI_MCA_btl=self,tcp";
    char *inherited[] = {path, rank, pmix, slurm, omp, root, notify, mca, NULL};
    char **environment =
        command_environment(inherited, &r, "/state/jobs/7/attempt-2", "/dev/shm/x");

    cr_assert_str_eq(command_value(environment, "PATH"), "/bin");
    cr_assert_str_eq(command_value(environment, "OMPI_ALLOW_RUN_AS_ROOT"), "1");
    cr_assert_str_eq(command_value(environment, "OMPI_MCA_btl"), "self,tcp",
                     "a site's own setting stays");
    cr_assert_null(command_value(environment, "OMPI_COMM_WORLD_RANK"));
    cr_assert_null(command_value(environment, "PMIX_RANK"));
    cr_assert_null(command_value(environment, "SLURM_JOB_ID"));
    cr_assert_null(command_value(environment, "NOTIFY_SOCKET"));
    cr_assert_str_eq(command_value(environment, "OMP_NUM_THREADS"), "3");
    cr_assert_str_eq(command_value(environment, ATTEMPT_MARK), "/state/jobs/7/attempt-2");
    cr_assert_str_eq(command_value(environment, "OMPI_MCA_btl_vader_backing_directory"),
                     "/dev/shm/x");
    command_free(environment);
}

Test(command, leaves_shared_memory_where_a_site_puts_it)
{
    struct job_spec spec;
    struct launch_request r = command_request(&spec);
    char own[] = "OMPI_MCA_btl_vader_backing_directory=/mnt/huge", *inherited[] = {own, NULL};
    char **environment = command_environment(inherited, &r, "/a", "/dev/shm/x");

    cr_assert_str_eq(command_value(environment, "OMPI_MCA_btl_vader_backing_directory"),
                     "/mnt/huge");
    command_free(environment);
}

Test(command, keeps_ranks_of_one_machine_on_the_loopback)
{
    struct job_spec spec;
    struct launch_request r = command_request(&spec);
    char *inherited[] = {NULL}, n1[] = "n1", *hosts[] = {n1};
    char excluded[] = "OMPI_MCA_btl_tcp_if_exclude=eth1", *by_site[] = {excluded, NULL};

    spec.cluster.mpi_arg_count = 0; /* which may name networks of their own */
    char **environment = command_environment(inherited, &r, "/a", "/dev/shm/x");
    cr_assert_str_eq(command_value(environment, "OMPI_MCA_btl_tcp_if_include"), "lo");
    cr_assert_str_eq(command_value(environment, "OMPI_MCA_orte_tmpdir_base"), "/dev/shm/x");
    cr_assert_str_eq(command_value(environment, "PRTE_MCA_prte_tmpdir_base"), "/dev/shm/x");
    command_free(environment);
    environment = command_environment(by_site, &r, "/a", NULL);
    cr_assert_null(command_value(environment, "OMPI_MCA_btl_tcp_if_include"), "a site's own stays");
    command_free(environment);
    spec.cluster.hosts = hosts;
    spec.cluster.host_count = 1;
    environment = command_environment(inherited, &r, "/a", NULL);
    cr_assert_null(command_value(environment, "OMPI_MCA_btl_tcp_if_include"));
    command_free(environment);
}

/* A real script, which notes that it was called. */
Test(command, asks_mpirun_once_for_its_version)
{
    char folder[] = "/tmp/traind-command.XXXXXX", path[64], text[256];
    struct placement_parts half = {2, 24, 24}, all = {1, 48, 48};
    struct job_spec spec;
    struct launch_request r = command_request(&spec);
    struct error e;

    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/mpirun", folder);
    snprintf(text, sizeof text, "#!/bin/sh\necho x >>%s/asked\necho 'mpirun (Open MPI) 5.0.7'\n",
             folder);
    cr_assert_eq(file_write_unsynced(path, text, strlen(text), &e), 0);
    cr_assert_eq(chmod(path, 0755), 0);
    r.mpirun = path;
    r.threads = 10; /* of 4 workers: 2 fit into each socket */
    r.machine = (struct placement_machine){half, half, all};
    char **argv = command_argv(&r, "/a", false);
    cr_assert_str_eq(behind(argv, "--map-by"), "numa:PE=10");
    command_free(argv);
    snprintf(text, sizeof text, "%s/asked", folder);
    cr_assert_neq(access(text, F_OK), 0, "where it does not matter it is not asked");
    spec.cluster.workers_per_node = 3;
    r.threads = 16;
    for (int i = 0; i < 2; i++) {
        argv = command_argv(&r, "/a", false);
        cr_assert_str_eq(behind(argv, "--map-by"), "slot:OVERSUBSCRIBE");
        cr_assert_str_eq(behind(argv, "--bind-to"), "none");
        command_free(argv);
    }
    struct stat st;
    cr_assert_eq(stat(text, &st), 0);
    cr_assert_eq(st.st_size, 2);
    file_remove_tree(folder, NULL);
}

/* The quoted line goes through a real shell and must come out as it went in. */
Test(command, quotes_so_that_a_shell_reads_the_same)
{
    char a[] = "plain-1.0/x=y", b[] = "it's", c[] = "$(touch x) `id` \"q\" \\ * ~", d[] = "",
         e[] = "a\nb";
    char *argv[] = {a, b, c, d, e, NULL}, script[512], got[512];
    char *quoted = command_quote(argv);

    quoted[strlen(quoted) - 1] = '\0';
    snprintf(script, sizeof script, "printf '<%%s>' %s", quoted);
    FILE *shell = popen(script, "r");
    size_t n = fread(got, 1, sizeof got - 1, shell);
    got[n] = '\0';
    cr_assert_eq(pclose(shell), 0);
    cr_assert_str_eq(got, "<plain-1.0/x=y><it's><$(touch x) `id` \"q\" \\ * ~><><a\nb>");
    free(quoted);
}
