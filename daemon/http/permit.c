#include "daemon/http/permit.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- paths */

static bool lies_in(const char *folder, size_t length, const char *path)
{
    while (length > 1 && folder[length - 1] == '/')
        length--;
    if (length == 1 && folder[0] == '/')
        return path[0] == '/';
    return strncmp(path, folder, length) == 0 && (path[length] == '/' || !path[length]);
}

static bool climbs(const char *path)
{
    for (const char *at = strstr(path, ".."); at; at = strstr(at + 1, ".."))
        if ((at == path || at[-1] == '/') && (at[2] == '/' || !at[2]))
            return true;
    return false;
}

bool permit_path(const char *roots, const char *path)
{
    char real[PATH_MAX], root[PATH_MAX], real_root[PATH_MAX];
    bool there = realpath(path, real) != NULL;

    if (!roots)
        return true;
    if (path[0] != '/' || (!there && climbs(path)))
        return false;
    for (const char *at = roots; *at; at += strcspn(at, ":"), at += *at == ':') {
        size_t length = strcspn(at, ":");
        snprintf(root, sizeof root, "%.*s", (int)length, at);
        const char *folder = there && realpath(root, real_root) ? real_root : root;
        if (length && lies_in(folder, strlen(folder), there ? real : path))
            return true;
    }
    return false;
}

static void check_path(const char *roots, const char *path, const char *pointer,
                       struct problems *problems)
{
    if (path && strcmp(path, "synthetic") != 0 && !permit_path(roots, path))
        problems_add(problems, pointer, NULL,
                     "%s is not below a folder that jobs may use here (%s)", path, roots);
}

/* ---------------------------------------------------------------- arguments of mpirun */

static bool begins_with_one_of(const char *text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strncmp(text, words[i], strlen(words[i])) == 0)
            return true;
    return false;
}

static bool is_harmless_parameter(const char *name, const char *value)
{
    static const char *const parameters[] = {
        "btl", "pml", "mtl", "coll", "osc", "oob_tcp_", "rmaps_base_", "hwloc_base_", "mpi_"};
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,:^+-";
    size_t length = strlen(name), plain = strspn(value, letters);
    bool network = length > 8 && (strcmp(name + length - 8, "_include") == 0 ||
                                  strcmp(name + length - 8, "_exclude") == 0);

    if (strspn(name, letters) != length || strstr(name, "file") || strstr(name, "path") ||
        !begins_with_one_of(name, parameters, sizeof parameters / sizeof parameters[0]))
        return false;
    return !value[plain] || (network && value[plain] == '/' && value[0] != '/'); /* 10.0.0.0/24 */
}

/* How many arguments from args[i] on belong together and pass; 0: they do not. */
static size_t harmless(char *const *args, size_t i, size_t count)
{
    static const char *const reports[] = {"--report-bindings", "--display-map",
                                          "--display-allocation", "--tag-output",
                                          "--timestamp-output"};

    for (size_t k = 0; k < sizeof reports / sizeof reports[0]; k++)
        if (strcmp(args[i], reports[k]) == 0)
            return 1;
    bool mca = strcmp(args[i], "--mca") == 0 || strcmp(args[i], "-mca") == 0;
    return mca && i + 2 < count && is_harmless_parameter(args[i + 1], args[i + 2]) ? 3 : 0;
}

void permit_mpi_args(char *const *args, size_t count, struct problems *problems)
{
    char pointer[64];

    for (size_t i = 0, step; i < count; i += step) {
        step = harmless(args, i, count);
        if (step)
            continue;
        snprintf(pointer, sizeof pointer, "/cluster/mpi_args/%zu", i);
        problems_add(problems, pointer, NULL,
                     "\"%.60s\" is for administrators only; others may give --mca with parameters "
                     "of btl, pml, mtl, coll, osc, oob_tcp, rmaps_base, hwloc_base and mpi, and "
                     "--report-bindings, --display-map, --display-allocation, --tag-output, "
                     "--timestamp-output",
                     args[i]);
        return;
    }
}

void permit_spec(const struct job_spec *spec, const char *roots, bool any_mpi_arg,
                 struct problems *problems)
{
    check_path(roots, spec->data.train, "/data/train", problems);
    check_path(roots, spec->data.eval, "/data/eval", problems);
    check_path(roots, spec->model.init, "/model/init", problems);
    if (!any_mpi_arg)
        permit_mpi_args(spec->cluster.mpi_args, spec->cluster.mpi_arg_count, problems);
}
