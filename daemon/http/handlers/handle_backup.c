#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "daemon/http/access/auth.h"
#include "daemon/http/routes.h"
#include "daemon/job/job.h"
#include "daemon/store/store_open.h"

/* The copy is made whole first, in a file that has no name any more when it is sent: so neither a
 * slow client holds the database, nor is anything left behind. */
int handle_backup(const struct request *q, struct reply *r, struct error *e)
{
    char path[PATH_MAX];
    struct stat st;

    if ((size_t)snprintf(path, sizeof path, "%s/backup-XXXXXX", q->config->state) >= sizeof path)
        return error_set(e, ERR_INTERNAL, "the path of the state folder is too long");
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(e, errno, "cannot make a file for the backup in %s",
                               q->config->state);
    int status = store_backup(q->app->store, path, e);
    unlink(path);
    if (status == 0 && fstat(fd, &st))
        status = error_set_errno(e, errno, "cannot look at the backup");
    if (status) {
        close(fd);
        return status;
    }
    log_info("the database: backup taken by %s", job_requester_name(request_by(q)));
    audit_request(q, STORE_AUDIT_BACKUP, 0, NULL);
    reply_file(r, 200, "application/vnd.sqlite3", fd, 0, (uint64_t)st.st_size);
    reply_header(r, "Content-Disposition", "attachment; filename=\"traind.db\"");
    return 0;
}

/* It is replaced as a whole whenever a token is made or revoked. */
int handle_backup_tokens(const struct request *q, struct reply *r, struct error *e)
{
    char path[PATH_MAX];
    struct stat st;

    if ((size_t)snprintf(path, sizeof path, "%s/tokens.json", q->config->state) >= sizeof path)
        return error_set(e, ERR_INTERNAL, "the path of the state folder is too long");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return error_set(e, ERR_NOT_FOUND, "there is no token file: no token has been created yet");
    if (fd < 0)
        return error_set_errno(e, errno, "cannot open %s", path);
    if (fstat(fd, &st) || st.st_size == 0) {
        close(fd);
        return error_set(e, ERR_IO, "%s cannot be read", path);
    }
    log_info("the tokens: backup taken by %s", job_requester_name(request_by(q)));
    audit_request(q, STORE_AUDIT_BACKUP, 0, "tokens");
    reply_file(r, 200, "application/json", fd, 0, (uint64_t)st.st_size);
    return 0;
}
