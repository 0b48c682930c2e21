#include "common/system/powercap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/system/file.h"
#include "common/xalloc.h"

#define ZONES_MAX 64 /* number of sockets, plus their memory */

struct powercap_zone {
    int fd; /* descriptor of energy_uj */
    char path[PATH_MAX];
    uint64_t last, range; /* microjoules; the counter runs from 0 to range */
};

struct powercap {
    struct powercap_zone zones[ZONES_MAX];
    size_t count;
    uint64_t used; /* microjoules */
};

static int powercap_number(int fd, const char *path, uint64_t *value, struct error *e)
{
    char text[32], *end;
    ssize_t n = pread(fd, text, sizeof text - 1, 0);

    if (n < 0)
        return error_set_errno(e, errno, "cannot read %s", path);
    text[n] = '\0';
    errno = 0;
    *value = strtoumax(text, &end, 10);
    if (errno || end == text || (*end && *end != '\n'))
        return error_set(e, ERR_CORRUPT, "%s does not contain a number", path);
    return 0;
}

static int powercap_open_file(const char *root, const char *zone, const char *name, char *path,
                              int *fd, struct error *e)
{
    if (file_path(path, e, "%s/%s/%s", root, zone, name))
        return -ERR_INVALID;
    *fd = open(path, O_RDONLY | O_CLOEXEC);
    if (*fd >= 0)
        return 0;
    if (errno == EACCES || errno == EPERM)
        return error_set(e, ERR_NOT_ALLOWED,
                         "%s may not be read: since CVE-2020-8694 it is root's, see doc/energy.md",
                         path);
    return error_set_errno(e, errno, "cannot read %s", path);
}

static bool powercap_counts(const char *root, const char *zone)
{
    char path[PATH_MAX], name[64] = "";
    bool part = strchr(zone, ':') != strrchr(zone, ':');
    struct error unused;
    int fd;

    if (strncmp(zone, "intel-rapl:", strlen("intel-rapl:")) != 0 ||
        powercap_open_file(root, zone, "name", path, &fd, &unused))
        return false;
    ssize_t n = read(fd, name, sizeof name - 1);
    close(fd);
    name[n > 0 ? n : 0] = '\0';
    return part ? strncmp(name, "dram", 4) == 0 : strncmp(name, "package", 7) == 0;
}

static int powercap_add(struct powercap *p, const char *root, const char *zone, struct error *e)
{
    struct powercap_zone *z = &p->zones[p->count];
    int fd, status = powercap_open_file(root, zone, "max_energy_range_uj", z->path, &fd, e);

    if (status)
        return status;
    status = powercap_number(fd, z->path, &z->range, e);
    close(fd);
    if (!status)
        status = powercap_open_file(root, zone, "energy_uj", z->path, &z->fd, e);
    if (status)
        return status;
    p->count++; /* from here on powercap_close closes its file */
    return powercap_number(z->fd, z->path, &z->last, e);
}

int powercap_open(const char *root, struct powercap **out, struct error *e)
{
    struct powercap *p = xcalloc(1, sizeof *p);
    DIR *folder = opendir(root);
    int status = 0;

    *out = NULL;
    for (struct dirent *d; folder && !status && (d = readdir(folder));)
        if (p->count < ZONES_MAX && powercap_counts(root, d->d_name))
            status = powercap_add(p, root, d->d_name, e);
    if (folder)
        closedir(folder);
    if (!status && p->count == 0)
        status = error_set(e, ERR_NOT_FOUND, "%s has no counters of energy (RAPL)", root);
    if (status)
        powercap_close(p);
    else
        *out = p;
    return status;
}

void powercap_close(struct powercap *p)
{
    for (size_t i = 0; p && i < p->count; i++)
        close(p->zones[i].fd);
    free(p);
}

int powercap_read(struct powercap *p, double *joules, struct error *e)
{
    int status = 0;

    for (size_t i = 0; i < p->count; i++) {
        struct powercap_zone *z = &p->zones[i];
        uint64_t now;
        int failed = powercap_number(z->fd, z->path, &now, e);
        if (failed) {
            status = failed;
            continue;
        }
        p->used += now >= z->last ? now - z->last : z->range - z->last + now;
        z->last = now;
    }
    *joules = 1e-6 * (double)p->used;
    return status;
}
