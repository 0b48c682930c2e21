#include <stdlib.h>
#include <string.h>

#include "common/dataset/class_names.h"
#include "common/dataset/dataset.h"
#include "common/json.h"
#include "daemon/http/routes.h"
#include "daemon/store/confusion.h"
#include "daemon/store/job_row.h"

#define IMAGE_BYTES_MAX ((size_t)32 << 20) /* of an answer that shows an image on a page */

/* Gets the job, and the step of the request or the newest one. */
static int confusion_find(const struct request *q, struct store_job *job, int64_t *step,
                          struct error *e)
{
    if (request_query_int(q, "step", 0, INT64_MAX, -1, step, e) ||
        store_job_get(q->app->store, q->id, job, e))
        return -(int)e->code;
    int status = store_confusion_step(q->app->store, q->id, step, e);
    if (status)
        store_job_clear(job);
    return status;
}

/* Returns the names of the classes, of the data as they are now; NULL: unknown. */
static json_t *confusion_names(const struct store_job *job)
{
    struct job_classes classes;
    const char *key;
    struct error ignored;
    const struct job_spec *spec = store_job_document(job, &ignored);

    if (!spec)
        return NULL;
    job_classes_compare(spec, (struct dataset_part){0, 1}, NULL, false, &classes, &key, &ignored);
    json_t *names = json_incref(classes.eval.list ? classes.eval.list : classes.train.list);
    job_classes_clear(&classes);
    if (json_array_size(names) != (size_t)spec->model.classes)
        names = (json_decref(names), NULL);
    return names;
}

int handle_confusion(const struct request *q, struct reply *r, struct error *e)
{
    struct store_job job;
    int64_t step, limit;
    bool csv;

    if (request_query_csv(q, &csv, e) || request_query_int(q, "limit", 1, 100000, 20, &limit, e) ||
        confusion_find(q, &job, &step, e))
        return -(int)e->code;
    json_t *names = confusion_names(&job);
    char *list = names ? json_dumps(names, JSON_COMPACT) : NULL, *text = NULL;
    store_job_clear(&job);
    json_decref(names);
    int status = store_confusion_text(q->app->store, q->id, step, csv, limit, list, &text, e);
    if (!status)
        status = reply_text(r, 200, csv ? "text/csv; charset=utf-8" : "application/json",
                            text ? text : "", text ? strlen(text) : 0, e);
    free(list);
    free(text);
    return status;
}

/* The path is the job's, read beneath data_roots as at its submission; a request names only one of
 * the images that are stored for the evaluation. */
static int confusion_read_image(const struct job_spec *spec, int64_t expected, int64_t number,
                                int64_t label, struct reply *r, struct error *e)
{
    struct dataset *data = NULL;
    struct dataset_image image = {0};

    if (!spec->data.eval || job_spec_is_synthetic(spec->data.eval))
        return error_set(e, ERR_NOT_FOUND, "the images of data.eval are random: none is stored");
    int status = dataset_open(spec->data.eval, DATASET_EVAL, &data, e);
    bool same = !status && dataset_images(data) == expected && number < expected;
    if (same)
        status = dataset_read(data, number, &image, e);
    if (!status && (!same || image.label != label))
        status = error_set(e, ERR_CONFLICT,
                           "%s has changed since the evaluation, so it is unknown which image was "
                           "meant",
                           spec->data.eval);
    else if (!status && image.jpeg_bytes > IMAGE_BYTES_MAX)
        status = error_set(e, ERR_TOO_LARGE, "the image has %zu bytes, more than are sent",
                           image.jpeg_bytes);
    else if (!status)
        status =
            reply_text(r, 200, image.jpeg_bytes && *image.jpeg == 0x89 ? "image/png" : "image/jpeg",
                       image.jpeg, image.jpeg_bytes, e);
    dataset_image_release(&image);
    dataset_close(data);
    return status;
}

int handle_confusion_image(const struct request *q, struct reply *r, struct error *e)
{
    struct store_job job;
    int64_t step, label, predicted, number, image;

    if (request_query_int(q, "label", 0, INT32_MAX, -1, &label, e) ||
        request_query_int(q, "predicted", 0, INT32_MAX, -1, &predicted, e) ||
        request_query_int(q, "number", 0, INT32_MAX, 0, &number, e) ||
        confusion_find(q, &job, &step, e))
        return -(int)e->code;
    const struct job_spec *spec = store_job_document(&job, e);
    int status = spec ? store_confusion_example(q->app->store, q->id, step, &label, predicted,
                                                number, &image, e)
                      : -(int)e->code;
    if (!status)
        status = confusion_read_image(
            spec, json_get_integer(store_job_plan(&job), "eval_images", 0), image, label, r, e);
    store_job_clear(&job);
    return status;
}
