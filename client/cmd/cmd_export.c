/* trainctl export: a job as one file. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/download.h"
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
    if (download(path, ARCHIVE_TYPE, file, &bytes, &e) < 0)
        return cmd_fail(&e);
    if (client.json)
        print_file(file, bytes);
    else
        printf("Job %ld written to %s (%s).\n", id, file, format_size(size, sizeof size, bytes));
    return 0;
}

/* clang-format off */
const struct cmd cmd_export_entry = {
    .name = "export", .synopsis = "[--weights] [--force] ID FILE|-",
    .help = "write a job that has ended to one file", .example = "trainctl export --weights 7 job-7.tar",
    .run = cmd_export, .completion = "job,file", .operands = {2, 2},
    .options = {
        OPTION("weights", 0, NULL, "with its newest checkpoint", NULL),
        OPTION("force", 0, NULL, "replace a file that exists", NULL),
    },
};
/* clang-format on */
