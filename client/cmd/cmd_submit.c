#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/api.h"
#include "client/cmd/cmd_watch.h"
#include "client/document.h"
#include "client/job.h"
#include "client/views/print.h"
#include "common/json.h"
#include "common/plan/plan.h"
#include "common/system/file.h"

/* Asks for confirmation of a job of more than a day, if on a terminal. Errors of the document are
 * left to the submission. */
static bool submit_is_confirmed(const struct cmd_args *args, const char *text, size_t bytes)
{
    struct error ignored;
    bool yes = true;
    json_t *plan;

    if (client.json || api_post("/v1/plan", text, bytes, &plan, &ignored) < 0)
        return true;
    if (json_number_value(json_get_at(plan, "/predicted/ttt_seconds/value")) > PLAN_LONG_SECONDS) {
        print_wrapped(stderr, "warning: ", 2,
                      json_string_value(json_array_get(json_object_get(plan, "warnings"), 0)));
        yes = cmd_flag(args, "yes") || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO) ||
              cmd_agrees("Submit it?");
    }
    json_decref(plan);
    return yes;
}

static int submit_text(const struct cmd_args *args, const char *text, size_t bytes)
{
    bool wait = cmd_flag(args, "wait"), watch = cmd_flag(args, "watch");
    struct error e;
    struct job job;
    json_t *answer;

    if (wait && watch)
        return cmd_usage(args->cmd, "--wait and --watch exclude each other");
    if (!submit_is_confirmed(args, text, bytes)) {
        error_set(&e, ERR_CONFLICT, "nothing was submitted");
        return cmd_fail(&e);
    }
    if (api_post("/v1/jobs", text, bytes, &answer, &e) < 0)
        return cmd_fail(&e);
    job_read(answer, &job);
    long id = job.id;
    if (client.json && !wait && !watch)
        print_json(answer);
    else if (!client.json)
        printf("job %ld %s%s%s\n", id, job.state, *job.reason ? ": " : "", job.reason);
    json_decref(answer);
    fflush(stdout);
    return wait || watch ? watch_until_end(id, watch) : 0;
}

/* Sends the text unchanged, so that line numbers in the daemon's errors are correct, unless an
 * option or a relative path changes the document. */
static int submit_read_document(const struct cmd_args *args, char **text, size_t *bytes,
                                struct error *e)
{
    struct error wrong;
    int64_t train, eval;
    bool changed = false;

    if (document_images(args, "train-images", &train, e) ||
        document_images(args, "eval-images", &eval, e))
        return -(int)e->code;
    int status = document_read(args->operands[0], text, bytes, e);
    if (status)
        return status;
    bool set = args->repeated_count || train || eval;
    json_t *document = json_document_parse(*text, *bytes, &wrong);
    if (!document && !set)
        return 0; /* the daemon reports it */
    status = document ? document_set_all(document, args, e)
                      : error_set(e, wrong.code, "%s: %s", args->operands[0], wrong.text);
    if (!status && train)
        json_set_at(document, "/data/train_images", json_integer((json_int_t)train));
    if (!status && eval)
        json_set_at(document, "/data/eval_images", json_integer((json_int_t)eval));
    if (!status)
        status = document_paths_absolute(document, &changed, e);
    if (status || changed || set) {
        free(*text);
        *text = status ? NULL : json_dumps(document, JSON_COMPACT);
        *bytes = *text ? strlen(*text) : 0;
    }
    json_decref(document);
    return status;
}

static int submit_print_sbatch(const char *text, size_t bytes)
{
    struct error e;
    json_t *plan;

    if (api_post("/v1/plan", text, bytes, &plan, &e) < 0)
        return cmd_fail(&e);
    const char *script = json_string_value(json_object_get(plan, "sbatch"));
    const json_t *threads = json_object_get(json_object_get(plan, "explain"), "threads_per_worker");
    const json_t *warnings = json_object_get(plan, "warnings");
    const char *last = json_string_value(json_array_get(warnings, json_array_size(warnings) - 1));
    if (script)
        fputs(script, stdout);
    else if (threads && json_is_null(json_object_get(threads, "value")) && last)
        error_set(&e, ERR_INVALID, "no batch script: %s", last);
    else
        error_set(&e, ERR_INVALID,
                  "no batch script: the job needs \"cluster\": {\"launcher\": \"slurm\"}, and the "
                  "daemon mpirun and train-worker");
    int code = script ? 0 : cmd_fail(&e);
    json_decref(plan);
    return code;
}

static int cmd_submit(const struct cmd_args *args)
{
    struct error e;
    char *text;
    size_t bytes;
    int code;

    if (submit_read_document(args, &text, &bytes, &e))
        return cmd_fail(&e);
    code = cmd_flag(args, "print-sbatch") ? submit_print_sbatch(text, bytes)
                                          : submit_text(args, text, bytes);
    free(text);
    return code;
}

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
        error_set(e, ERR_INTERNAL, "the daemon's answer does not contain the document of job %ld",
                  id);
    bool changed;
    json_object_del(document, "after"); /* the new job need not wait for what this one waited for */
    if (document &&
        (document_set_all(document, args, e) || document_paths_absolute(document, &changed, e))) {
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
        return cmd_usage(args->cmd, "--wait and --watch require --submit");
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
const struct cmd cmd_submit_entry = {
    .name = "submit", .synopsis = "[--set KEY=VALUE...] [--train-images N] [--eval-images N] [--yes] [--wait|--watch|--print-sbatch] FILE|-",
    .help = "submit a job document and print the id of the job", .example = "trainctl submit --set lr.base=0.2 --watch job.json",
    .run = cmd_submit, .completion = "file", .operands = {1, 1},
    .options = {
        OPTION("set", 0, "KEY=VALUE", "change a key of the document first, e.g. lr.base=0.2", "key"),
        OPTION("yes", 'y', NULL, "do not ask before a job of more than a day", NULL),
        OPTION("wait", 0, NULL, "wait until the job ends; exit with its outcome", NULL),
        OPTION("watch", 0, NULL, "watch the job until it ends; exit with its outcome", NULL),
        OPTION("print-sbatch", 0, NULL, "print the batch script of a Slurm job instead of submitting it", NULL),
        OPTION("train-images", 0, "N", "number of training images (data.train_images)", NULL),
        OPTION("eval-images", 0, "N", "number of evaluation images (data.eval_images)", NULL),
    },
};

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
