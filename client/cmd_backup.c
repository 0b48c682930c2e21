#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/api.h"
#include "client/cmd.h"
#include "common/file.h"

static int fetch(const char *temporary, struct error *e)
{
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");

    if (!out)
        return error_set_errno(e, errno, "cannot create %s", temporary);
    int status = api_get_file("/v1/backup", out, e);
    if (fflush(out) || fsync(fd))
        status = status ? status : error_set_errno(e, errno, "cannot write %s", temporary);
    fclose(out);
    return status;
}

int cmd_backup(int argc, char **argv)
{
    struct cmd_args args;
    struct error e;
    char temporary[PATH_MAX];
    struct stat st;
    int done = cmd_parse(&args, argc, argv);

    if (done >= 0)
        return done;
    const char *path = args.operands[0];
    if ((size_t)snprintf(temporary, sizeof temporary, "%s.part", path) >= sizeof temporary)
        return cmd_usage(args.cmd, "the path is too long");
    int status = fetch(temporary, &e);
    if (status == 0 && (stat(temporary, &st) || rename(temporary, path)))
        status = error_set_errno(&e, errno, "cannot write %s", path);
    if (status) {
        unlink(temporary);
        return cmd_fail(&e);
    }
    file_sync_dir_of(path);
    printf("%s: %.1f MiB; to restore it, stop traind and put it in the place of traind.db\n", path,
           (double)st.st_size / (1 << 20));
    return 0;
}
