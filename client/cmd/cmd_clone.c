/* trainctl clone: a job's document with changes, printed or submitted. */
#include <stdlib.h>
#include <string.h>

#include "client/change.h"
#include "client/cmd/submit.h"
#include "client/document.h"
#include "client/job.h"
#include "client/views/print.h"

/* The job's document, every key stated; the preset's name would say again what stands there. */
static json_t *cmd_clone_document_of(const struct cmd_args *args, struct error *e)
{
    struct job job;
    json_t *json, *document = NULL;
    long id;

    if (cmd_job_id(args->operands[0], &id, e) || job_fetch(id, &json, &job, e))
        return NULL;
    json_t *spec = json_object_get(json, "spec");
    if (json_is_object(spec))
        document = json_deep_copy(spec);
    else
        error_set(e, ERR_INTERNAL, "the daemon's answer has no document of job %ld", id);
    bool changed;
    if (document &&
        (changes_apply(document, args, e) || document_paths_absolute(document, &changed, e))) {
        json_decref(document);
        document = NULL;
    }
    json_decref(json);
    return document;
}

static int cmd_clone(const struct cmd_args *args)
{
    struct error e;
    int code = 0;

    bool submits = cmd_flag(args, "submit");
    if (!submits && (cmd_flag(args, "wait") || cmd_flag(args, "watch")))
        return cmd_usage(args->cmd, "--wait and --watch go with --submit");
    json_t *document = cmd_clone_document_of(args, &e);
    if (!document)
        return cmd_fail(&e);
    if (submits) {
        char *text = json_dumps(document, JSON_COMPACT);
        code = submit_text(args, text, strlen(text));
        free(text);
    } else {
        print_json(document);
    }
    json_decref(document);
    return code;
}

/* clang-format off */
const struct cmd cmd_clone_entry = {
    .name = "clone", .synopsis = "[--set KEY=VALUE...] [--submit [--yes] [--wait|--watch]] ID",
    .help = "print a job's document with changes, or submit it as a new job", .example = "trainctl clone --set lr.base=0.2 --submit 7",
    .run = cmd_clone, .completion = "job", .operands = {1, 1},
    .options = {
        OPTION("set", 0, "KEY=VALUE", "change a key, e.g. lr.base=0.2", "key"),
        OPTION("submit", 0, NULL, "submit the document instead of printing it", NULL),
        OPTION("yes", 'y', NULL, "with --submit: do not ask before a job of more than a day", NULL),
        OPTION("wait", 0, NULL, "with --submit: wait until the job ends; exit with its outcome", NULL),
        OPTION("watch", 0, NULL, "with --submit: watch the job until it ends; exit with its outcome", NULL),
    },
};
/* clang-format on */
