#include "daemon/http/access/job_policy.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/job/job_spec.h"
#include "common/job/job_text.h"
#include "common/run/weights.h"
#include "common/system/open_beneath.h"
#include "daemon/notice/address.h"

static bool job_policy_climbs(const char *path)
{
    for (const char *at = strstr(path, ".."); at; at = strstr(at + 1, ".."))
        if ((at == path || at[-1] == '/') && (at[2] == '/' || !at[2]))
            return true;
    return false;
}

/* roots: "/a:/b"; NULL: any folder. Resolves symbolic links; a path that does not exist is checked
 * by its text and must not contain "..". */
static void job_policy_check_path(const char *roots, const char *path, const char *pointer,
                                  struct problems *problems)
{
    char real[PATH_MAX];
    bool exists = roots && path && realpath(path, real);

    if (!path || strcmp(path, "synthetic") == 0)
        return;
    if (*path != '/')
        problems_add(
            problems, pointer, NULL,
            "must be an absolute path, not \"%s\": it is read by workers in other folders and "
            "on other machines (trainctl makes it one)",
            path);
    else if (roots && ((!exists && job_policy_climbs(path)) ||
                       !open_beneath_holds(roots, exists ? real : path)))
        problems_add(problems, pointer, NULL, "%s is not in a folder that jobs may use (%s)", path,
                     roots);
}

/* Parameters of --mca that neither start nor load anything, and the form of their values. The first
 * matching row applies; "btl*" matches all names with this prefix. */
static const struct {
    const char *name;
    enum job_text value;
} parameters[] = {
    {"btl_tcp_if_include",   JOB_TEXT_NETWORKS},
    {"btl_tcp_if_exclude",   JOB_TEXT_NETWORKS},
    {"btl_usnic_if_include", JOB_TEXT_NETWORKS},
    {"btl_usnic_if_exclude", JOB_TEXT_NETWORKS},
    {"oob_tcp_if_include",   JOB_TEXT_NETWORKS},
    {"oob_tcp_if_exclude",   JOB_TEXT_NETWORKS},
    {"btl*",                 JOB_TEXT_WORDS   },
    {"pml*",                 JOB_TEXT_WORDS   },
    {"mtl*",                 JOB_TEXT_WORDS   },
    {"coll*",                JOB_TEXT_WORDS   },
    {"osc*",                 JOB_TEXT_WORDS   },
    {"oob_tcp_*",            JOB_TEXT_WORDS   },
    {"rmaps_base_*",         JOB_TEXT_WORDS   },
    {"hwloc_base_*",         JOB_TEXT_WORDS   },
    {"mpi_*",                JOB_TEXT_WORDS   },
};

static bool job_policy_name_matches(const char *name, const char *row)
{
    size_t length = strlen(row);

    return row[length - 1] == '*' ? strncmp(name, row, length - 1) == 0 : strcmp(name, row) == 0;
}

static bool job_policy_names_a_file(const char *name)
{
    static const char *const words[] = {"file", "path", "dir", "topo", "output"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strstr(name, words[i]))
            return true;
    return false;
}

static bool job_policy_is_harmless_parameter(const char *name, const char *value)
{
    if (name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")] ||
        job_policy_names_a_file(name))
        return false;
    for (size_t i = 0; i < sizeof parameters / sizeof parameters[0]; i++)
        if (job_policy_name_matches(name, parameters[i].name))
            return job_text_right(parameters[i].value, value);
    return false;
}

/* Returns the number of arguments, beginning with args[i], that form an allowed option; 0: not
 * allowed. */
static size_t job_policy_is_harmless(char *const *args, size_t i, size_t count)
{
    static const char *const reports[] = {"--report-bindings", "--display-map",
                                          "--display-allocation", "--tag-output",
                                          "--timestamp-output"};

    for (size_t k = 0; k < sizeof reports / sizeof reports[0]; k++)
        if (strcmp(args[i], reports[k]) == 0)
            return 1;
    bool mca = strcmp(args[i], "--mca") == 0 || strcmp(args[i], "-mca") == 0;
    return mca && i + 2 < count && job_policy_is_harmless_parameter(args[i + 1], args[i + 2]) ? 3
                                                                                              : 0;
}

void job_policy_check_mpi_args(char *const *args, size_t count, struct problems *problems)
{
    char pointer[64];

    for (size_t i = 0, step; i < count; i += step) {
        step = job_policy_is_harmless(args, i, count);
        if (step)
            continue;
        snprintf(pointer, sizeof pointer, "/cluster/mpi_args/%zu", i);
        problems_add(problems, pointer, NULL,
                     "\"%.60s\" is for administrators only; others may give --mca with parameters "
                     "of btl, pml, mtl, coll, osc, oob_tcp, rmaps_base, hwloc_base and mpi that "
                     "name no file (values: letters, digits and _.-,:^+, or networks such "
                     "as eth0,10.0.0.0/24), and --report-bindings, --display-map, "
                     "--display-allocation, --tag-output, "
                     "--timestamp-output",
                     args[i]);
        return;
    }
}

void job_policy_check_mpi_prefix(const char *prefix, const struct config *config,
                                 struct problems *problems)
{
    const char *list = config->mpi_prefixes;

    if (!prefix)
        return;
    for (const char *at = list ? list : ""; *at; at += strcspn(at, ":"), at += *at == ':')
        if (strcspn(at, ":") == strlen(prefix) && strncmp(at, prefix, strlen(prefix)) == 0)
            return;
    problems_add(problems, "/cluster/mpi_prefix", NULL,
                 "%.200s is not an allowed folder (%s); an administrator can add it to "
                 "mpi_prefixes in traind.conf",
                 prefix, list ? list : "there are none");
}

static bool job_policy_has_listed_prefix(const char *name, const char *prefixes)
{
    for (const char *at = prefixes; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        if (strncmp(name, at, length) == 0)
            return true;
    }
    return false;
}

void job_policy_check_env(const char *name, const char *value, const struct config *config,
                          struct problems *problems)
{
    static const char parameter[] = "OMPI_MCA_";
    const char *prefixes = config->job_env_prefixes;
    bool none = strcmp(prefixes, CONFIG_NONE) == 0;
    char pointer[JOB_ENV_NAME_BYTES + 16];

    snprintf(pointer, sizeof pointer, "/cluster/env/%s", name);
    if (problems_about(problems, pointer))
        return;
    if (none || !job_policy_has_listed_prefix(name, prefixes))
        problems_add(problems, pointer, NULL,
                     "%s is not a variable that jobs may set%s%s; an administrator can add its "
                     "prefix to job_env_prefixes in traind.conf",
                     name, none ? ": there are none" : ", which begin with one of ",
                     none ? "" : prefixes);
    else if (strncmp(name, parameter, strlen(parameter)) == 0 &&
             !job_policy_is_harmless_parameter(name + strlen(parameter), value))
        problems_add(problems, pointer, NULL,
                     "%s=%.60s is for administrators only, who can set it with \"--mca\" in "
                     "cluster.mpi_args",
                     name, value);
}

void job_policy_check_target(const char *to, const char *pointer, const struct config *config,
                             struct problems *problems)
{
    if (!address_mail_is_allowed(config->notify_mail_domains, to))
        problems_add(problems, pointer, NULL,
                     "is a mail address outside the domains that notify_mail_domains of "
                     "traind.conf lists: %s",
                     config->notify_mail_domains);
}

void job_policy_check(const struct job_spec *spec, const struct config *config, bool any_mpi_arg,
                      struct problems *problems)
{
    const char *roots = config->data_roots;
    char name[JOB_ENV_NAME_BYTES], pointer[32];

    job_policy_check_path(roots, spec->data.train, "/data/train", problems);
    job_policy_check_path(roots, spec->data.eval, "/data/eval", problems);
    job_policy_check_path(roots, spec->model.init, "/model/init", problems);
    for (size_t i = 0; i < spec->cluster.env_count; i++) {
        const char *value = job_env_split(spec->cluster.env[i], name);
        job_policy_check_env(name, value, config, problems);
    }
    for (size_t i = 0; i < spec->notify.count; i++) {
        snprintf(pointer, sizeof pointer, "/notify/%zu/to", i);
        job_policy_check_target(spec->notify.at[i].to, pointer, config, problems);
    }
    job_policy_check_mpi_prefix(spec->cluster.mpi_prefix, config, problems);
    if (!any_mpi_arg)
        job_policy_check_mpi_args(spec->cluster.mpi_args, spec->cluster.mpi_arg_count, problems);
}

void job_policy_check_weights(const struct job_spec *spec, struct problems *problems)
{
    weights_check(spec, spec->cluster.launcher != JOB_LAUNCHER_LOCAL, problems);
}
