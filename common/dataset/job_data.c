#include "common/dataset/job_data.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/dataset/class_names.h"
#include "common/dataset/file_list.h"
#include "common/dataset/manifest.h"
#include "common/dataset/probe.h"
#include "common/job/job_document.h"
#include "common/job/recipe/preset.h"
#include "common/json.h"
#include "common/net/arch.h"
#include "common/run/weights.h"
#include "common/system/open_beneath.h"

struct completion {
    json_t *document, *preset; /* preset: NULL if there is none */
    json_t *from;
    struct dataset_list list;
    json_t *classes; /* names, from the manifest of shards */
};

static const json_t *data_stated(const struct completion *c, const char *pointer)
{
    const json_t *value = json_get_at(c->document, pointer);
    return value ? value : json_get_at(c->preset, pointer);
}

/* Steals the value. Ignores a malformed group, which the parser reports. */
static void data_complete(struct completion *c, const char *group, const char *key, json_t *value,
                          const char *formula, const char *source)
{
    char pointer[64], name[PROBLEM_KEY_BYTES];
    const json_t *parent = json_object_get(c->document, group);

    snprintf(pointer, sizeof pointer, "/%s/%s", group, key);
    if (!data_stated(c, pointer) && (!parent || json_is_object(parent))) {
        json_set_at(c->document, pointer, json_incref(value));
        json_object_set_new(c->from, problem_key(pointer, name),
                            json_pack("{s:s, s:{}, s:O, s:s}", "formula", formula, "inputs",
                                      "value", value, "source", source));
    }
    json_decref(value);
}

/* Uses train-prep's validation shards beside its training shards if they have the same classes. */
static void data_complete_eval(struct completion *c)
{
    struct dataset_list eval = {0};
    const char *slash = strrchr(c->list.folder, '/'), *why;
    json_t *path, *classes = NULL;
    struct error e;

    if (!c->classes || !slash || strcmp(slash, "/train") != 0)
        return;
    path = json_sprintf("%.*s/validation", (int)(slash - c->list.folder), c->list.folder);
    if (path && !dataset_list_find(json_string_value(path), DATASET_EVAL,
                                   (struct dataset_part){0, 1}, &eval, &e))
        classes = manifest_classes(&eval, &why);
    if (json_equal(classes, c->classes))
        data_complete(c, "data", "eval", json_incref(path), "validation images beside data.train",
                      "manifest.json of the training data");
    json_decref(path);
    json_decref(classes);
    dataset_list_free(&eval);
}

static void data_complete_network(struct completion *c)
{
    static const char sample[] = "a sample of the training data";
    size_t classes = c->classes ? json_array_size(c->classes) : (size_t)c->list.class_count;
    const char *name = json_string_value(data_stated(c, "/model/arch"));
    const struct arch *arch = name ? arch_find(name) : NULL;
    const json_t *init = data_stated(c, "/model/init");
    int64_t least = arch && arch->family == ARCH_CNN ? 28 : 32, size;

    if (classes > 1)
        data_complete(c, "model", "classes", json_integer((json_int_t)classes),
                      "classes in data.train",
                      c->classes ? "manifest.json of the training data"
                                 : "class folders of the training data");
    if (init && !json_is_null(init))
        return; /* the weights were trained with images of their own size */
    if (data_stated(c, "/model/image_size") || !(size = dataset_small_size(&c->list)))
        return;
    data_complete(c, "model", "image_size", json_integer(size > least ? size : least),
                  "size of all images, if it is at most 64", sample);
    data_complete(c, "data", "preprocess", json_string("whole"), "small images are not cropped",
                  sample);
}

json_t *job_data_complete(json_t *document)
{
    struct completion c = {.document = document, .from = json_object()};
    const char *name = json_string_value(json_object_get(document, "preset")), *why;
    struct error e;

    c.preset = name ? preset_lookup(name, NULL) : NULL;
    const char *mode = json_string_value(data_stated(&c, "/mode"));
    const char *path = json_string_value(data_stated(&c, "/data/train"));
    bool open = !(data_stated(&c, "/model/classes") && data_stated(&c, "/model/image_size") &&
                  data_stated(&c, "/data/eval"));

    if (open && path && !job_spec_is_synthetic(path) && !(mode && strcmp(mode, "eval") == 0) &&
        !dataset_list_find(path, DATASET_TRAIN, (struct dataset_part){0, 1}, &c.list, &e)) {
        c.classes = c.list.format == DATASET_TFRECORD ? manifest_classes(&c.list, &why) : NULL;
        data_complete_network(&c);
        data_complete_eval(&c);
    }
    dataset_list_free(&c.list);
    json_decref(c.classes);
    json_decref(c.preset);
    return c.from;
}

struct job_spec *job_data_read(json_t *document, struct problems *problems)
{
    json_t *from = json_is_object(document) ? job_data_complete(document) : NULL;
    struct job_spec *spec = job_spec_read(document, preset_lookup, NULL, problems);

    if (spec)
        spec->from_data = json_incref(from);
    json_decref(from);
    return spec;
}

struct job_spec *job_data_load(const char *path, struct error *e)
{
    struct problems problems = {0};
    json_t *document = json_document_load(path, e);
    struct job_spec *spec = document ? job_data_read(document, &problems) : NULL;

    if (problems.count) {
        char *text = problems_to_text(&problems);
        error_set(e, ERR_INVALID, "%s: %s", path, text);
        free(text);
        job_spec_destroy(spec);
        spec = NULL;
    }
    problems_clear(&problems);
    json_decref(document);
    return spec;
}

/* The number of images of the training set, but at most that of ImageNet. */
static int64_t data_inputs_synthetic_eval_images(const struct job_spec *spec)
{
    bool sized = job_spec_is_synthetic(spec->data.train) && spec->data.has_train_images;
    int64_t images = spec->data.train_images;

    return sized && images < SYNTHETIC_EVAL_IMAGES ? images : SYNTHETIC_EVAL_IMAGES;
}

/* Sets the numbers given by the document; -1: to be counted. */
static void data_inputs_fill_from_spec(const struct job_spec *spec, struct plan_inputs *inputs)
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
        inputs->eval_images = data_inputs_synthetic_eval_images(spec);
}

/* Sets the nodes' numbers of images, limited by data.train_images. counts NULL: unknown. */
static void data_inputs_fill_node_images(const struct job_spec *spec,
                                         const struct dataset_counts *counts,
                                         struct plan_inputs *inputs)
{
    int64_t share = inputs->train_images / spec->cluster.nodes;
    bool fewer = !counts || inputs->train_images < counts->images;

    inputs->node_images_least = fewer && (!counts || share < counts->least) ? share : counts->least;
    inputs->node_images_most = fewer && (!counts || share < counts->most) ? share : counts->most;
}

static bool data_inputs_is_shared_out(const struct job_spec *spec)
{
    return spec->mode == JOB_MODE_TRAIN && spec->data.locality == JOB_LOCALITY_NODE &&
           !job_spec_is_synthetic(spec->data.train);
}

void plan_inputs_share_out(const struct job_spec *spec, struct plan_inputs *inputs)
{
    if (data_inputs_is_shared_out(spec))
        data_inputs_fill_node_images(spec, NULL, inputs);
}

static void data_inputs_remark(struct plan_data *data, const char *lines)
{
    size_t used = strlen(data->remarks), capacity = sizeof data->remarks - used;

    if (*lines && (size_t)snprintf(data->remarks + used, capacity, "%s%s", used ? "\n" : "",
                                   lines) >= capacity)
        data->remarks[used] = '\0'; /* omit a remark rather than truncate it */
}

static void data_inputs_glance_at_classes(const struct job_spec *spec, struct plan_data *data)
{
    char path[PATH_MAX];
    struct safetensors *weights = NULL;
    struct job_classes classes;
    const char *key;
    struct error e;

    if (spec->model.init && weights_open(spec->model.init, path, &weights, &e))
        weights = NULL; /* the check of the weights reports the error */
    if (job_classes_compare(spec, (struct dataset_part){0, 1}, weights, false, &classes, &key, &e))
        snprintf(data->other_classes, sizeof data->other_classes, "%s", e.text);
    if (!data->evaluates_training)
        data_inputs_remark(data, classes.unknown);
    data_inputs_remark(data, classes.remark);
    job_classes_clear(&classes);
    safetensors_close(weights);
}

/* Does nothing if both numbers are given and the job runs on other machines. */
static void data_inputs_glance(const struct job_spec *spec, struct plan_data *data)
{
    bool elsewhere = spec->cluster.launcher != JOB_LAUNCHER_LOCAL;
    bool trains = spec->mode == JOB_MODE_TRAIN && spec->data.train;
    struct dataset_probe train = {0}, eval = {0};

    *data = (struct plan_data){0};
    if (elsewhere && (!trains || spec->data.has_train_images) && spec->data.has_eval_images)
        return;
    if (trains)
        dataset_probe(spec->data.train, DATASET_TRAIN, &train);
    if (spec->data.eval)
        dataset_probe(spec->data.eval, DATASET_EVAL, &eval);
    data->classes = trains ? train.classes : eval.classes;
    data->width = train.width;
    data->height = train.height;
    data->evaluates_training =
        train.inode && train.inode == eval.inode && train.device == eval.device;
    data_inputs_glance_at_classes(spec, data);
    if (spec->data.has_train_images)
        data_inputs_remark(data, train.remarks);
    if (spec->data.has_eval_images && strcmp(train.remarks, eval.remarks) != 0)
        data_inputs_remark(data, eval.remarks);
}

int plan_inputs_count(const struct job_spec *spec, struct plan_inputs *inputs, const char **pointer,
                      struct error *e)
{
    struct dataset_counts train = {0}, eval = {0};

    *pointer = "/data/train";
    data_inputs_glance(spec, &inputs->data);
    data_inputs_fill_from_spec(spec, inputs);
    if (inputs->train_images >= 0) {
        plan_inputs_share_out(spec, inputs);
    } else {
        if (dataset_count_parts(spec->data.train, DATASET_TRAIN, (int)spec->cluster.nodes, &train,
                                e))
            return -(int)e->code;
        inputs->train_images = train.images;
        if (data_inputs_is_shared_out(spec) && train.least == 0)
            return error_set(
                e, ERR_INVALID,
                "data.locality node: %s has too few files to share out over %lld nodes",
                spec->data.train, (long long)spec->cluster.nodes);
        if (data_inputs_is_shared_out(spec))
            data_inputs_fill_node_images(spec, &train, inputs);
        data_inputs_remark(&inputs->data, train.remarks);
    }
    *pointer = "/data/eval";
    if (inputs->eval_images >= 0)
        return 0;
    int status = dataset_count_parts(spec->data.eval, DATASET_EVAL, 1, &eval, e);
    inputs->eval_images = eval.images;
    if (strcmp(train.remarks, eval.remarks) != 0)
        data_inputs_remark(&inputs->data, eval.remarks);
    return status;
}

static void data_inputs_look_at(const char *path, const char *pointer, struct problems *problems)
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
        data_inputs_look_at(spec->data.train, "/data/train", problems);
    if (will_run_here || !spec->data.has_eval_images)
        data_inputs_look_at(spec->data.eval, "/data/eval", problems);
}

int plan_inputs_of_counts(const struct job_spec *spec, const struct plan_counts *counts,
                          struct plan_inputs *inputs, struct error *e)
{
    data_inputs_fill_from_spec(spec, inputs);
    if (inputs->train_images < 0)
        inputs->train_images = counts->train.images > 0 ? counts->train.images : -1;
    if (inputs->eval_images < 0)
        inputs->eval_images = counts->eval > 0 ? counts->eval : -1;
    if (inputs->train_images < 0 || inputs->eval_images < 0)
        return error_set(e, ERR_INTERNAL, "a data set was not opened before the plan was made");
    if (data_inputs_is_shared_out(spec))
        data_inputs_fill_node_images(spec, &counts->train, inputs);
    return 0;
}
