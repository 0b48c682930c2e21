#include "common/job/recipe/preset.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/log.h"
#include "common/system/file.h"
#include "common/system/install_paths.h"

const char *preset_folder(void)
{
    const char *folder = getenv("TRAIND_PRESETS");

    return folder && *folder ? folder : PKGDATADIR "/presets";
}

static bool preset_is_plain(const char *name)
{
    return *name && *name != '.' && strlen(name) < 200 && !strchr(name, '/');
}

static json_t *preset_load(const char *name)
{
    char path[PATH_MAX];
    struct error e;

    file_path(path, NULL, "%s/%s.json", preset_folder(), name);
    json_t *document = json_document_load(path, &e);
    if (!document && e.code != ERR_NOT_FOUND)
        log_warning("the preset %s cannot be used: %s", name, e.text);
    return document;
}

static int preset_is_preset_file(const struct dirent *entry)
{
    const char *end = strrchr(entry->d_name, '.');

    return end && strcmp(end, ".json") == 0 && preset_is_plain(entry->d_name);
}

static json_t *preset_names(void)
{
    struct dirent **entries = NULL;
    int count = scandir(preset_folder(), &entries, preset_is_preset_file, alphasort);
    json_t *list = json_array();

    for (int i = 0; i < count; i++) {
        size_t length = strlen(entries[i]->d_name) - strlen(".json");
        json_array_append_new(list, json_stringn(entries[i]->d_name, length));
        free(entries[i]);
    }
    free(entries);
    return list;
}

json_t *preset_lookup(const char *name, void *context)
{
    (void)context;
    if (!name)
        return preset_names();
    return preset_is_plain(name) ? preset_load(name) : NULL;
}

void preset_leave_job(json_t *preset)
{
    static const char *const others[] = {"description", "source", "recipe_images", "top1",
                                         "top1_by_epoch"};

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        json_object_del(preset, others[i]);
}

static json_t *preset_describe(const char *name, json_t *document)
{
    json_t *entry =
        json_pack("{s:s, s:O?, s:O?, s:O*, s:O*}", "name", name, "description",
                  json_object_get(document, "description"), "source",
                  json_object_get(document, "source"), "top1", json_object_get(document, "top1"),
                  "top1_by_epoch", json_object_get(document, "top1_by_epoch"));

    preset_leave_job(document);
    json_object_set(entry, "document", document);
    return entry;
}

json_t *preset_list(void)
{
    json_t *list = json_array(), *all = preset_names(), *name;
    size_t i;

    json_array_foreach (all, i, name) {
        json_t *document = preset_load(json_string_value(name));
        if (document)
            json_array_append_new(list, preset_describe(json_string_value(name), document));
        json_decref(document);
    }
    json_decref(all);
    return list;
}
