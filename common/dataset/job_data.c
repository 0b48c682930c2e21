#include "common/dataset/job_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/dataset/list.h"
#include "common/dataset/look.h"
#include "common/dataset/manifest.h"
#include "common/job/job_document.h"
#include "common/job/recipe/preset.h"
#include "common/json.h"
#include "common/net/arch.h"

struct completion {
    json_t *document, *preset; /* preset: NULL where there is none */
    json_t *from;
    struct dataset_list list;
    json_t *classes; /* names, of shards with a manifest */
};

static const json_t *data_stated(const struct completion *c, const char *pointer)
{
    const json_t *value = json_get_at(c->document, pointer);
    return value ? value : json_get_at(c->preset, pointer);
}

/* Steals the value. A group that is none is left for the parser to refuse. */
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

/* The validation shards of train-prep, beside its training shards: of the same classes. */
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
    int64_t least = arch && arch->family == ARCH_CNN ? 28 : 32, size;

    if (classes > 1)
        data_complete(c, "model", "classes", json_integer((json_int_t)classes),
                      "classes in data.train",
                      c->classes ? "manifest.json of the training data"
                                 : "class folders of the training data");
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
        const json_t *init = data_stated(&c, "/model/init");
        c.classes = c.list.format == DATASET_TFRECORD ? manifest_classes(&c.list, &why) : NULL;
        if (!init || json_is_null(init)) /* else the weights decide */
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
