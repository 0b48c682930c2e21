#include "common/job/job_spec.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

bool job_spec_is_synthetic(const char *path)
{
    return path && strcmp(path, "synthetic") == 0;
}

bool job_spec_names_hosts(const struct job_spec *spec)
{
    return spec->cluster.launcher == JOB_LAUNCHER_LOCAL && spec->cluster.host_count > 0;
}

int64_t job_spec_world_size(const struct job_spec *spec)
{
    return spec->cluster.nodes * spec->cluster.workers_per_node;
}

int64_t job_spec_eval_size(const struct job_spec *spec)
{
    return spec->eval.has_image_size ? spec->eval.image_size : spec->model.image_size;
}

int job_default_resize(int64_t size)
{
    return (int)lrint((double)size * 256.0 / 224.0);
}

int64_t job_spec_eval_resize(const struct job_spec *spec)
{
    if (spec->data.preprocess == JOB_PREPROCESS_WHOLE)
        return job_spec_eval_size(spec);
    return spec->eval.has_resize ? spec->eval.resize : job_default_resize(job_spec_eval_size(spec));
}

const struct job_pixels *job_pixels_of(enum job_preprocess preprocess)
{
    static const struct job_pixels imagenet = {
        255, {.485f, .456f, .406f},
         {.229f, .224f, .225f}
    };
    static const struct job_pixels mlperf = {
        1, {123.68f, 116.78f, 103.94f},
         {1,       1,       1      }
    };
    static const struct job_pixels whole = {
        255, {0 },
         { 1, 1, 1}
    };

    return preprocess == JOB_PREPROCESS_MLPERF  ? &mlperf
           : preprocess == JOB_PREPROCESS_WHOLE ? &whole
                                                : &imagenet;
}

bool job_spec_averages(const struct job_spec *spec)
{
    return spec->ema.decay > 0 || spec->ema.half_life > 0;
}

double job_spec_average_decay(const struct job_spec *spec)
{
    double steps = (double)spec->ema.every;

    return spec->ema.half_life > 0 ? pow(0.5, steps / spec->ema.half_life)
                                   : pow(spec->ema.decay, steps);
}

bool job_optimizer_norms_first(const struct job_optimizer_keys *keys)
{
    return keys->name == JOB_OPTIMIZER_LARS || keys->clip_norm > 0;
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const char *job_env_split(const char *variable, char name[JOB_ENV_NAME_BYTES])
{
    size_t length = strcspn(variable, "=");

    snprintf(name, JOB_ENV_NAME_BYTES, "%.*s", (int)length, variable);
    return variable + length + (variable[length] == '=');
}

const char *job_env_value(const struct job_spec *spec, const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 0; i < spec->cluster.env_count; i++) {
        const char *variable = spec->cluster.env[i];
        if (strncmp(variable, name, length) == 0 && variable[length] == '=')
            return variable + length + 1;
    }
    return NULL;
}

static bool spec_env_matches(const char *name, const char *row)
{
    size_t length = strlen(row);

    return row[length - 1] == '*' ? strncmp(name, row, length - 1) == 0 : strcmp(name, row) == 0;
}

/* Words of a name are separated by underscores: UCX_MODULE_DIR has three. */
static bool job_env_has_word(const char *name, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = name; *at; at += strcspn(at, "_"), at += *at == '_')
        if (strcspn(at, "_") == length && strncasecmp(at, word, length) == 0)
            return true;
    return false;
}

bool job_env_is_refused(const char *name)
{
    static const char *const names[] = {
        "LD_*",   "PATH",    "HOME",       "USER",          "LOGNAME",  "SHELL",      "PWD",
        "OLDPWD", "IFS",     "ENV",        "CDPATH",        "BASH*",    "PS4",        "TMPDIR",
        "TMP",    "TEMP",    "LOCPATH",    "NLSPATH",       "PERL*",    "PYTHON*",    "HOSTALIASES",
        "OPAL_*", "ORTE_*",  "OMPI_COMM*", "PMI*",          "PRTE*",    "SLURM_*",    "SBATCH_*",
        "SRUN_*", "SALLOC*", "TRAIND*",    "NOTIFY_SOCKET", "LISTEN_*", "WATCHDOG_*",
    };
    /* OMP_TOOL_LIBRARIES, UCX_MODULE_DIR, UCX_GDB_COMMAND, UCX_LOG_FILE, MALLOC_TRACE */
    static const char *const words[] = {"tool",    "proflib", "libraries", "module", "modules",
                                        "command", "file",    "files",     "path",   "paths",
                                        "dir",     "dirs",    "directory", "dest",   "output",
                                        "socket",  "sock",    "trace",     "preload"};

    for (size_t i = 0; i < COUNT(names); i++)
        if (spec_env_matches(name, names[i]))
            return true;
    for (size_t i = 0; i < COUNT(words); i++)
        if (job_env_has_word(name, words[i]))
            return true;
    return false;
}

const char *job_env_setter(const char *name)
{
    static const struct {
        const char *name, *setter;
    } rows[] = {
        {"OMP_NUM_THREADS",              "cluster.threads_per_worker"},
        {"OPENBLAS_NUM_THREADS",
         "traind, to 1: the engine's threads call OpenBLAS each for itself; their number is "
         "cluster.threads_per_worker"                                },
        {"OPENBLAS_DEFAULT_NUM_THREADS",
         "traind, as OPENBLAS_NUM_THREADS 1; the number of the engine's threads is "
         "cluster.threads_per_worker"                                },
        {"OMPI_MCA_btl_tcp_if_include",  "cluster.interface"         },
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        if (strcmp(rows[i].name, name) == 0)
            return rows[i].setter;
    return NULL;
}
