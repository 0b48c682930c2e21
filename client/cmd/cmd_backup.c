#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "client/cmd.h"
#include "client/download.h"
#include "client/views/human.h"
#include "client/views/print.h"

/* FILE.tokens.json stands beside FILE. Without tokens there is none. */
static int backup_tokens(const char *path, bool *any, struct error *e)
{
    double bytes;
    int status = download("/v1/backup/tokens", path, &bytes, e);

    *any = status == 0;
    return status == -(int)ERR_NOT_FOUND ? 0 : status;
}

static int backup_check(const char *path, bool force, struct error *e)
{
    if (force || access(path, F_OK))
        return 0;
    return error_set(e, ERR_CONFLICT, "%s is there already; --force replaces it", path);
}

static int cmd_backup(int argc, char **argv)
{
    struct cmd_args args;
    struct error e;
    char size[HUMAN_BYTES], tokens[PATH_MAX];
    double bytes;
    bool any;
    int done = cmd_parse(&args, argc, argv);

    if (done >= 0)
        return done;
    const char *path = args.operands[0];
    bool force = cmd_flag(&args, "force");
    if ((size_t)snprintf(tokens, sizeof tokens, "%s.tokens.json", path) >= sizeof tokens)
        return cmd_usage(args.cmd, "the path of the file is too long");
    if (backup_check(path, force, &e) || backup_check(tokens, force, &e) ||
        download("/v1/backup", path, &bytes, &e) || backup_tokens(tokens, &any, &e))
        return cmd_fail(&e);
    if (client.json) {
        print_file(path, bytes);
        return 0;
    }
    printf("%s: %s%s%s\nThe runs, in jobs/, are not in it. To restore it, stop traind, move "
           "traind.db, traind.db-wal and traind.db-shm away, and put it in the place of "
           "traind.db%s\n",
           path, human_size(size, sizeof size, bytes), any ? "; the tokens: " : "",
           any ? tokens : "", any ? ", and the tokens in that of tokens.json" : "");
    return 0;
}

/* clang-format off */
const struct cmd cmd_backup_entry = {
    .name = "backup",
    .synopsis = "[--force] FILE",
    .help = "copy the daemon's database and tokens, while it works, into FILE and FILE.tokens.json",
    .run = cmd_backup,
    .min_operands = 1,
    .max_operands = 1,
    .options = {{"force", 0, NULL, "replace FILE if it is there", NULL}},
    .completion = "file",
};
/* clang-format on */
