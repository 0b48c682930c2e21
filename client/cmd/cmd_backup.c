#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

#include "client/cmd.h"
#include "client/download.h"
#include "client/views/human.h"
#include "client/views/print.h"

static int cmd_backup(int argc, char **argv)
{
    struct cmd_args args;
    struct error e;
    char size[HUMAN_BYTES];
    double bytes;
    int done = cmd_parse(&args, argc, argv);

    if (done >= 0)
        return done;
    const char *path = args.operands[0];
    if (access(path, F_OK) == 0 && !cmd_flag(&args, "force")) {
        error_set(&e, ERR_CONFLICT, "%s is there already; --force replaces it", path);
        return cmd_fail(&e);
    }
    if (download("/v1/backup", path, &bytes, &e))
        return cmd_fail(&e);
    if (client.json)
        print_file(path, bytes);
    else
        printf("%s: %s; the runs in jobs/ and tokens.json are not in it. To restore it, stop "
               "traind, move traind.db, traind.db-wal and traind.db-shm away, and put it in the "
               "place of traind.db\n",
               path, human_size(size, sizeof size, bytes));
    return 0;
}

/* clang-format off */
const struct cmd cmd_backup_entry = {
    .name = "backup",
    .synopsis = "[--force] FILE",
    .help = "copy the daemon's database, while it works, into a file",
    .run = cmd_backup,
    .min_operands = 1,
    .max_operands = 1,
    .options = {{"force", 0, NULL, "replace FILE if it is there", NULL}},
    .completion = "file",
};
/* clang-format on */
