#include "daemon/job/trim.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "common/run/checkpoints.h"
#include "common/system/file.h"

static void trim_checkpoints(const struct job_manager *m, const struct active_job *a)
{
    char folder[PATH_MAX], path[PATH_MAX + 300];
    struct dirent **names;
    struct error e;

    if (m->limits.keep_checkpoints <= 0 ||
        (size_t)snprintf(folder, sizeof folder, "%s/checkpoints", a->run_dir) >= sizeof folder)
        return;
    int count = checkpoint_list(folder, &names);
    for (int64_t i = m->limits.keep_checkpoints; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
        if (file_remove_tree(path, &e))
            log_warning("job %lld: %s", (long long)a->id, e.text);
    }
    checkpoint_list_free(names, count);
}

/* The last bytes of a log, from the first whole line on, behind a line that tells of the rest. */
static int cut_log(const char *path, int64_t size, int64_t keep, struct error *e)
{
    char title[128], *text = calloc(1, (size_t)keep + sizeof title + 1);
    int fd = file_open(path, e);
    ssize_t n = -1;
    int used =
        snprintf(title, sizeof title,
                 "[traind: the first part of this log was removed: log_limit_bytes = %lld]\n",
                 (long long)keep);

    if (text && fd >= 0)
        n = pread(fd, text + used, (size_t)keep, (off_t)(size - keep));
    int status = fd < 0 ? fd : n < 0 ? error_set_errno(e, errno, "cannot cut %s", path) : 0;
    if (!status) {
        size_t bytes = (size_t)n;
        text[(size_t)used + bytes] = '\0';
        char *line = strchr(text + used, '\n');
        char *from = line ? line + 1 : text + used;
        char *start = memcpy(from - used, title, (size_t)used);
        status = file_write_atomic(path, start, (size_t)(text + used + bytes - start), e);
    }
    if (fd >= 0)
        close(fd);
    free(text);
    return status;
}

static void trim_log(const struct job_manager *m, const struct active_job *a)
{
    char path[PATH_MAX];
    struct stat st;
    struct error e;

    if (m->limits.log_limit_bytes <= 0 ||
        (size_t)snprintf(path, sizeof path, "%s/stdout.log", a->attempt_dir) >= sizeof path ||
        stat(path, &st) || st.st_size <= m->limits.log_limit_bytes)
        return;
    if (cut_log(path, st.st_size, m->limits.log_limit_bytes, &e))
        log_warning("job %lld: %s", (long long)a->id, e.text);
}

static void trim_unfinished(const struct active_job *a)
{
    char folder[PATH_MAX];

    if ((size_t)snprintf(folder, sizeof folder, "%s/checkpoints", a->run_dir) < sizeof folder)
        checkpoint_remove_unfinished(folder);
}

void job_trim_run(const struct job_manager *m, const struct active_job *a)
{
    trim_log(m, a);
    trim_unfinished(a);
    trim_checkpoints(m, a);
}
