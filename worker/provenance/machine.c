#include "worker/provenance/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "common/dataset/job_data.h"
#include "common/job/job_document.h"
#include "common/job/job_spec.h"
#include "common/json.h"
#include "common/system/host.h"
#include "common/system/open_beneath.h"
#include "common/system/process.h"
#include "config.h"
#include "worker/comm/traincomm.h"
#include "worker/kernels/bf16.h"
#include "worker/kernels/gemm.h"

#define VALUE_BYTES 1024 /* longer values of environment variables are truncated */

extern char **environ;

static json_t *machine_cpuinfo(const char *name)
{
    char *text = host_cpuinfo(name);
    json_t *value = json_text_or_null(text);

    free(text);
    return value;
}

static json_t *machine_kernel(void)
{
    struct utsname name;
    return uname(&name) ? json_null() : json_sprintf("%s %s", name.sysname, name.release);
}

static bool machine_reports_library(const char *name)
{
    static const char *const names[] = {
        "libtrainengine.", "libtraincomm.", "libopenblas", "libblas",   "libgomp.",     "libomp.",
        "libm.",           "libmvec.",      "libc.",       "libmpi.",   "libopen-pal.", "libjpeg.",
        "libprotobuf-c.",  "libjansson.",   "libisal.",    "libpng16.",
    };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static void machine_add_library(void *context, const char *name, const char *hex)
{
    if (machine_reports_library(name))
        json_object_set_new(context, name, json_text_or_null(hex));
}

/* Variables that affect kernels, threads, libraries and communication. "NAME*" is a prefix. */
static bool machine_reports_variable(const char *variable)
{
    static const char *const names[] = {
        "OPENBLAS_*",       "OMP_*",
        "GOMP_*",           "KMP_*",
        "GLIBC_TUNABLES=",  "LD_LIBRARY_PATH=",
        "LD_PRELOAD=",      "MALLOC_ARENA_MAX=",
        "TRAINCOMM_*",      "OMPI_MCA_btl=",
        "OMPI_MCA_pml=",    "OMPI_MCA_coll*",
        "OMPI_MCA_mtl=",    "UCX_TLS=",
        "UCX_NET_DEVICES=",
    };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncmp(variable, names[i], strcspn(names[i], "*")) == 0)
            return true;
    return false;
}

static json_t *machine_environment(void)
{
    json_t *values = json_object();
    char name[JOB_ENV_NAME_BYTES];

    for (char **at = environ; at && *at; at++) {
        if (!machine_reports_variable(*at))
            continue;
        const char *value = job_env_split(*at, name);
        json_t *text = json_stringn(value, strnlen(value, VALUE_BYTES));
        json_object_set_new(values, name, text ? text : json_string("(not UTF-8)"));
    }
    return values;
}

json_t *machine_facts(bool in_bf16)
{
    char openblas[GEMM_LIBRARY_BYTES], mpi[128], id[PROCESS_BUILD_ID_BYTES];
    json_t *libraries = json_object();

    gemm_library(openblas);
    traincomm_mpi_version(mpi, sizeof mpi);
    mpi[strcspn(mpi, ",\n")] = '\0';
    process_build_id_each(machine_add_library, libraries);
    return json_pack(
        "{s:s, s:o, s:s, s:o, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "version",
        PACKAGE_VERSION, "build_id", json_text_or_null(process_build_id(id)), "kernels",
        isa_level(), "bf16", in_bf16 ? json_string(bf16_kind_name(bf16_kind())) : json_null(),
        "openblas", openblas, "openblas_config", gemm_config(), "mpi", mpi, "libraries", libraries,
        "cpu", machine_cpuinfo("model name"), "microcode", machine_cpuinfo("microcode"), "flags",
        machine_cpuinfo("flags"), "kernel", machine_kernel(), "environment", machine_environment());
}

json_t *machine_data(const char *path, const struct dataset *data)
{
    struct dataset_digest digest;

    if (!data)
        return json_null();
    dataset_digest(data, &digest);
    json_t *name = json_string(path);
    return json_pack("{s:o, s:I, s:s, s:o}", "path", name ? name : json_string("(not UTF-8)"),
                     "images", (json_int_t)digest.images, "xxh128", digest.hex, "changed",
                     json_number(digest.changed));
}

/* Executes this program again with the job's environment, which libraries read when loaded. */
static void machine_load_again_with(const struct job_spec *spec, const char *job_file)
{
    static const char mark[] = "TRAIND_PROVENANCE";
    char name[JOB_ENV_NAME_BYTES];

    if (spec->cluster.env_count == 0 || getenv(mark))
        return;
    for (size_t i = 0; i < spec->cluster.env_count; i++) {
        const char *value = job_env_split(spec->cluster.env[i], name);
        setenv(name, value, 1);
    }
    setenv(mark, "again", 1);
    execl("/proc/self/exe", "train-worker", "--provenance", job_file,
          open_beneath_roots() ? "--data-roots" : (char *)NULL, open_beneath_roots(), (char *)NULL);
}

static void machine_add_data(json_t *data, json_t *errors, const char *key, const char *path)
{
    enum dataset_role role = strcmp(key, "train") == 0 ? DATASET_TRAIN : DATASET_EVAL;
    struct dataset *open = NULL;
    struct error e;

    if (path && strcmp(path, "synthetic") != 0 && dataset_open(path, role, &open, &e))
        json_array_append_new(errors, json_sprintf("data.%s: %s", key, e.text));
    if (open)
        dataset_keep_index(open);
    json_object_set_new(data, key, machine_data(path, open));
    dataset_close(open);
}

int machine_print(const char *job_file)
{
    struct error e;
    struct job_spec *spec = job_data_load(job_file, &e);

    if (!spec) {
        fprintf(stderr, "train-worker: %s\n", e.text);
        return 2;
    }
    machine_load_again_with(spec, job_file);
    json_t *data = json_object(), *errors = json_array();
    machine_add_data(data, errors, "train", spec->mode == JOB_MODE_TRAIN ? spec->data.train : NULL);
    machine_add_data(data, errors, "eval", spec->data.eval);
    json_t *answer = json_pack("{s:o, s:o, s:o}", "machine",
                               machine_facts(spec->precision == JOB_PRECISION_BF16), "data", data,
                               "errors", errors);
    int bad = !answer || json_dumpf(answer, stdout, JSON_COMPACT | JSON_REAL_PRECISION(17)) ||
              puts("") < 0;
    json_decref(answer);
    job_spec_destroy(spec);
    return bad ? 1 : 0;
}
