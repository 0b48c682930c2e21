#include "prep/source/source.h"

#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/system/content.h"
#include "common/system/file.h"
#include "common/xalloc.h"

#define CLASSES_FILE_LIMIT_BYTES (1 << 20)

static const struct source_kind *const kinds[] = {&source_imagenet, &source_folder, &source_idx,
                                                  &source_cifar};

static int source_create(const struct source_kind *kind, const char *path,
                         const struct source_options *options, struct source **out, struct error *e)
{
    struct source *s = xcalloc(1, kind->bytes);

    s->kind = kind;
    int status = kind->open(s, path, options, e);
    if (status)
        source_destroy(s);
    else
        *out = s;
    return status;
}

int source_open(const char *kind, const char *path, const struct source_options *options,
                struct source **out, struct error *e)
{
    *out = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kind, kinds[i]->name) == 0)
            return source_create(kinds[i], path, options, out, e);
    return error_set(e, ERR_USAGE, "unknown --from %s: expected imagenet, folder, idx or cifar",
                     kind);
}

static void source_free_names(char **names, int count)
{
    for (int i = 0; names && i < count; i++)
        free(names[i]);
    free(names);
}

void source_destroy(struct source *s)
{
    if (!s)
        return;
    s->kind->close(s);
    source_free_names(s->classes.names, s->classes.count);
    source_free_names(s->classes.texts, s->classes.count);
    free(s);
}

void source_image_release(struct source_image *x)
{
    free(x->owned);
    x->owned = NULL;
    x->file = x->pixels = NULL;
}

int source_pad(uint8_t **pixels, int64_t n, int height, int width, int channels, int pad,
               struct error *e)
{
    size_t row = (size_t)(width * channels), wide = (size_t)((width + 2 * pad) * channels);
    size_t rows = (size_t)height, tall = (size_t)(height + 2 * pad);

    if (!*pixels || pad == 0)
        return 0;
    uint8_t *padded = calloc((size_t)n, tall * wide);
    if (!padded)
        return error_set(e, ERR_NO_MEMORY, "no memory for %lld padded images", (long long)n);
    for (size_t i = 0; i < (size_t)n; i++)
        for (size_t y = 0; y < rows; y++)
            memcpy(padded + (i * tall + (size_t)pad + y) * wide + (size_t)(pad * channels),
                   *pixels + (i * rows + y) * row, row);
    free(*pixels);
    *pixels = padded;
    return 0;
}

int source_classes_find(const struct source_class_list *list, const char *name)
{
    for (int i = 0; i < list->count; i++)
        if (strcmp(list->names[i], name) == 0)
            return i;
    return -1;
}

void source_classes_add(struct source_class_list *list, const char *name, size_t bytes)
{
    list->names = must_alloc(
        array_grow(list->names, (size_t)list->count, &list->capacity, sizeof *list->names));
    list->names[list->count++] = xstrndup(name, bytes);
}

int source_classes_split(char *text, struct source_class_list *list, struct error *e)
{
    size_t bytes = strlen(text);
    char *rest, *line;
    int status = content_drop_mark(text, &bytes, e);

    if (status)
        return status;
    for (line = strtok_r(text, "\r\n", &rest); line; line = strtok_r(NULL, "\r\n", &rest))
        source_classes_add(list, line, strlen(line));
    return 0;
}

int source_classes_read(const char *file, struct source_class_list *list, struct error *e)
{
    char *text;
    size_t bytes;

    int rc = file_read(file, CLASSES_FILE_LIMIT_BYTES, &text, &bytes, e);
    if (rc)
        return rc;
    rc = source_classes_split(text, list, e);
    free(text);
    if (rc)
        return error_prefix(e, "%s", file);
    if (list->count == 0)
        rc = error_set(e, ERR_INVALID, "%s contains no class names; expected one per line", file);
    return rc;
}
