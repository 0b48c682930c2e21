#include <math.h>
#include <string.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/job.h"
#include "client/views/format.h"
#include "client/views/print.h"
#include "client/views/table.h"
#include "common/clock.h"
#include "common/json.h"

#define STEP_MAX     1000000000000
#define WEIGHTS_TYPE "application/octet-stream"

static void checkpoints_print_list(const json_t *list)
{
    struct libscols_table *table = table_create(1, "STEP>,EPOCH>,TOP-1>,SIZE>,WRITTEN>,REMARK");
    const json_t *item;
    char text[FORMAT_BYTES];
    size_t i;

    json_array_foreach (list, i, item) {
        struct libscols_line *line = table_line(table);
        table_set(line, 0,
                  format_count(text, sizeof text, (long long)json_get_number(item, "step", NAN)));
        table_set(line, 1, format_number(text, sizeof text, json_get_number(item, "epoch", NAN)));
        table_set(line, 2, format_percent(text, sizeof text, json_get_number(item, "top1", NAN)));
        table_set(line, 3, format_size(text, sizeof text, json_get_number(item, "bytes", NAN)));
        table_set(
            line, 4,
            format_ago(text, sizeof text, clock_now() - json_get_number(item, "written", NAN)));
        long long best = json_get_integer(item, "best", 0);
        *text = '\0';
        if (best > 0)
            snprintf(text, sizeof text, best > 1 ? "best %lld" : "best", best);
        table_set(line, 5, text);
        if (json_is_false(json_object_get(item, "complete"))) {
            table_set(line, 5, "not complete");
            table_set_color(line, 5, "red");
        }
    }
    table_finish(table);
}

static int checkpoints_find_step(const char *text, const json_t *list, long id, long *step,
                                 struct error *e)
{
    const json_t *item;
    size_t i;

    bool best = strcmp(text, "best") == 0, newest = strcmp(text, "newest") == 0;

    if (!best && !newest && cmd_number(text, "get", 0, STEP_MAX, step, e))
        return error_set(e, ERR_USAGE,
                         "--get must be the step of a checkpoint, newest, or best, not \"%s\"",
                         text);
    if (!best && !newest)
        return 0;
    json_array_foreach (list, i, item)
        if (!json_is_false(json_object_get(item, "complete")) &&
            (newest || json_get_integer(item, "best", 0) == 1)) {
            *step = (long)json_get_number(item, "step", NAN);
            return 0;
        }
    if (best)
        return error_set(
            e, ERR_NOT_FOUND,
            "job %ld has no intact best checkpoint: checkpoint.keep_best must be above "
            "0 when it runs; --get newest takes the newest",
            id);
    return error_set(e, ERR_NOT_FOUND, "job %ld has no intact checkpoint", id);
}

static int checkpoints_get(const struct cmd_args *args, long id, const json_t *list,
                           struct error *e)
{
    const char *file = cmd_value(args, "output");
    char path[96], name[96], size[FORMAT_BYTES];
    double bytes;
    long step;

    if (checkpoints_find_step(cmd_value(args, "get"), list, id, &step, e))
        return -(int)e->code;
    bool onnx = cmd_flag(args, "onnx");
    snprintf(path, sizeof path, "/v1/jobs/%ld/checkpoints/%ld%s", id, step,
             onnx ? "?format=onnx" : "");
    snprintf(name, sizeof name, "job-%ld-step-%ld.%s", id, step, onnx ? "onnx" : "safetensors");
    if (file && strcmp(file, "-") == 0)
        return api_get_file(path, WEIGHTS_TYPE, stdout, e);
    if (api_download(path, WEIGHTS_TYPE, file ? file : name, &bytes, e))
        return -(int)e->code;
    if (client.json)
        print_file(file ? file : name, bytes);
    else
        printf("%s: %s, %s of job %ld after step %ld\n", file ? file : name,
               format_size(size, sizeof size, bytes), onnx ? "ONNX model" : "weights", id, step);
    return 0;
}

static int cmd_checkpoints(const struct cmd_args *args)
{
    struct error e;
    json_t *answer;
    long id;
    int status = 0;

    if (cmd_flag(args, "output") && !cmd_flag(args, "get")) {
        if (strcmp(cmd_value(args, "output"), "json") != 0)
            return cmd_usage(args->cmd, "--output FILE requires --get STEP");
        client.json = true;
    }
    if (cmd_flag(args, "onnx") && !cmd_flag(args, "get"))
        return cmd_usage(args->cmd, "--onnx requires --get STEP");
    if (cmd_job_id(args->operands[0], &id, &e) < 0)
        return cmd_fail(&e);
    if (api_call("GET", &answer, &e, "/v1/jobs/%ld/checkpoints", id))
        return cmd_fail(&e);
    const json_t *list = json_object_get(answer, "checkpoints");
    if (cmd_flag(args, "get"))
        status = checkpoints_get(args, id, list, &e);
    else if (client.json)
        print_json(answer);
    else if (json_array_size(list) == 0)
        printf("job %ld has no checkpoint\n", id);
    else
        checkpoints_print_list(list);
    json_decref(answer);
    return status < 0 ? cmd_fail(&e) : 0;
}

/* clang-format off */
const struct cmd cmd_checkpoints_entry = {
    .name = "checkpoints", .synopsis = "[--get STEP|newest|best [--onnx] [--output FILE]] ID",
    .help = "list a job's checkpoints, or download the weights of one", .example = "trainctl checkpoints --get best --output weights.safetensors 7",
    .run = cmd_checkpoints, .completion = "job", .operands = {1, 1},
    .options = {
        OPTION("get", 0, "STEP", "download the weights of this step, the newest, or the best (checkpoint.keep_best)", "newest|best|"),
        OPTION("onnx", 0, NULL, "download an ONNX model of the network with these weights, the averaged ones if there are some", NULL),
        OPTION("output", 'o', "FILE", "output file; - is standard output (job-ID-step-STEP.safetensors)", "file"),
    },
};
/* clang-format on */
