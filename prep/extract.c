#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/system/file.h"
#include "prep/progress.h"
#include "prep/records.h"

/* A record's filename comes from others: only its last part is used, and only harmless characters
 * of it. */
static void extract_safe_name(const char *name, char out[128])
{
    const char *slash = strrchr(name, '/');
    size_t used = 0;

    for (name = slash ? slash + 1 : name; *name && used < 127; name++)
        out[used++] =
            strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-", *name)
                ? *name
                : '_';
    out[used] = '\0';
}

struct extraction {
    const struct extract_options *options;
    struct progress progress;
};

static int extract_print_file(int64_t i, const struct dataset_image *image, const char *path,
                              struct error *e)
{
    json_t *line =
        json_pack("{s:I, s:i, s:s, s:s, s:I}", "record", (json_int_t)i, "class", image->label,
                  "name", image->name, "path", path, "jpeg_bytes", (json_int_t)image->jpeg_bytes);
    return records_print(i, line, e);
}

static int extract_record(struct dataset *d, int64_t i, const struct dataset_image *image,
                          void *context, struct error *e)
{
    struct extraction *x = context;
    const char *folder = x->options->out;
    char path[PATH_MAX], name[128];
    (void)d;

    extract_safe_name(image->name[0] ? image->name : "image.jpg", name);
    if ((size_t)snprintf(path, sizeof path, "%s/%09" PRId64 "-%s", folder, i, name) >= sizeof path)
        return error_set(e, ERR_INVALID, "the path %s is too long", folder);
    if (access(path, F_OK) == 0)
        return error_set(e, ERR_CONFLICT, "%s exists already", path);
    int rc = file_write_atomic(path, image->jpeg, image->jpeg_bytes, e);
    if (rc == 0 && x->options->json)
        rc = extract_print_file(i, image, path, e);
    progress_add(&x->progress, 1, (int64_t)image->jpeg_bytes);
    return rc;
}

int extract(const struct extract_options *o, struct error *e)
{
    struct extraction x = {.options = o};
    struct dataset *d;
    int64_t end, taken = 0;

    int rc = records_open(o->dir, &o->choice, &d, &end, e);
    if (rc)
        return rc;
    int64_t most = end - o->choice.first;
    rc = file_make_dirs(o->out, e);
    progress_begin(&x.progress, "extract",
                   o->choice.limit && o->choice.limit < most ? o->choice.limit : most, 0);
    if (rc == 0)
        rc = records_visit(d, &o->choice, end, extract_record, &x, &taken, e);
    progress_end(&x.progress);
    dataset_close(d);
    if (rc == 0 && !o->json)
        printf("%s: %" PRId64 " images\n", o->out, taken);
    return rc;
}
