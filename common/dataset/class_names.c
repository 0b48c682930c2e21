#include "common/dataset/class_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/dataset/file_list.h"
#include "common/dataset/manifest.h"
#include "common/run/weights.h"
#include "common/text.h"

#define SHOWN_BYTES 160 /* of a name in a message */

static json_t *class_names_of_folders(const struct dataset_list *list)
{
    json_t *names = json_array();

    for (int i = 0; i < list->class_count; i++) {
        json_t *name = json_string(list->classes[i]);
        if (!name) {
            char *shown = text_escape_copy(list->classes[i], "");
            name = json_string(shown);
            free(shown);
        }
        json_array_append_new(names, name);
    }
    return names;
}

static void class_names_of_data(const char *path, enum dataset_role role, struct dataset_part part,
                                struct class_names *out)
{
    struct dataset_list list = {0};
    struct error e;

    *out = (struct class_names){0};
    if (!path || job_spec_is_synthetic(path))
        return;
    if (dataset_list_find(path, role, part, &list, &e))
        out->why = NULL; /* opening the data set reports the error */
    else if (list.format == DATASET_TFRECORD) {
        out->list = manifest_classes(&list, &out->why);
        out->why = out->list ? NULL : out->why;
        out->first = strdup(list.files[0]);
    } else {
        out->list = class_names_of_folders(&list);
        out->folders = true;
    }
    dataset_list_free(&list);
}

static void class_names_of_weights(const struct safetensors *file, struct class_names *out)
{
    const char *text = file ? safetensors_metadata(file, CLASS_NAMES_KEY) : NULL;
    json_t *list = text ? json_loads(text, 0, NULL) : NULL;

    *out = (struct class_names){0};
    if (manifest_are_names(list))
        out->list = json_incref(list);
    else if (file)
        out->why = "contain no class names";
    json_decref(list);
}

char *class_names_to_text(const struct class_names *names)
{
    return names->list ? json_dumps(names->list, JSON_COMPACT) : NULL;
}

static void class_names_clear(struct class_names *names)
{
    json_decref(names->list);
    free(names->first);
    *names = (struct class_names){0};
}

static const char *name_at(const json_t *list, size_t i)
{
    return json_string_value(json_array_get(list, i));
}

static const char *class_names_show(const char *name, char shown[SHOWN_BYTES])
{
    if (name)
        text_escape(shown, SHOWN_BYTES, name, strlen(name), "");
    else
        snprintf(shown, SHOWN_BYTES, "none");
    return shown;
}

static bool class_names_hold(const json_t *list, const char *name)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(name_at(list, i), name) == 0)
            return true;
    return false;
}

/* Returns ERR_INVALID with the first difference. other: the second list in the message. */
static int class_names_compare(const struct class_names *here, const struct class_names *there,
                               const char *other, struct error *e)
{
    size_t i = 0, mine = json_array_size(here->list), theirs = json_array_size(there->list);
    const char *folder = here->folders ? "folder of " : "";
    char own[SHOWN_BYTES], wanted[SHOWN_BYTES];

    while (i < mine && i < theirs && strcmp(name_at(here->list, i), name_at(there->list, i)) == 0)
        i++;
    if (i == mine && i == theirs)
        return 0;
    const char *a = name_at(here->list, i), *b = name_at(there->list, i);
    class_names_show(a, own);
    class_names_show(b, wanted);
    if (b && !class_names_hold(here->list, b))
        return error_set(
            e, ERR_INVALID,
            "has no %sclass %s, which %s has: class number %zu is %s there and %s here, so labels "
            "would mean other classes; %s",
            folder, wanted, other, i, wanted, own,
            here->folders ? "make an empty folder of that name if it has no images"
                          : "convert training and evaluation images together: train-prep convert "
                            "numbers both alike, also where a class has no images");
    if (a && !class_names_hold(there->list, a))
        return error_set(
            e, ERR_INVALID,
            "has a %sclass %s, which %s does not have: class number %zu is %s here and %s there, "
            "so labels would mean other classes; %s%s",
            folder, own, other, i, own, wanted,
            here->folders ? "remove it" : "convert the images without it",
            there->folders ? ", or make an empty folder of that name there" : "");
    return error_set(e, ERR_INVALID,
                     "has the classes of %s in a different order: class %zu is %s here and %s "
                     "there, so the labels would not match; convert training and evaluation images "
                     "together, or use the same folder names",
                     other, i, own, wanted);
}

static void __attribute__((format(printf, 2, 3)))
job_classes_note(struct job_classes *c, const char *format, ...)
{
    size_t used = strlen(c->unknown);
    va_list arguments;

    if (used)
        c->unknown[used++] = '\n';
    va_start(arguments, format);
    vsnprintf(c->unknown + used, sizeof c->unknown - used, format, arguments);
    va_end(arguments);
}

/* Returns false if there are no such data, or they are synthetic or unreadable. */
static bool class_names_seen(const struct class_names *names)
{
    return names->list || names->why;
}

static int class_names_compare_data(struct job_classes *c, struct error *e)
{
    bool same = c->train.first && c->eval.first && strcmp(c->train.first, c->eval.first) == 0;
    const char *key = c->eval.why ? "data.eval" : "data.train";
    const char *why = c->eval.why ? c->eval.why : c->train.why;
    bool alike = c->eval.why && c->train.why && strcmp(c->eval.why, c->train.why) == 0;

    if (c->train.list && c->eval.list)
        return class_names_compare(&c->eval, &c->train, "data.train", e);
    if (!class_names_seen(&c->train) || !class_names_seen(&c->eval))
        return 0;
    if (!same)
        job_classes_note(c,
                         "%s%s %s, so it cannot be checked that the labels of data.eval mean the "
                         "classes of data.train",
                         key, alike ? ", as data.train," : "", why);
    return 0;
}

static int class_names_compare_weights(struct job_classes *c, const struct class_names *data,
                                       const char *key, const char *weights, struct error *e)
{
    if (c->weights.list && data->list)
        return class_names_compare(data, &c->weights, weights, e);
    if (!class_names_seen(data))
        return 0;
    if (c->weights.why)
        job_classes_note(c,
                         "the weights %s, so it cannot be checked that these are the classes of %s",
                         c->weights.why, key);
    else if (c->weights.list)
        job_classes_note(c,
                         "%s %s, so it cannot be checked that its labels mean the classes that the "
                         "weights were trained for",
                         key, data->why);
    return 0;
}

int job_classes_compare(const struct job_spec *spec, struct dataset_part part,
                        const struct safetensors *weights, bool strict, struct job_classes *out,
                        const char **key, struct error *e)
{
    bool trains = spec->mode == JOB_MODE_TRAIN;
    const struct class_names *data = trains ? &out->train : &out->eval;
    const char *of_weights = trains ? "data.train" : "data.eval";
    struct error other;

    *out = (struct job_classes){0};
    class_names_of_data(trains ? spec->data.train : NULL, DATASET_TRAIN, part, &out->train);
    class_names_of_data(spec->data.eval, DATASET_EVAL, (struct dataset_part){0, 1}, &out->eval);
    class_names_of_weights(weights, &out->weights);
    *key = "data.eval";
    int status = trains ? class_names_compare_data(out, e) : 0;
    if (strict && !out->weights.list)
        return status; /* the data of the run have no names */
    if (!status && !strict && weights_new_classifier(spec, weights, out->remark))
        return 0;
    if (status || !class_names_compare_weights(out, data, of_weights,
                                               strict ? "the checkpoint" : "model.init", &other))
        return status;
    *key = of_weights;
    if (!trains || strict)
        return error_set(e, ERR_INVALID, "%s", other.text);
    struct error remark;
    error_set(
        &remark, ERR_INVALID,
        "the weights of model.init were trained for other classes, as many as the job has, so "
        "training starts with their classifier: data.train %s",
        other.text);
    memcpy(out->remark, remark.text, sizeof out->remark);
    return 0;
}

void job_classes_clear(struct job_classes *c)
{
    class_names_clear(&c->train);
    class_names_clear(&c->eval);
    class_names_clear(&c->weights);
}
