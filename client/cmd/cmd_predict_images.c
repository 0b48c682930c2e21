#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cmd.h"
#include "client/files.h"
#include "client/local.h"
#include "common/dataset/class_names.h"
#include "common/document.h"
#include "common/json.h"
#include "common/run/weights.h"
#include "common/system/file.h"
#include "common/system/spawn.h"
#include "common/text.h"

/* Makes a folder of each class, so that the evaluation takes them for those of the weights; the
 * first is a link to the images. Their labels are meaningless, and not shown. */
static int predict_images_stage(const char *data, const json_t *names, size_t classes,
                                const char *images, struct error *e)
{
    char real[PATH_MAX], path[PATH_MAX], number[24];
    int status = file_make_dirs(data, e);

    if (!status && !realpath(images, real))
        status = error_set_errno(e, errno, "cannot open the folder %s", images);
    for (size_t i = 0; !status && i < classes; i++) {
        const char *name = json_string_value(json_array_get(names, i));
        snprintf(number, sizeof number, "%08zu", i);
        if (name && (*name == '.' || strchr(name, '/')))
            status = error_set(e, ERR_INVALID, "the class %.80s has no name for a folder", name);
        else if (!(status = file_path(path, e, "%s/%s", data, name ? name : number)) &&
                 (i == 0 ? symlink(real, path) : mkdir(path, 0700)))
            status = error_set_errno(e, errno, "cannot make the folder of a class, %s", path);
    }
    return status;
}

/* Makes the run's document that of an evaluation of the images, DIR/job.json, and gets the names of
 * the classes; NULL: the weights do not have them. */
static int predict_images_prepare(const char *dir, const struct cmd_args *args, json_t **names,
                                  struct error *e)
{
    const char *run = args->operands[0], *weights = cmd_value(args, "weights");
    char init[PATH_MAX], path[PATH_MAX];
    struct safetensors *file;
    int status = weights_open(weights ? weights : run, init, &file, e);

    if (status)
        return status;
    const char *list = safetensors_metadata(file, CLASS_NAMES_KEY);
    *names = list ? json_loads(list, 0, NULL) : NULL;
    safetensors_close(file);
    json_t *document = file_path(path, e, "%s/job.json", run) ? NULL : json_document_load(path, e);
    if (!document)
        return -(int)e->code;
    size_t classes = (size_t)json_get_integer(json_object_get(document, "model"), "classes", 0);
    file_path(path, NULL, "%s/data/validation", dir);
    status = predict_images_stage(path, *names, *names ? json_array_size(*names) : classes,
                                  args->operands[1], e);
    json_t *changes =
        json_pack("{s:s, s:{s:n, s:n, s:s}, s:{s:s}, s:{s:b}, s:{s:i}}", "mode", "eval", "data",
                  "eval_images", "train_images", "eval", dirname(path), "model", "init", init,
                  "eval", "predictions", 1, "cluster", "workers_per_node", 1);
    json_object_del(document, "cluster");
    json_object_del(document, "reproduces");
    json_object_update_recursive(document, changes);
    json_object_del(json_object_get(document, "data"), "train");
    file_path(path, NULL, "%s/job.json", dir);
    if (!status)
        status = json_file_write(path, document, e);
    json_decref(changes);
    json_decref(document);
    return status;
}

/* Runs one worker. Ctrl-C stops it, and this program removes the folder. */
static int predict_images_run(const char *dir, struct error *e)
{
    char *worker = NULL, job[PATH_MAX];
    int status = local_find_worker(&worker, e);
    char *argv[] = {worker, "--job", job, "--run-dir", (char *)dir, NULL};
    struct spawn_request request = {
        .argv = argv,
        .stream = {SPAWN_MUTE, SPAWN_COLLECTED},
        .ends_with_us = true,
        .limit_bytes = 1 << 16,
        .seconds = INT_MAX
    };
    struct spawn child = SPAWN_NONE;

    file_path(job, NULL, "%s/job.json", dir);
    signal(SIGINT, SIG_IGN);
    if (!status)
        status = spawn_run(&request, &child, e);
    if (!status && child.status) {
        fputs(child.text[SPAWN_ERR].data ? child.text[SPAWN_ERR].data : "", stderr);
        status = error_set(e, ERR_INVALID, "the images could not be evaluated, see above");
    }
    spawn_clear(&child);
    free(worker);
    return status;
}

/* Prints predictions.csv, lines of "file",label,top1,p, without the label. */
static int predict_images_print(const char *dir, const json_t *names, struct error *e)
{
    char path[PATH_MAX], *text, top1[16], p[32];
    int label, used;

    file_path(path, NULL, "%s/attempt-1/predictions.csv", dir);
    if (file_read(path, SIZE_MAX / 2, &text, &(size_t){0}, e))
        return -(int)e->code;
    puts("file,class,name,p");
    for (char *at = strchr(text, '\n') + 1, *end; *at; at = end + used) {
        for (end = at + 1; *end != '"' || end[1] == '"'; end++) /* a name may contain newlines */
            end += *end == '"';
        end++;
        used = (int)strlen(end);
        sscanf(end, ",%d,%15[0-9],%31s\n%n", &label, top1, p, &used);
        const char *name = json_string_value(json_array_get(names, strtoul(top1, NULL, 10)));
        bool decoded = label >= 0;
        printf("%.*s,%s,", (int)(end - at), at, decoded ? top1 : "");
        text_print_csv(stdout, decoded && name ? name : "");
        printf(",%s\n", decoded ? p : "");
    }
    free(text);
    return 0;
}

static int cmd_predict_images(const struct cmd_args *args)
{
    char dir[PATH_MAX];
    json_t *names = NULL;
    struct error e, ignored;

    if (files_make_temporary(dir, &e))
        return cmd_fail(&e);
    int status = predict_images_prepare(dir, args, &names, &e);
    if (!status)
        status = predict_images_run(dir, &e);
    if (!status)
        status = predict_images_print(dir, names, &e);
    file_remove_tree(dir, &ignored);
    json_decref(names);
    return status ? cmd_fail(&e) : 0;
}

/* clang-format off */
const struct cmd cmd_predict_images_entry = {
    .name = "predict-images", .synopsis = "[--weights FILE] RUN DIR",
    .help = "print the predicted classes of the images in a folder, without a daemon", .example = "trainctl predict-images runs/first photos",
    .run = cmd_predict_images, .completion = "file", .operands = {2, 2},
    .options = {
        OPTION("weights", 0, "FILE", "these weights instead of the run's best or newest checkpoint", "file"),
    },
};
/* clang-format on */
