/* trainctl export, import: a job as one file, from one daemon to another. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/download.h"
#include "client/job.h"
#include "client/views/human.h"
#include "client/views/print.h"
#include "common/json.h"
#include "common/system/file.h"

static int cmd_export(int argc, char **argv)
{
    struct cmd_args args;
    struct error e;
    char path[64], size[HUMAN_BYTES];
    double bytes = 0;
    long id;
    int done = cmd_parse(&args, argc, argv);

    if (done >= 0)
        return done;
    if (cmd_job_id(args.operands[0], &id, &e) < 0)
        return cmd_fail(&e);
    const char *file = args.operands[1];
    if (!cmd_flag(&args, "force") && access(file, F_OK) == 0) {
        error_set(&e, ERR_CONFLICT, "%s exists; --force replaces it", file);
        return cmd_fail(&e);
    }
    snprintf(path, sizeof path, "/v1/jobs/%ld/archive%s", id,
             cmd_flag(&args, "weights") ? "?weights=true" : "");
    if (download(path, "application/gzip", file, &bytes, &e) < 0)
        return cmd_fail(&e);
    if (client.json)
        print_file(file, bytes);
    else
        printf("job %ld is in %s (%s)\n", id, file, human_size(size, sizeof size, bytes));
    return 0;
}

static int import_file(const char *path, json_t **answer, struct error *e)
{
    int fd = file_open(path, e);
    FILE *in = fd < 0 ? NULL : fdopen(fd, "r");
    struct stat st;

    if (fd < 0)
        return fd;
    if (!in || fstat(fd, &st)) {
        int reason = errno;
        in ? (void)fclose(in) : (void)close(fd);
        return error_set_errno(e, reason, "cannot read %s", path);
    }
    int status = api_post_file("/v1/jobs/import", in, (double)st.st_size, answer, e);
    fclose(in);
    return status;
}

static int cmd_import(int argc, char **argv)
{
    struct cmd_args args;
    struct error e;
    struct job job;
    json_t *answer;
    int done = cmd_parse(&args, argc, argv);

    if (done >= 0)
        return done;
    if (import_file(args.operands[0], &answer, &e) < 0)
        return cmd_fail(&e);
    job_read(answer, &job);
    const json_t *from = json_object_get(answer, "imported_from");
    if (client.json)
        print_json(answer);
    else
        printf("job %ld is job %lld of the daemon with the database %s: %s\n", job.id,
               (long long)json_get_integer(from, "job", 0), json_get_text(from, "store", ""),
               job.state);
    json_decref(answer);
    return 0;
}

/* clang-format off */
const struct cmd cmd_export_entry = {
    .name = "export",
    .synopsis = "[--weights] [--force] ID FILE",
    .help = "write a job that has ended to one file, for another daemon",
    .run = cmd_export,
    .min_operands = 2,
    .max_operands = 2,
    .completion = "job,file",
    .options = {
        {"weights", 0, NULL, "with its newest checkpoint", NULL},
        {"force", 0, NULL, "replace a file that exists", NULL},
    },
};

const struct cmd cmd_import_entry = {
    .name = "import",
    .synopsis = "FILE",
    .help = "show a job of another daemon in this one, from the file that export wrote",
    .run = cmd_import,
    .min_operands = 1,
    .max_operands = 1,
    .completion = "file",
};
/* clang-format on */
