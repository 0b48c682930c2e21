#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cmd.h"
#include "client/files.h"
#include "client/views/format.h"
#include "client/views/print.h"
#include "common/dataset/job_data.h"
#include "common/digest.h"
#include "common/job/job_document.h"
#include "common/json.h"
#include "common/run/checkpoints.h"
#include "common/run/onnx.h"
#include "common/run/weights.h"
#include "common/system/file.h"

struct export_onnx {
    struct job_spec *spec;
    int64_t job; /* id, if the run is that of a daemon's job; 0: unknown */
    struct safetensors *weights;
    char path[PATH_MAX]; /* of the weights, without symbolic links */
};

/* Finds a file in the weights' folder, or in that of the run if they are a checkpoint's. */
static bool export_onnx_find_beside(const char *weights, const char *name, char path[PATH_MAX])
{
    char folder[PATH_MAX];
    int64_t step;

    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(weights, '/') - weights), weights);
    file_path(path, NULL, "%s/%s", folder, name);
    if (access(path, F_OK) && checkpoint_step(file_base_name(folder), &step))
        file_path(path, NULL, "%s/../../%s", folder, name);
    return access(path, F_OK) == 0;
}

/* Weights of a checkpoint must have their digest. */
static int export_onnx_check_digest(const char *weights, struct error *e)
{
    char path[PATH_MAX], hex[DIGEST_BYTES];

    if (!export_onnx_find_beside(weights, "state.json", path))
        return 0;
    json_t *state = json_document_load(path, e);
    const char *wanted =
        json_get_text(json_object_get(state, "files"), file_base_name(weights), NULL);
    int status = !state ? -(int)e->code : wanted ? digest_file(weights, hex, e) : 0;
    if (!status && wanted && strcmp(wanted, hex) != 0)
        status = error_set(e, ERR_CORRUPT, "%s is damaged: it does not match its digest in %s",
                           weights, path);
    json_decref(state);
    return status;
}

/* Opens the weights, of a folder's checkpoint the averaged ones if there are some, as the daemon
 * does. */
static int export_onnx_open(struct export_onnx *x, const char *name, struct error *e)
{
    char found[PATH_MAX], average[PATH_MAX];
    int status = weights_open(name, found, &x->weights, e);

    if (status)
        return status;
    file_path(average, NULL, "%.*s" CHECKPOINT_EMA, (int)(file_base_name(found) - found), found);
    if (strcmp(found, name) != 0 && access(average, F_OK) == 0) {
        safetensors_close(x->weights);
        x->weights = NULL;
        status = weights_open(average, found, &x->weights, e);
    }
    if (!status && !realpath(found, x->path))
        status = error_set_errno(e, errno, "cannot open %s", found);
    return status ? status : export_onnx_check_digest(x->path, e);
}

static int export_onnx_read_job(struct export_onnx *x, struct error *e)
{
    struct error ignored;
    char path[PATH_MAX];

    if (export_onnx_find_beside(x->path, "owner.json", path)) {
        json_t *owner = json_document_load(path, &ignored);
        x->job = json_get_integer(owner, "job", 0);
        json_decref(owner);
    }
    if (!export_onnx_find_beside(x->path, "job.json", path))
        return error_set(e, ERR_NOT_FOUND,
                         "there is no job.json, which describes the network, beside %s, or in the "
                         "run that it is a checkpoint of",
                         x->path);
    x->spec = job_data_load(path, e);
    return x->spec ? 0 : -(int)e->code;
}

static int export_onnx_fill(FILE *out, void *context, struct error *e)
{
    const struct export_onnx *x = context;

    return onnx_write(x->spec, x->job, x->weights, x->path, out, e);
}

static int cmd_export_onnx(const struct cmd_args *args)
{
    const char *file = cmd_value(args, "output") ? cmd_value(args, "output") : "model.onnx";
    bool to_output = strcmp(file, "-") == 0;
    struct export_onnx x = {0};
    struct error e;
    char size[FORMAT_BYTES];
    double bytes = 0;
    int status = export_onnx_open(&x, args->operands[0], &e);

    if (!status)
        status = export_onnx_read_job(&x, &e);
    if (!status)
        status = to_output ? export_onnx_fill(stdout, &x, &e)
                           : files_write(file, export_onnx_fill, &x, &bytes, &e);
    if (!status && !to_output && client.json)
        print_file(file, bytes);
    else if (!status && !to_output)
        printf("%s: %s, ONNX model of %s with the weights of %s\n", file,
               format_size(size, sizeof size, bytes), x.spec->model.arch, x.path);
    job_spec_destroy(x.spec);
    safetensors_close(x.weights);
    return status ? cmd_fail(&e) : 0;
}

/* clang-format off */
const struct cmd cmd_export_onnx_entry = {
    .name = "export-onnx", .synopsis = "[--output FILE] RUN|WEIGHTS",
    .help = "write an ONNX model of a run's network and weights, without a daemon", .example = "trainctl export-onnx -o flowers.onnx runs/first",
    .run = cmd_export_onnx, .completion = "file", .operands = {1, 1},
    .options = {
        OPTION("output", 'o', "FILE", "output file; - is standard output (model.onnx)", "file"),
    },
};
/* clang-format on */
