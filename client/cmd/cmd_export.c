#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/job.h"
#include "client/views/format.h"
#include "client/views/print.h"
#include "common/json.h"
#include "common/system/file.h"

#define ARCHIVE_TYPE "application/gzip"

static int cmd_export(const struct cmd_args *args)
{
    struct error e;
    char path[64], size[FORMAT_BYTES];
    double bytes = 0;
    long id;

    if (cmd_job_id(args->operands[0], &id, &e) < 0)
        return cmd_fail(&e);
    const char *file = args->operands[1];
    bool to_output = strcmp(file, "-") == 0;
    if (!to_output && !cmd_flag(args, "force") && access(file, F_OK) == 0) {
        error_set(&e, ERR_CONFLICT, "%s exists; --force replaces it", file);
        return cmd_fail(&e);
    }
    snprintf(path, sizeof path, "/v1/jobs/%ld/archive%s", id,
             cmd_flag(args, "weights") ? "?weights=true" : "");
    if (to_output)
        return api_get_file(path, ARCHIVE_TYPE, stdout, &e) < 0 ? cmd_fail(&e) : 0;
    if (api_download(path, ARCHIVE_TYPE, file, &bytes, &e) < 0)
        return cmd_fail(&e);
    if (client.json)
        print_file(file, bytes);
    else
        printf("Job %ld written to %s (%s).\n", id, file, format_size(size, sizeof size, bytes));
    return 0;
}

struct backup {
    const char *database;
    char tokens[PATH_MAX];
    bool force, any_tokens;
    double bytes;
};

static int export_check_backup(const char *path, bool force, struct error *e)
{
    if (force || access(path, F_OK))
        return 0;
    return error_set(e, ERR_CONFLICT, "%s already exists; --force replaces it", path);
}

/* Downloads nothing if one of the files exists. */
static int export_fetch_backup(struct backup *b, struct error *e)
{
    double bytes;

    if (export_check_backup(b->database, b->force, e) ||
        export_check_backup(b->tokens, b->force, e) ||
        api_download("/v1/backup", "application/vnd.sqlite3", b->database, &b->bytes, e))
        return -(int)e->code;
    int status = api_download("/v1/backup/tokens", "application/json", b->tokens, &bytes, e);
    b->any_tokens = status == 0;
    return status == -(int)ERR_NOT_FOUND ? 0 : status;
}

static int cmd_backup(const struct cmd_args *args)
{
    struct backup b = {.database = args->operands[0], .force = cmd_flag(args, "force")};
    char size[FORMAT_BYTES];
    struct error e;

    if (file_path(b.tokens, &e, "%s.tokens.json", b.database))
        return cmd_usage(args->cmd, "the path of the file is too long");
    if (export_fetch_backup(&b, &e))
        return cmd_fail(&e);
    if (client.json) {
        json_t *json = json_pack("{s:s, s:I, s:s?}", "file", b.database, "bytes",
                                 (json_int_t)b.bytes, "tokens", b.any_tokens ? b.tokens : NULL);
        print_json(json);
        json_decref(json);
        return 0;
    }
    printf("database: %s (%s)\n", b.database, format_size(size, sizeof size, b.bytes));
    if (b.any_tokens)
        printf("tokens:   %s\n", b.tokens);
    puts("runs:     not included; copy jobs/ of the state folder now, with rsync or tar\n"
         "To restore: see BACKUP AND RESTORE in traind(8).");
    return 0;
}

/* clang-format off */
const struct cmd cmd_export_entry = {
    .name = "export", .synopsis = "[--weights] [--force] ID FILE|-",
    .help = "write a finished job to one file", .example = "trainctl export --weights 7 job-7.tar",
    .run = cmd_export, .completion = "job,file", .operands = {2, 2},
    .options = {
        OPTION("weights", 0, NULL, "with its best checkpoint (checkpoint.keep_best), otherwise the newest", NULL),
        OPTION("force", 0, NULL, "replace an existing file", NULL),
    },
};

const struct cmd cmd_backup_entry = {
    .name = "backup", .synopsis = "[--force] FILE",
    .help = "copy the database and the tokens while the daemon runs", .example = "trainctl backup traind-backup.db",
    .run = cmd_backup, .operands = {1, 1},
    .options = {OPTION("force", 0, NULL, "replace existing files", NULL)},
    .completion = "file",
};
/* clang-format on */
