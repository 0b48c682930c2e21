#include "common/dataset/plan_inputs.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/dataset/class_names.h"
#include "common/dataset/look.h"
#include "common/run/weights.h"
#include "common/system/open_beneath.h"

/* As many as the training set has, at most ImageNet's: so that data.train_images sizes an
 * evaluation too. */
static int64_t plan_inputs_synthetic_eval_images(const struct job_spec *spec)
{
    bool sized = job_spec_is_synthetic(spec->data.train) && spec->data.has_train_images;
    int64_t images = spec->data.train_images;

    return sized && images < SYNTHETIC_EVAL_IMAGES ? images : SYNTHETIC_EVAL_IMAGES;
}

/* Everything that needs no look at the data; -1 where a look is needed. */
static void plan_inputs_fill_from_spec(const struct job_spec *spec, struct plan_inputs *inputs)
{
    bool trains = spec->mode == JOB_MODE_TRAIN;

    inputs->train_images = !trains                                   ? 0
                           : spec->data.has_train_images             ? spec->data.train_images
                           : job_spec_is_synthetic(spec->data.train) ? SYNTHETIC_TRAIN_IMAGES
                                                                     : -1;
    inputs->eval_images = spec->data.has_eval_images ? spec->data.eval_images : -1;
    if (!spec->data.eval)
        inputs->eval_images = 0;
    else if (spec->data.has_eval_images)
        return;
    else if (job_spec_is_synthetic(spec->data.eval))
        inputs->eval_images = plan_inputs_synthetic_eval_images(spec);
}

/* Images that each node must have of its own. Fewer by data.train_images: each node's share of
 * them. counts: NULL where the data are not here. */
static void plan_inputs_fill_node_images(const struct job_spec *spec,
                                         const struct dataset_counts *counts,
                                         struct plan_inputs *inputs)
{
    int64_t share = inputs->train_images / spec->cluster.nodes;
    bool fewer = !counts || inputs->train_images < counts->images;

    inputs->node_images_least = fewer && (!counts || share < counts->least) ? share : counts->least;
    inputs->node_images_most = fewer && (!counts || share < counts->most) ? share : counts->most;
}

static bool plan_inputs_is_shared_out(const struct job_spec *spec)
{
    return spec->mode == JOB_MODE_TRAIN && spec->data.locality == JOB_LOCALITY_NODE &&
           !job_spec_is_synthetic(spec->data.train);
}

void plan_inputs_share_out(const struct job_spec *spec, struct plan_inputs *inputs)
{
    if (plan_inputs_is_shared_out(spec))
        plan_inputs_fill_node_images(spec, NULL, inputs);
}

/* Behind those that are there; lines. */
static void plan_inputs_remark(struct plan_data *data, const char *lines)
{
    size_t used = strlen(data->remarks), room = sizeof data->remarks - used;

    if (*lines &&
        (size_t)snprintf(data->remarks + used, room, "%s%s", used ? "\n" : "", lines) >= room)
        data->remarks[used] = '\0'; /* left out, not cut */
}

static void plan_inputs_glance_at_classes(const struct job_spec *spec, struct plan_data *data)
{
    char path[PATH_MAX];
    struct safetensors *weights = NULL;
    struct job_classes classes;
    const char *key;
    struct error e;

    if (spec->model.init && weights_open(spec->model.init, path, &weights, &e))
        weights = NULL; /* who checks the weights says why */
    if (job_classes_compare(spec, (struct dataset_part){0, 1}, weights, false, &classes, &key, &e))
        snprintf(data->other_classes, sizeof data->other_classes, "%s", e.text);
    if (!data->evaluates_training)
        plan_inputs_remark(data, classes.unknown);
    plan_inputs_remark(data, classes.remark);
    job_classes_clear(&classes);
    safetensors_close(weights);
}

/* Where both numbers are stated and the job runs elsewhere, the data are not opened. */
static void plan_inputs_glance(const struct job_spec *spec, struct plan_data *data)
{
    bool elsewhere = spec->cluster.launcher != JOB_LAUNCHER_LOCAL;
    bool trains = spec->mode == JOB_MODE_TRAIN && spec->data.train;
    struct dataset_glance train = {0}, eval = {0};

    *data = (struct plan_data){0};
    if (elsewhere && (!trains || spec->data.has_train_images) && spec->data.has_eval_images)
        return;
    if (trains)
        dataset_look(spec->data.train, DATASET_TRAIN, &train);
    if (spec->data.eval)
        dataset_look(spec->data.eval, DATASET_EVAL, &eval);
    data->classes = trains ? train.classes : eval.classes;
    data->width = train.width;
    data->height = train.height;
    data->evaluates_training =
        train.inode && train.inode == eval.inode && train.device == eval.device;
    plan_inputs_glance_at_classes(spec, data);
    if (spec->data.has_train_images)
        plan_inputs_remark(data, train.remarks);
    if (spec->data.has_eval_images && strcmp(train.remarks, eval.remarks) != 0)
        plan_inputs_remark(data, eval.remarks);
}

int plan_inputs_count(const struct job_spec *spec, struct plan_inputs *inputs, const char **pointer,
                      struct error *e)
{
    struct dataset_counts train = {0}, eval = {0};

    *pointer = "/data/train";
    plan_inputs_glance(spec, &inputs->data);
    plan_inputs_fill_from_spec(spec, inputs);
    if (inputs->train_images >= 0) {
        plan_inputs_share_out(spec, inputs);
    } else {
        if (dataset_count_parts(spec->data.train, DATASET_TRAIN, (int)spec->cluster.nodes, &train,
                                e))
            return -(int)e->code;
        inputs->train_images = train.images;
        if (plan_inputs_is_shared_out(spec) && train.least == 0)
            return error_set(
                e, ERR_INVALID,
                "data.locality node: %s has too few files to share out over %lld nodes",
                spec->data.train, (long long)spec->cluster.nodes);
        if (plan_inputs_is_shared_out(spec))
            plan_inputs_fill_node_images(spec, &train, inputs);
        plan_inputs_remark(&inputs->data, train.remarks);
    }
    *pointer = "/data/eval";
    if (inputs->eval_images >= 0)
        return 0;
    int status = dataset_count_parts(spec->data.eval, DATASET_EVAL, 1, &eval, e);
    inputs->eval_images = eval.images;
    if (strcmp(train.remarks, eval.remarks) != 0)
        plan_inputs_remark(&inputs->data, eval.remarks);
    return status;
}

static void plan_inputs_look_at(const char *path, const char *pointer, struct problems *problems)
{
    struct error e;

    if (!path || job_spec_is_synthetic(path) || problems_about(problems, pointer))
        return;
    int fd = open_beneath_folder(path, &e);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry = NULL;

    if (!folder) {
        problems_add(problems, pointer, NULL, "%s", fd < 0 ? e.text : "no memory");
        if (fd >= 0)
            close(fd);
        return;
    }
    do
        entry = readdir(folder);
    while (entry && entry->d_name[0] == '.');
    closedir(folder);
    if (!entry)
        problems_add(problems, pointer, NULL, "the folder %s is empty", path);
}

void plan_inputs_look(const struct job_spec *spec, bool will_run_here, struct problems *problems)
{
    if (spec->mode == JOB_MODE_TRAIN && (will_run_here || !spec->data.has_train_images))
        plan_inputs_look_at(spec->data.train, "/data/train", problems);
    if (will_run_here || !spec->data.has_eval_images)
        plan_inputs_look_at(spec->data.eval, "/data/eval", problems);
}

int plan_inputs_of_counts(const struct job_spec *spec, const struct plan_counts *counts,
                          struct plan_inputs *inputs, struct error *e)
{
    plan_inputs_fill_from_spec(spec, inputs);
    if (inputs->train_images < 0)
        inputs->train_images = counts->train.images > 0 ? counts->train.images : -1;
    if (inputs->eval_images < 0)
        inputs->eval_images = counts->eval > 0 ? counts->eval : -1;
    if (inputs->train_images < 0 || inputs->eval_images < 0)
        return error_set(e, ERR_INTERNAL, "a data set was not opened before the plan was made");
    if (plan_inputs_is_shared_out(spec))
        plan_inputs_fill_node_images(spec, &counts->train, inputs);
    return 0;
}
