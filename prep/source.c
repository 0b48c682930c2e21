#include "prep/source.h"

#include <stdlib.h>
#include <string.h>

#include "common/file.h"

#define CLASSES_FILE_LIMIT_BYTES (1 << 20)

static const struct {
    const char *kind;
    /* NULL: not built */
    int (*open)(const char *, const struct source_options *, struct source **, struct error *);
} kinds[] = {
    {"idx",      source_idx_open   },
    {"folder",   source_folder_open},
    {"imagenet", NULL              },
    {"cifar",    NULL              },
};

int source_open(const char *kind, const char *path, const struct source_options *options,
                struct source **out, struct error *e)
{
    *out = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kind, kinds[i].kind) != 0)
            continue;
        if (!kinds[i].open)
            return error_set(e, ERR_UNSUPPORTED, "--from %s is not supported by this version",
                             kind);
        return kinds[i].open(path, options, out, e);
    }
    return error_set(e, ERR_USAGE, "--from %s is unknown: expected idx or folder", kind);
}

void source_destroy(struct source *s)
{
    if (s)
        s->destroy(s);
}

void source_classes_free(struct source_class_list *list)
{
    for (int i = 0; i < list->count; i++)
        free(list->names[i]);
    free(list->names);
    *list = (struct source_class_list){0};
}

int source_classes_read(const char *file, struct source_class_list *list, struct error *e)
{
    char *text, *rest, *line;
    size_t bytes;

    int rc = file_read(file, CLASSES_FILE_LIMIT_BYTES, &text, &bytes, e);
    if (rc)
        return rc;
    list->names = calloc(bytes / 2 + 1, sizeof *list->names);
    for (line = strtok_r(text, "\r\n", &rest); line && list->names;
         line = strtok_r(NULL, "\r\n", &rest))
        list->names[list->count++] = strdup(line);
    free(text);
    if (!list->names)
        return error_set(e, ERR_NO_MEMORY, "no memory for the names of the classes");
    if (list->count == 0)
        return error_set(e, ERR_INVALID, "%s names no classes; expected one a line", file);
    return 0;
}
