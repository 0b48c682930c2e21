#include "daemon/state_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "common/system/file.h"
#include "common/xalloc.h"

#define PRIVATE 077 /* permission bits denied to others than the owner */

static int state_folder_close_entry(const char *path, const struct stat *st, int type,
                                    struct FTW *walk)
{
    (void)walk;
    if ((type == FTW_F || type == FTW_D || type == FTW_DNR) && !S_ISSOCK(st->st_mode) &&
        st->st_mode & PRIVATE && chmod(path, st->st_mode & 07777 & ~(mode_t)PRIVATE))
        log_warning("%s remains accessible to other users: %s", path, strerror(errno));
    return 0;
}

/* Closes traind's own files in the folder, but no others. */
static void state_folder_close_contents(const char *path)
{
    static const char *const names[] = {"traind.db",   "traind.db-wal", "traind.db-shm",
                                        "tokens.json", "lock",          "jobs"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char *entry = xasprintf("%s/%s", path, names[i]), *real = realpath(entry, NULL);
        if (real)
            nftw(real, state_folder_close_entry, 16, FTW_PHYS);
        free(entry);
        free(real);
    }
}

static bool state_folder_is_state(const char *path)
{
    char *database = xasprintf("%s/traind.db", path);
    bool exists = access(database, F_OK) == 0, empty = true;
    DIR *folder;
    const struct dirent *entry;

    free(database);
    if (exists)
        return true;
    folder = opendir(path);
    while (folder && empty && (entry = readdir(folder)))
        empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    if (folder)
        closedir(folder);
    return folder && empty;
}

static bool state_folder_contains(const char *file, const char *folder)
{
    char copy[PATH_MAX];
    struct stat a, b;

    snprintf(copy, sizeof copy, "%s", file);
    return stat(dirname(copy), &a) == 0 && stat(folder, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

int state_folder_prepare(const char *path, const char *socket, gid_t socket_group, struct error *e)
{
    struct stat st;

    umask(PRIVATE);
    int status = file_make_dirs(path, e);
    if (status)
        return status;
    if (stat(path, &st))
        return error_set_errno(e, errno, "cannot access %s", path);
    bool shared = socket_group != (gid_t)-1 && state_folder_contains(socket, path);
    mode_t mode = shared ? 0710 : 0700, now = st.st_mode & 07777;
    if (now == mode && (!shared || st.st_gid == socket_group))
        return 0;
    if (st.st_uid != geteuid() || now & S_ISVTX || !state_folder_is_state(path)) {
        if (now & PRIVATE)
            log_warning("the state folder %s is accessible to other users (mode %04o); this is not "
                        "changed, as it does not belong to traind alone",
                        path, (unsigned)now);
        return 0;
    }
    if ((shared && chown(path, (uid_t)-1, socket_group)) || chmod(path, mode)) {
        log_warning("cannot change the mode of the state folder %s from %04o to %04o: %s", path,
                    (unsigned)now, (unsigned)mode, strerror(errno));
        return 0;
    }
    if (now & PRIVATE & ~mode) {
        state_folder_close_contents(path);
        log_info("the state folder %s was accessible to other users (mode %04o); its mode "
                 "is now %04o, and its contents are private",
                 path, (unsigned)now, (unsigned)mode);
    }
    return 0;
}

int state_folder_lock(const char *folder, int *fd, struct error *e)
{
    char *path = xasprintf("%s/lock", folder), pid[32] = "";
    int status = 0, tries = 0;

    *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (*fd < 0)
        status = error_set_errno(e, errno, "cannot open %s", path);
    /* A child just forked by a killed daemon holds the daemon's lock until it closes its
     * descriptors. */
    while (status == 0 && flock(*fd, LOCK_EX | LOCK_NB)) {
        if (errno == EWOULDBLOCK && tries++ < 20) {
            usleep(50000);
            continue;
        }
        if (read(*fd, pid, sizeof pid - 1) < 0)
            pid[0] = '\0';
        pid[strcspn(pid, "\n")] = '\0';
        status = error_set(e, ERR_CONFLICT,
                           "another traind (pid %s) uses %s. Stop it, or specify another "
                           "folder with --state",
                           *pid ? pid : "unknown", folder);
    }
    if (status == 0 && (ftruncate(*fd, 0) || dprintf(*fd, "%ld\n", (long)getpid()) < 0))
        status = error_set_errno(e, errno, "cannot write %s", path);
    free(path);
    return status;
}

int state_folder_write_url(const char *folder, const char *url, struct error *e)
{
    char *path = xasprintf("%s/listen", folder), line[160];
    int bytes = snprintf(line, sizeof line, "%s\n", url);
    int status = file_write_atomic(path, line, (size_t)bytes, e);

    free(path);
    return status;
}

void state_folder_remove_url(const char *folder)
{
    char *path = xasprintf("%s/listen", folder);

    unlink(path);
    free(path);
}
