#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/file.h"
#include "prep/prep.h"
#include "prep/progress.h"

/* A record's filename comes from others: only its last part is used, and only harmless characters
 * of it. */
static void safe_name(const char *name, char out[128])
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

static int extract_record(struct dataset *d, int64_t i, const char *folder, struct error *e)
{
    char path[PATH_MAX], name[128];
    struct dataset_image image;

    int rc = dataset_read(d, i, &image, e);
    if (rc)
        return rc;
    safe_name(image.name[0] ? image.name : "image.jpg", name);
    if ((size_t)snprintf(path, sizeof path, "%s/%09" PRId64 "-%s", folder, i, name) >= sizeof path)
        rc = error_set(e, ERR_INVALID, "the path %s is too long", folder);
    else if (access(path, F_OK) == 0)
        rc = error_set(e, ERR_CONFLICT, "%s exists already", path);
    else
        rc = file_write_atomic(path, image.jpeg, image.jpeg_bytes, e);
    dataset_image_release(&image);
    return rc;
}

int extract(const struct extract_options *o, struct error *e)
{
    struct progress progress;
    struct dataset *d;

    int rc = dataset_open(o->dir, o->role, &d, e);
    if (rc)
        return rc;
    int64_t count = dataset_images(d);
    if (o->limit && o->limit < count)
        count = o->limit;
    rc = file_make_dirs(o->out, e);
    progress_begin(&progress, "extract", count, 0);
    for (int64_t i = 0; i < count && rc == 0; i++) {
        if (prep_interrupted)
            rc = error_set(e, ERR_INTERRUPTED, "interrupted after %" PRId64 " images", i);
        else
            rc = extract_record(d, i, o->out, e);
        progress_add(&progress, 1, (int64_t)dataset_entry(d, i)->bytes);
    }
    progress_end(&progress);
    dataset_close(d);
    if (rc == 0)
        printf("%s: %" PRId64 " images\n", o->out, count);
    return rc;
}
