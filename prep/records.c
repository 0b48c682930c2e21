#include "prep/records.h"

#include <inttypes.h>
#include <stdio.h>

#include "prep/progress.h"

int records_open(const char *dir, const struct record_choice *choice, struct dataset **out,
                 int64_t *end, struct error *e)
{
    int rc = dataset_open(dir, choice->role, out, e);

    if (rc)
        return rc;
    progress_warn(dataset_remarks(*out));
    int64_t count = dataset_images(*out), last = choice->to_end ? count - 1 : choice->last;
    *end = last + 1;
    if (choice->first < count && last < count)
        return 0;
    dataset_close(*out);
    *out = NULL;
    return error_set(e, ERR_NOT_FOUND,
                     "there is no record %" PRId64 ": %s holds the records 0 to %" PRId64,
                     choice->first < count ? last : choice->first, dir, count - 1);
}

int records_visit(struct dataset *d, const struct record_choice *choice, int64_t end,
                  record_taker *take, void *context, int64_t *taken, struct error *e)
{
    struct dataset_image image;
    int rc = 0;

    *taken = 0;
    for (int64_t i = choice->first; i < end && rc == 0; i++) {
        if (choice->limit && *taken == choice->limit)
            return 0;
        if (prep_interrupted)
            return error_set(e, ERR_INTERRUPTED, "interrupted after %" PRId64 " images", *taken);
        rc = dataset_read(d, i, &image, e);
        if (rc)
            return rc;
        if (choice->any_class || image.label == choice->class) {
            rc = take(d, i, &image, context, e);
            ++*taken;
        }
        dataset_image_release(&image);
    }
    if (rc == 0 && *taken == 0)
        rc = error_set(e, ERR_NOT_FOUND,
                       "none of the records %" PRId64 " to %" PRId64
                       " is of class %d (counted from 0)",
                       choice->first, end - 1, choice->class);
    return rc;
}

int records_print(int64_t i, json_t *line, struct error *e)
{
    if (!line)
        return error_set(e, ERR_CORRUPT, "record %" PRId64 " holds a name that is not UTF-8", i);
    json_dumpf(line, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(line);
    return 0;
}
