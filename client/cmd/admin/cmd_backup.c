#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "client/cmd.h"
#include "client/download.h"
#include "client/views/format.h"
#include "client/views/print.h"

/* FILE.tokens.json stands beside FILE. Without tokens there is none. */
static int backup_tokens(const char *path, bool *any, struct error *e)
{
    double bytes;
    int status = download("/v1/backup/tokens", "application/json", path, &bytes, e);

    *any = status == 0;
    return status == -(int)ERR_NOT_FOUND ? 0 : status;
}

static int backup_check(const char *path, bool force, struct error *e)
{
    if (force || access(path, F_OK))
        return 0;
    return error_set(e, ERR_CONFLICT, "%s already exists; --force replaces it", path);
}

/* The database, then what belongs to it, each in a file of its own beside it. */
struct backup {
    const char *database;
    char tokens[PATH_MAX];
    bool force, any_tokens;
    double bytes;
};

/* Nothing is fetched if one of the files is there. */
static int backup_fetch(struct backup *b, struct error *e)
{
    if (backup_check(b->database, b->force, e) || backup_check(b->tokens, b->force, e) ||
        download("/v1/backup", "application/vnd.sqlite3", b->database, &b->bytes, e) ||
        backup_tokens(b->tokens, &b->any_tokens, e))
        return -(int)e->code;
    return 0;
}

static void backup_print(const struct backup *b)
{
    char size[FORMAT_BYTES];

    printf("database: %s (%s)\n", b->database, format_size(size, sizeof size, b->bytes));
    if (b->any_tokens)
        printf("tokens:   %s\n", b->tokens);
    printf("runs:     not included; copy jobs/ of the state folder now, with rsync or tar\n");
    printf("To restore: see BACKUP AND RESTORE in traind(8).\n");
}

static void backup_print_json(const struct backup *b)
{
    json_t *json = json_pack("{s:s, s:I, s:s?}", "file", b->database, "bytes", (json_int_t)b->bytes,
                             "tokens", b->any_tokens ? b->tokens : NULL);

    print_json(json);
    json_decref(json);
}

static int cmd_backup(const struct cmd_args *args)
{
    struct error e;

    struct backup b = {.database = args->operands[0], .force = cmd_flag(args, "force")};
    if ((size_t)snprintf(b.tokens, sizeof b.tokens, "%s.tokens.json", b.database) >=
        sizeof b.tokens)
        return cmd_usage(args->cmd, "the path of the file is too long");
    if (backup_fetch(&b, &e))
        return cmd_fail(&e);
    if (client.json)
        backup_print_json(&b);
    else
        backup_print(&b);
    return 0;
}

/* clang-format off */
const struct cmd cmd_backup_entry = {
    .name = "backup", .synopsis = "[--force] FILE",
    .help = "copy the database and the tokens while the daemon runs", .example = "trainctl backup traind-backup.db",
    .run = cmd_backup, .operands = {1, 1},
    .options = {OPTION("force", 0, NULL, "replace files that exist", NULL)},
    .completion = "file",
};
/* clang-format on */
