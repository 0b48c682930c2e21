#include "worker/job_settings.h"

#include <stdio.h>
#include <unistd.h>

#include "common/dataset/job_data.h"
#include "common/job/job_document.h"
#include "common/system/host.h"
#include "common/system/placement.h"
#include "worker/comm/traincomm.h"

/* A value extends to the end of the line; strings of a job document have no control characters. */
static void settings_print(const char *name, const char *value)
{
    printf("%s=%s\n", name, value ? value : "");
}

static const char *settings_folder(const char *path)
{
    return job_spec_is_synthetic(path) ? NULL : path;
}

static struct job_spec *settings_load_job(const char *job_file)
{
    struct error e;
    struct job_spec *spec = job_data_load(job_file, &e);

    if (!spec)
        fprintf(stderr, "train-worker: %s\n", e.text);
    return spec;
}

int job_settings_print(const char *job_file)
{
    struct job_spec *spec = settings_load_job(job_file);

    if (!spec)
        return 2;
    settings_print("data_train", settings_folder(spec->data.train));
    settings_print("data_eval", settings_folder(spec->data.eval));
    settings_print("locality", spec->data.locality == JOB_LOCALITY_NODE ? "node" : "global");
    printf("nodes=%lld\n", (long long)spec->cluster.nodes);
    printf("threads=%lld\n", (long long)spec->cluster.threads_per_worker);
    settings_print("interface", spec->cluster.interface);
    job_spec_destroy(spec);
    return 0;
}

static int settings_place(const struct job_spec *spec, const char *sys)
{
    struct placement_machine machine;
    const char *options[PLACEMENT_OPTIONS];
    int64_t threads = spec->cluster.threads_per_worker;
    char host[HOST_NAME_BYTES] = "";
    struct error e;

    if (job_spec_leaves_workers(spec)) {
        fputs("/cluster/workers_per_node: 0 leaves the workers to the plan: this document has "
              "none\n",
              stderr);
        return 2;
    }
    if (sys)
        placement_read(sys, &machine);
    else
        placement_read_mine(&machine);
    if (threads < 1)
        threads = placement_slots(&machine, spec->cluster.smt) / spec->cluster.workers_per_node;
    struct placement_wish wish = placement_wish_of(spec, threads > 0 ? threads : 1);
    char mpi[256];
    traincomm_mpi_version(mpi, sizeof mpi);
    wish.mpi = placement_mpi_version(mpi);
    /* Slurm may restrict the script to few cores by its affinity, which mpirun ignores. */
    if (!sys && placement_check(&machine, &wish, &e))
        placement_read("/sys", &machine);
    if (placement_check(&machine, &wish, &e)) {
        gethostname(host, sizeof host - 1);
        fprintf(stderr, "/cluster/bind: %s %s\n", host, e.text);
        return 2;
    }
    struct placement placement = placement_choose(&machine, &wish);
    placement_options(&placement, options);
    for (const char **option = options; *option; option++)
        printf("%s%s", option > options ? " " : "", *option);
    putchar('\n');
    return 0;
}

int job_settings_place(const char *job_file, const char *sys)
{
    struct job_spec *spec = settings_load_job(job_file);
    int status = spec ? settings_place(spec, sys) : 2;

    job_spec_destroy(spec);
    return status;
}
