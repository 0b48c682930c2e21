#include <jansson.h>
#include <stdio.h>

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
    if (download("/v1/backup", path, &bytes, &e))
        return cmd_fail(&e);
    if (client.json)
        print_file(path, bytes);
    else
        printf("%s: %s; to restore it, stop traind and put it in the place of traind.db\n", path,
               human_size(size, sizeof size, bytes));
    return 0;
}

/* clang-format off */
const struct cmd cmd_backup_entry = {
    .name = "backup",
    .synopsis = "FILE",
    .help = "copy the daemon's database, while it works, into a file",
    .run = cmd_backup,
    .min_operands = 1,
    .max_operands = 1,
    .completion = "file",
};
/* clang-format on */
