#include "launch/command.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/xalloc.h"

/* The daemon ends a stalled run after stall_seconds. Ranks that it cannot reach exit later. */
#define GIVE_UP_STALLS  2
#define GIVE_UP_SECONDS 10

struct vector {
    char **items; /* NULL-terminated; NULL while empty */
    size_t count, capacity;
};

static void command_add(struct vector *v, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void command_add(struct vector *v, const char *format, ...)
{
    va_list arguments;
    char *text;

    va_start(arguments, format);
    must_alloc(vasprintf(&text, format, arguments) < 0 ? NULL : text);
    va_end(arguments);
    v->items = must_alloc(array_reserve(v->items, v->count + 2, &v->capacity, sizeof *v->items));
    v->items[v->count++] = text;
    v->items[v->count] = NULL;
}

void command_free(char **strings)
{
    for (char **s = strings; s && *s; s++)
        free(*s);
    free(strings);
}

/* Uses r->bind: with the document's, two mpirun on a node would both bind to its first cores. */
static void command_add_placement(struct vector *v, const struct launch_request *r)
{
    struct placement_wish wish = placement_wish_of(r->spec, r->threads);
    const char *options[PLACEMENT_OPTIONS];

    wish.bind = r->bind;
    if (placement_spans(&r->machine, &wish))
        wish.mpi = launch_mpi_version(r->mpirun);
    struct placement placement = placement_choose(&r->machine, &wish);
    placement_options(&placement, options);
    for (const char **option = options; *option; option++)
        command_add(v, "%s", *option);
}

static void command_add_parameter(struct vector *v, const char *name, const char *value)
{
    command_add(v, "--mca");
    command_add(v, "%s", name);
    command_add(v, "%s", value);
}

char *command_agent(const struct launch_request *r)
{
    if (!r->agent || !r->spec->cluster.has_ssh_port)
        return xstrdup_or_null(r->agent);
    return xasprintf("%s -p %lld", r->agent, (long long)r->spec->cluster.ssh_port);
}

/* Without keepalive, mpirun was seen to hang forever when the link to a host was cut, and to leave
 * the remote processes running; with it both ends give up within 10 s, while a link that recovers
 * within 4 s answers one of the probes. When a connection to a rank is closed, ranks of Open MPI 5
 * abort the job without naming that rank; opal_abort_delay gives mpirun time to notice first that
 * the rank has ended. */
static void command_add_network(struct vector *v, const struct launch_request *r)
{
    const char *interface = r->spec->cluster.interface;
    char *agent = command_agent(r);

    if (agent)
        command_add_parameter(v, "plm_rsh_agent", agent);
    free(agent);
    command_add_parameter(v, "oob_tcp_keepalive_time", "5");
    command_add_parameter(v, "oob_tcp_keepalive_intvl", "1");
    command_add_parameter(v, "oob_tcp_keepalive_probes", "5");
    command_add_parameter(v, "opal_abort_delay", "5");
    if (!interface)
        return;
    command_add_parameter(v, "oob_tcp_if_include", interface);
    command_add_parameter(v, "btl_tcp_if_include", interface);
}

char **command_network(const struct launch_request *r)
{
    struct vector v = {0};

    command_add_network(&v, r);
    return v.items;
}

/* Variables that choose the kernels of the engine and of OpenBLAS. Ranks on other hosts do not
 * inherit them and would use kernels whose results differ in the last bits. */
static void command_add_kernel_choice(struct vector *v, const struct job_spec *spec)
{
    static const char *const names[] = {"GLIBC_TUNABLES", "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (getenv(names[i]) && !job_env_value(spec, names[i])) {
            command_add(v, "-x");
            command_add(v, "%s", names[i]);
        }
}

/* Open MPI passes these variables on as data, not through a shell. They override inherited ones. */
static void command_add_variables(struct vector *v, const struct job_spec *spec)
{
    for (size_t i = 0; i < spec->cluster.env_count; i++) {
        command_add(v, "-x");
        command_add(v, "%s", spec->cluster.env[i]);
    }
}

char **command_variables(const struct job_spec *spec)
{
    struct vector v = {0};

    command_add_variables(&v, spec);
    return v.items;
}

char **command_argv(const struct launch_request *r, const char *attempt_dir, bool as_root)
{
    struct vector v = {0};

    command_add(&v, "%s", r->mpirun);
    if (as_root)
        command_add(&v, "--allow-run-as-root");
    if (r->spec->cluster.mpi_prefix) {
        command_add(&v, "--prefix");
        command_add(&v, "%s", r->spec->cluster.mpi_prefix);
    }
    command_add(&v, "-np");
    command_add(&v, "%lld", (long long)job_spec_world_size(r->spec));
    command_add(&v, "--hostfile");
    command_add(&v, "%s/hostfile", attempt_dir);
    command_add_placement(&v, r);
    if (job_spec_names_hosts(r->spec))
        command_add_network(&v, r);
    /* A rank that ends with an error ends the job, even after MPI_Finalize. */
    command_add_parameter(&v, "orte_abort_on_non_zero_status", "1");
    static const char *const exported[] = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", ATTEMPT_MARK};
    for (size_t i = 0; i < sizeof exported / sizeof exported[0]; i++) {
        command_add(&v, "-x");
        command_add(&v, "%s", exported[i]);
    }
    if (job_spec_names_hosts(r->spec))
        command_add_kernel_choice(&v, r->spec);
    command_add_variables(&v, r->spec);
    for (size_t i = 0; i < r->spec->cluster.mpi_arg_count; i++)
        command_add(&v, "%s", r->spec->cluster.mpi_args[i]);
    command_add(&v, "%s", r->worker);
    command_add(&v, "--job");
    command_add(&v, "%s/job.json", r->run_dir);
    command_add(&v, "--run-dir");
    command_add(&v, "%s", r->run_dir);
    command_add(&v, "--attempt");
    command_add(&v, "%lld", (long long)r->attempt);
    command_add(&v, "--stall-seconds");
    command_add(&v, "%lld", (long long)r->stall_seconds);
    if (job_spec_names_hosts(r->spec) && r->stall_seconds > 0) {
        command_add(&v, "--give-up-seconds");
        command_add(&v, "%lld", (long long)(GIVE_UP_STALLS * r->stall_seconds + GIVE_UP_SECONDS));
    }
    if (r->data_roots) {
        command_add(&v, "--data-roots");
        command_add(&v, "%s", r->data_roots);
    }
    if (r->resumes) {
        command_add(&v, "--resume");
        command_add(&v, "latest");
    }
    if (r->measure_peak)
        command_add(&v, "--measure-peak");
    return v.items;
}

bool command_has_prefix(const char *variable, const char *const *prefixes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strncmp(variable, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

static bool command_from_an_outer_launcher(const char *variable)
{
    static const char *const prefixes[] = {
        "OMPI_COMM_",
        "OMPI_UNIVERSE_",
        "OMPI_APP_",
        "OMPI_FILE_",
        "OMPI_ARGV",
        "OMPI_COMMAND",
        "OMPI_FIRST_",
        "OMPI_NUM_",
        "OMPI_MCA_orte",
        "OMPI_MCA_ess",
        "OMPI_MCA_pmix",
        "OMPI_MCA_initial",
        "OMPI_MCA_shmem",
        "PMIX_",
        "PMI_",
        "ORTE_",
        "SLURM_",
        "OMP_NUM_THREADS=",
        "OPENBLAS_NUM_THREADS=",
        ATTEMPT_MARK "=",
        "NOTIFY_SOCKET=",
        "LISTEN_",
        "WATCHDOG_",
    };
    return command_has_prefix(variable, prefixes, sizeof prefixes / sizeof prefixes[0]);
}

char **command_on_hosts(char *const *argv, const char *attempt_dir)
{
    struct vector v = {0};

    /* Executes this program, even if its file has been replaced since. */
    command_add(&v, "/proc/self/exe");
    command_add(&v, HOSTS_LAUNCH);
    command_add(&v, "%s", attempt_dir);
    for (; *argv; argv++)
        command_add(&v, "%s", *argv);
    return v.items;
}

#define SHARED_MEMORY "OMPI_MCA_btl_vader_backing_directory" /* Open MPI 5 uses this name too */
#define TCP_NETWORKS  "OMPI_MCA_btl_tcp_if_"

char **command_environment(char *const *inherited, const struct launch_request *r,
                           const char *attempt_dir, const char *shared)
{
    static const char *const own[] = {SHARED_MEMORY "=", TCP_NETWORKS};
    bool one_machine = !job_spec_names_hosts(r->spec) && !r->spec->cluster.mpi_arg_count;
    struct vector v = {0};

    for (; inherited && *inherited; inherited++) {
        if (!command_from_an_outer_launcher(*inherited))
            command_add(&v, "%s", *inherited);
        if (command_has_prefix(*inherited, own, 1))
            shared = NULL;
        one_machine &= !command_has_prefix(*inherited, own + 1, 1);
    }
    /* Ranks without shared memory use TCP. Restricting it to lo keeps their ports local and avoids
     * Open MPI 5's warnings about unreachable networks. */
    if (one_machine)
        command_add(&v, TCP_NETWORKS "include=lo");
    if (shared) {
        command_add(&v, SHARED_MEMORY "=%s", shared);
        command_add(&v, "OMPI_MCA_orte_tmpdir_base=%s", shared);
        command_add(&v, "PRTE_MCA_prte_tmpdir_base=%s", shared); /* for Open MPI 5 */
    }
    command_add(&v, "OMP_NUM_THREADS=%lld", (long long)r->threads);
    /* Each of the engine's threads calls BLAS. */
    command_add(&v, "OPENBLAS_NUM_THREADS=1");
    command_add(&v, ATTEMPT_MARK "=%s", attempt_dir);
    return v.items;
}

static void command_quote_into(FILE *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-+=./:,@%^";
    if (*word && word[strspn(word, plain)] == '\0') {
        fputs(word, out);
        return;
    }
    fputc('\'', out);
    for (; *word; word++)
        if (*word == '\'')
            fputs("'\\''", out);
        else
            fputc(*word, out);
    fputc('\'', out);
}

char *command_quote(char *const *argv)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = must_alloc(open_memstream(&text, &bytes));

    for (char *const *word = argv; *word; word++) {
        if (word != argv)
            fputc(' ', out);
        command_quote_into(out, *word);
    }
    fputc('\n', out);
    fclose(out);
    return must_alloc(text);
}

char *command_hostfile(const struct launch_request *r)
{
    return xasprintf("localhost slots=%lld\n", (long long)job_spec_world_size(r->spec));
}
