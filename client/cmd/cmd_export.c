/* trainctl export, import: a job as one file, from one daemon to another. */
#include <errno.h>
#include <stdbool.h>
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

#define ARCHIVE_TYPE "application/gzip"

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
    bool to_output = strcmp(file, "-") == 0;
    if (!to_output && !cmd_flag(&args, "force") && access(file, F_OK) == 0) {
        error_set(&e, ERR_CONFLICT, "%s exists; --force replaces it", file);
        return cmd_fail(&e);
    }
    snprintf(path, sizeof path, "/v1/jobs/%ld/archive%s", id,
             cmd_flag(&args, "weights") ? "?weights=true" : "");
    if (to_output)
        return api_get_file(path, ARCHIVE_TYPE, stdout, &e) < 0 ? cmd_fail(&e) : 0;
    if (download(path, ARCHIVE_TYPE, file, &bytes, &e) < 0)
        return cmd_fail(&e);
    if (client.json)
        print_file(file, bytes);
    else
        printf("job %ld is in %s (%s)\n", id, file, human_size(size, sizeof size, bytes));
    return 0;
}

/* Standard input in a file without a name: its size is to be told before its bytes. */
static FILE *import_keep_input(struct error *e)
{
    FILE *kept = tmpfile();
    char part[1 << 16];
    size_t bytes;

    while (kept && (bytes = fread(part, 1, sizeof part, stdin)) > 0)
        if (fwrite(part, 1, bytes, kept) < bytes)
            break;
    if (kept && !ferror(stdin) && fflush(kept) == 0 && !ferror(kept)) {
        rewind(kept);
        return kept;
    }
    if (kept && ferror(stdin) && errno == EBADF)
        error_set(e, ERR_IO, "standard input is closed, so nothing can be read from it");
    else
        error_set_errno(e, errno,
                        kept && ferror(stdin) ? "cannot read standard input"
                                              : "cannot keep standard input in a file");
    if (kept)
        fclose(kept);
    return NULL;
}

static FILE *import_open(const char *path, struct error *e)
{
    int fd = file_open(path, e);
    FILE *in = fd < 0 ? NULL : fdopen(fd, "r");

    if (fd >= 0 && !in) {
        error_set_errno(e, errno, "cannot read %s", path);
        close(fd);
    }
    return in;
}

static int import_file(const char *path, json_t **answer, struct error *e)
{
    FILE *in = strcmp(path, "-") == 0 ? import_keep_input(e) : import_open(path, e);
    struct stat st;

    if (!in)
        return -(int)e->code;
    int status = fstat(fileno(in), &st)
                     ? error_set_errno(e, errno, "cannot look at %s", path)
                     : api_post_file("/v1/jobs/import", in, (double)st.st_size, answer, e);
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
    .synopsis = "[--weights] [--force] ID FILE|-",
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
    .synopsis = "FILE|-",
    .help = "show a job of another daemon in this one, from the file that export wrote",
    .run = cmd_import,
    .min_operands = 1,
    .max_operands = 1,
    .completion = "file",
};
/* clang-format on */
