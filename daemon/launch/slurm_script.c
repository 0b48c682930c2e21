#include "daemon/launch/slurm_script.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/digest.h"
#include "common/error.h"
#include "common/job/job_spec.h"
#include "common/xalloc.h"
#include "daemon/launch/slurm_reply.h"
#include "launch/command.h"

/* Slurm sends --signal up to a minute early (sbatch(1)), so shorter jobs do not use it; the script
 * and traind watch the time themselves. */
#define SIGNAL_FROM_SECONDS 600

#define PLACEMENT_EXIT 2 /* the workers do not fit on the node */

void slurm_job_name(const struct launch_request *r, char name[SLURM_NAME_BYTES])
{
    char unique[PATH_MAX + 64], hex[DIGEST_BYTES];

    snprintf(unique, sizeof unique, "%s %.6f", r->run_dir, r->created_at);
    digest_text(unique, strlen(unique), hex);
    snprintf(name, SLURM_NAME_BYTES, "traind-%lld-%lld-%.16s", (long long)r->job_id,
             (long long)r->attempt, hex);
}

static void slurm_script_put_word(FILE *out, const char *before, const char *word,
                                  const char *after)
{
    char *const argv[] = {(char *)word, NULL};
    char *quoted = must_alloc(command_quote(argv));

    fprintf(out, "%s%.*s%s", before, (int)strlen(quoted) - 1, quoted,
            after); /* without the newline */
    free(quoted);
}

/* Writes --option="value". sbatch interprets quotes and backslashes like a shell. The value has no
 * newline, because strings of a document are printable; slurm_script checks the path. */
static void slurm_script_put_option(FILE *out, const char *option, const char *value)
{
    fprintf(out, "#SBATCH --%s=\"", option);
    for (; *value; value++)
        fprintf(out, *value == '"' || *value == '\\' ? "\\%c" : "%c", *value);
    fputs("\"\n", out);
}

char *slurm_host_list(const struct job_spec *spec)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = must_alloc(open_memstream(&text, &bytes));

    for (size_t i = 0; i < spec->cluster.host_count; i++)
        fprintf(out, "%s%.*s", i ? "," : "", (int)strcspn(spec->cluster.hosts[i], ":"),
                spec->cluster.hosts[i]);
    fclose(out);
    return must_alloc(text);
}

static void slurm_script_put_directives(FILE *out, const struct launch_request *r)
{
    const struct job_spec *spec = r->spec;
    const char *account = spec->cluster.account ? spec->cluster.account : r->slurm->account;
    char name[SLURM_NAME_BYTES];

    slurm_job_name(r, name);
    fprintf(out, "#SBATCH --job-name=%s\n", r->by_hand ? "traind" : name);
    if (!r->by_hand) {
        char folder[PATH_MAX + 32];
        snprintf(folder, sizeof folder, "%s/attempt-%lld", r->run_dir, (long long)r->attempt);
        slurm_script_put_option(out, "chdir", folder);
        fputs("#SBATCH --output=slurm.log --open-mode=append\n", out);
    }
    fprintf(out, "#SBATCH --nodes=%lld --ntasks-per-node=%lld --cpus-per-task=%lld\n",
            (long long)spec->cluster.nodes, (long long)spec->cluster.workers_per_node,
            (long long)r->threads);
    if (!spec->cluster.smt) /* with smt, Slurm's CPUs, which are hardware threads, are the slots */
        fputs("#SBATCH --threads-per-core=1\n", out);
    fputs("#SBATCH --requeue\n", out);
    if (spec->cluster.time_limit)
        slurm_script_put_option(out, "time", spec->cluster.time_limit);
    if (isnan(r->time_limit_seconds) || r->time_limit_seconds >= SIGNAL_FROM_SECONDS)
        fprintf(out, "#SBATCH --signal=B:USR1@%.0f\n", ceil(r->lead_seconds));
    if (spec->cluster.partition)
        slurm_script_put_option(out, "partition", spec->cluster.partition);
    if (account)
        slurm_script_put_option(out, "account", account);
    if (spec->cluster.constraint)
        slurm_script_put_option(out, "constraint", spec->cluster.constraint);
    if (spec->cluster.host_count) {
        char *hosts = slurm_host_list(spec);
        slurm_script_put_option(out, "nodelist", hosts);
        free(hosts);
    }
    if (spec->priority)
        fprintf(out, "#SBATCH --nice=%lld\n", (long long)-spec->priority);
    if (r->slurm->options)
        fprintf(out, "#SBATCH %s\n", r->slurm->options);
}

static void slurm_script_put_folder(FILE *out, const struct launch_request *r)
{
    fputs("\numask 077\n", out);
    if (r->by_hand) {
        fputs("run=$PWD/traind-run\nmkdir -p \"$run\" || exit 1\n", out);
        fputs("[ -e \"$run/job.json\" ] || cat >\"$run/job.json\" <<'TRAIND_JOB'\n", out);
        fprintf(out, "%s\nTRAIND_JOB\n", r->document);
    } else {
        slurm_script_put_word(out, "run=", r->run_dir, "\n");
    }
    fprintf(out, "resume=%s\n\n", r->resumes ? "'--resume latest'" : "");
    fputs("# Slurm starts this script again after requeueing the job: another "
          "attempt.\n",
          out);
    fprintf(out, "attempt=$((%lld + ${SLURM_RESTART_COUNT:-0}))\n", (long long)r->attempt);
    fprintf(out, "[ $attempt = %lld ] || resume='--resume latest'\n", (long long)r->attempt);
    fputs("dir=$run/attempt-$attempt\n", out);
    fprintf(out,
            "# The previous attempt may have been cancelled before traind knew of this one.\n"
            "is_cancelled() {\n"
            "    for n in $(seq %lld $attempt); do\n"
            "        [ ! -e \"$run/attempt-$n/cancel-requested\" ] || return 0\n"
            "    done\n"
            "    return 1\n"
            "}\n",
            (long long)r->attempt);
    if (!r->by_hand)
        fputs("# cancelled or removed while Slurm did not answer\n"
              "[ -e \"$run/job.json\" ] && ! is_cancelled || exit 0\n",
              out);
    fputs("mkdir -p \"$dir\" || exit 1\n"
          "if ! (set -C && echo \"$SLURM_JOB_ID\" >\"$dir/slurm-job\") 2>/dev/null &&\n"
          "    [ \"$(cat \"$dir/slurm-job\")\" != \"$SLURM_JOB_ID\" ]; then\n"
          "    echo \"traind: attempt $attempt has been started by Slurm's job $(cat "
          "\"$dir/slurm-job\") already\" >&2\n"
          "    exit 3\n"
          "fi\n"
          "cd \"$run\" && exec >>\"$dir/stdout.log\" 2>&1 </dev/null || exit 1\n\n",
          out);
}

static bool slurm_script_is_bound(const struct job_spec *spec)
{
    return spec->cluster.bind != JOB_BIND_NONE;
}

/* The job's variables come after the site's setup, which would otherwise override them. */
static void slurm_script_put_environment(FILE *out, const struct launch_request *r)
{
    char name[JOB_ENV_NAME_BYTES];
    fprintf(out,
            "export OMP_NUM_THREADS=%lld OMP_PROC_BIND=%s%s OPENBLAS_NUM_THREADS=1 " ATTEMPT_MARK
            "=\"$dir\"\n",
            (long long)r->threads, slurm_script_is_bound(r->spec) ? "close OMP_PLACES=" : "false",
            !slurm_script_is_bound(r->spec) ? ""
            : r->spec->cluster.smt          ? "threads"
                                            : "cores");
    if (r->spec->cluster.interface && r->slurm->srun) {
        slurm_script_put_word(
            out, "export OMPI_MCA_btl_tcp_if_include=", r->spec->cluster.interface,
            "\nexport OMPI_MCA_oob_tcp_if_include=\"$OMPI_MCA_btl_tcp_if_include\"\n");
    }
    if (r->slurm->setup) {
        slurm_script_put_word(out, ". ", r->slurm->setup, " || exit 1\n");
    }
    for (size_t i = 0; r->slurm->srun && i < r->spec->cluster.env_count; i++) {
        const char *value = job_env_split(r->spec->cluster.env[i], name);
        fprintf(out, "export %s=", name);
        slurm_script_put_word(out, "", value, "\n");
    }
}

static void slurm_script_put_words(FILE *out, char *const *words)
{
    if (words && *words)
        fputs(" \\\n   ", out);
    for (; words && *words; words++)
        slurm_script_put_word(out, " ", *words, "");
}

static void slurm_script_put_srun(FILE *out, const struct launch_request *r)
{
    const struct job_spec *spec = r->spec;

    fprintf(out,
            "srun --mpi=pmix --export=ALL --nodes=%lld --ntasks=%lld --ntasks-per-node=%lld "
            "--cpus-per-task=%lld --kill-on-bad-exit=1 ",
            (long long)spec->cluster.nodes, (long long)job_spec_world_size(spec),
            (long long)spec->cluster.workers_per_node, (long long)r->threads);
    /* Slurm's sockets are NUMA domains with SlurmdParameters=numa_node_as_socket. */
    if (slurm_script_is_bound(spec))
        fprintf(out, "--distribution=block:%s --cpu-bind=%s",
                spec->cluster.bind == JOB_BIND_CORE ? "block" : "cyclic",
                spec->cluster.smt ? "threads" : "cores");
    else
        fputs("--cpu-bind=none", out);
}

/* Sockets and NUMA domains are read on the first node, where the script runs. Slurm gives mpirun as
 * many slots on each node as it has workers. */
static void slurm_script_put_placement(FILE *out, const struct launch_request *r)
{
    if (!slurm_script_is_bound(r->spec)) {
        fputs("place='--map-by slot:OVERSUBSCRIBE --bind-to none'\n", out);
        return;
    }
    fputs("place=$(", out);
    if (r->spec->cluster.mpi_prefix) { /* like mpirun --prefix for ranks */
        slurm_script_put_word(out, "LD_LIBRARY_PATH=", r->spec->cluster.mpi_prefix, "/lib ");
    }
    slurm_script_put_word(out, "", r->worker, "");
    fprintf(out,
            " --placement \"$run/job.json\") || {\n"
            "    echo %d >\"$dir/exit\"\n"
            "    exit %d\n"
            "}\n"
            "echo \"traind: on $(hostname): mpirun $place\"\n",
            PLACEMENT_EXIT, PLACEMENT_EXIT);
}

static void slurm_script_put_mpirun(FILE *out, const struct launch_request *r)
{
    const struct job_spec *spec = r->spec;

    fputs(
        "# Open MPI 4 uses the names with OMPI, 5 those with PRTE.\n"
        "[ \"$(id -u)\" != 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
        "\\\n    PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1\n",
        out);
    slurm_script_put_placement(out, r);
    slurm_script_put_word(out, "", r->mpirun, "");
    if (spec->cluster.mpi_prefix) {
        slurm_script_put_word(out, " --prefix ", spec->cluster.mpi_prefix, "");
    }
    fprintf(out, " -np %lld $place", (long long)job_spec_world_size(spec));
    fprintf(out,
            " \\\n    -x OMP_NUM_THREADS%s%s -x OPENBLAS_NUM_THREADS -x " ATTEMPT_MARK
            " --mca orte_abort_on_non_zero_status 1",
            job_env_value(spec, "OMP_PROC_BIND") ? "" : " -x OMP_PROC_BIND",
            !slurm_script_is_bound(spec) || job_env_value(spec, "OMP_PLACES") ? ""
                                                                              : " -x OMP_PLACES");
    char **variables = command_variables(spec);
    slurm_script_put_words(out, variables);
    command_free(variables);
    struct launch_request in_slurm = *r;
    in_slurm.agent = NULL; /* Slurm starts the daemons */
    char **network = command_network(&in_slurm);
    slurm_script_put_words(out, network);
    command_free(network);
    slurm_script_put_words(out, spec->cluster.mpi_args);
}

static void slurm_script_put_worker(FILE *out, const struct launch_request *r)
{
    slurm_script_put_word(out, " \\\n    ", r->worker, "");
    fprintf(out,
            " --job \"$run/job.json\" --run-dir \"$run\" --attempt $attempt --stall-seconds %lld ",
            (long long)r->stall_seconds);
    /* A script submitted by hand runs with the submitter's rights. */
    if (r->data_roots && !r->by_hand) {
        slurm_script_put_word(out, "--data-roots ", r->data_roots, " ");
    }
    fputs("$resume &\npid=$!\n\n", out);
}

/* The watcher ends with the script, and its sleep with the watcher, before the epilog runs. It also
 * ends with the workers, because a signal that arrives before it has set its trap is lost. */
static void slurm_script_put_watch(FILE *out, const struct launch_request *r)
{
    fputs("# The workers finish their step, write a checkpoint and stop.\n"
          "stop() {\n"
          "    is_cancelled || [ -e \"$dir/time-limit-reached\" ] || echo \"$1\" "
          ">\"$dir/slurm-signal\"\n"
          "    kill -USR1 \"$pid\" 2>/dev/null\n"
          "}\n"
          "trap 'stop USR1' USR1\n"
          "trap 'stop TERM' TERM\n",
          out);
    fputs("(\n"
          "    trap - USR1\n"
          "    trap 'kill $! 2>/dev/null; exit' TERM\n"
          "    while sleep 1 & wait $! && kill -0 $$ 2>/dev/null && kill -0 \"$pid\" 2>/dev/null; "
          "do\n",
          out);
    if (!isnan(r->time_limit_seconds))
        fprintf(
            out,
            "        [ $(($(date +%%s) - begun)) -lt %.0f ] || echo >\"$dir/time-limit-reached\"\n",
            floor(r->time_limit_seconds - r->lead_seconds));
    fputs("        is_cancelled || [ -e \"$dir/time-limit-reached\" ] || continue\n"
          "        kill -USR1 $$\n"
          "        exit\n"
          "    done\n"
          ") &\n"
          "watcher=$!\n"
          "code=0\n"
          "while kill -0 \"$pid\" 2>/dev/null; do\n"
          "    wait \"$pid\"\n"
          "    code=$?\n"
          "done\n"
          "kill \"$watcher\" 2>/dev/null && wait \"$watcher\"\n",
          out);
}

/* sstat reports running steps, sacct ended ones if there is accounting storage. Queried before
 * traind notices the end, because sstat reports nothing afterwards. */
static void slurm_script_put_energy(FILE *out, const struct launch_request *r)
{
    fprintf(out,
            "# energy measured by a Slurm plugin\n"
            "if timeout 10 scontrol show config 2>/dev/null |\n"
            "    grep -q '^AcctGatherEnergyType *= acct_gather_energy/[^n]'; then\n"
            "    {\n"
            "        echo \"%s $SLURM_JOB_NUM_NODES\"\n"
            "        timeout 10 sstat -a -n -P -j \"$SLURM_JOB_ID\" -o JobID,ConsumedEnergyRaw\n"
            "        timeout 10 sacct -n -P -j \"$SLURM_JOB_ID\" -o JobID,ConsumedEnergyRaw\n"
            "    } >\"$dir/" SLURM_ENERGY "\" 2>/dev/null\n"
            "fi\n",
            r->slurm->srun ? "srun" : "mpirun");
}

int slurm_script(const struct launch_request *r, char **text, struct error *e)
{
    size_t bytes;

    *text = NULL;
    /* Slurm expands %x in paths, which a backslash would disable. */
    if (!r->by_hand && strpbrk(r->run_dir, "%\\\n"))
        return error_set(
            e, ERR_INVALID,
            "the state folder's path must not contain %%, a backslash or a newline with "
            "launcher slurm: %s",
            r->run_dir);
    FILE *out = must_alloc(open_memstream(text, &bytes));
    fputs("#!/bin/sh\n", out);
    if (!r->by_hand)
        fprintf(out, "# Job %lld of traind, attempt %lld\n", (long long)r->job_id,
                (long long)r->attempt);
    if (r->threads_source)
        fprintf(out, "# %lld threads per worker, from the cores of a node (%s)\n",
                (long long)r->threads, r->threads_source);
    slurm_script_put_directives(out, r);
    slurm_script_put_folder(out, r);
    slurm_script_put_environment(out, r);
    if (!isnan(r->time_limit_seconds))
        fputs("begun=$(date +%s)\n", out);
    fputc('\n', out);
    if (r->slurm->srun)
        slurm_script_put_srun(out, r);
    else
        slurm_script_put_mpirun(out, r);
    slurm_script_put_worker(out, r);
    slurm_script_put_watch(out, r);
    slurm_script_put_energy(out, r);
    fputs("echo $code >\"$dir/exit.new\" && mv \"$dir/exit.new\" \"$dir/exit\"\n"
          "exit $code\n",
          out);
    fclose(out);
    must_alloc(*text);
    return 0;
}
