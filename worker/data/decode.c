#include "worker/data/decode.h"

#include <inttypes.h>
#include <stdlib.h>

#include "worker/kernels/bf16.h"

int decode_scratch_init(struct decode_scratch *s, const struct loader_config *c, struct error *e)
{
    *s = (struct decode_scratch){0};
    size_t floats = loader_image_floats(c);

    if (c->augment && distort_changes_pixels(&c->distort) && !(s->pixels = malloc(2 * floats)))
        return error_set(e, ERR_NO_MEMORY, "no memory for an image of %zu numbers", floats);
    if (c->bf16 && !(s->image = malloc(loader_image_floats(c) * sizeof *s->image)))
        return error_set(e, ERR_NO_MEMORY, "no memory for an image of %zu numbers",
                         loader_image_floats(c));
    int rc = jpeg_decoder_create(&s->decoder, e);
    if (rc)
        decode_scratch_free(s);
    return rc;
}

void decode_scratch_free(struct decode_scratch *s)
{
    jpeg_decoder_destroy(s->decoder);
    png_decoder_free(&s->png);
    augmenter_free(&s->augmenter);
    free(s->image);
    free(s->pixels);
    s->image = NULL;
    s->pixels = NULL;
}

static int decode_name_place(const struct dataset *d, int64_t index, const char *name,
                             struct error *e)
{
    const struct dataset_entry *entry = dataset_entry(d, index);
    const char *file = dataset_file(d, entry->file);

    if (dataset_format(d) == DATASET_FOLDER)
        return error_prefix(e, "%s", file);
    return error_prefix(e, "%s, record at byte %" PRIu64 " (%s)", file, entry->offset, name);
}

static int decode_check_label(const struct loader_config *c, const struct dataset_image *image,
                              struct error *e)
{
    if (image->label >= 0 && image->label < c->classes)
        return 0;
    if (dataset_format(c->dataset) == DATASET_FOLDER)
        return error_set(e, ERR_INVALID, "its class number is %d, but model.classes is %d",
                         image->label, c->classes);
    return error_set(
        e, ERR_INVALID,
        "the label is %d, stored as %d; with %d classes it should be 1 to %d as stored",
        image->label, image->label + 1, c->classes, c->classes);
}

/* Whether the image is mirrored: in the first epoch as with "random", then in every second one. */
static bool decode_alternates(const struct loader_config *c, int64_t epoch, int64_t number)
{
    struct rng r = rng_stream(c->seed, 0, number, RNG_AUGMENT);

    return augment_draw_flip(&r) ^ (epoch & 1);
}

static void decode_plan_image(const struct loader_config *c, int size, int64_t epoch, int64_t index,
                              const struct jpeg_info *info, struct augment_plan *plan)
{
    struct augment_parts parts = {c->random_crop, c->random_flip};

    if (c->role == DATASET_TRAIN && c->augment) {
        int64_t number = c->first_number + index;
        struct rng r = rng_stream(c->seed, epoch, number, RNG_AUGMENT);
        augment_plan_train(c->preprocess, parts, info->width, info->height, size, &r, plan);
        if (c->random_flip && c->flip == JOB_FLIP_ALTERNATING)
            plan->flip = decode_alternates(c, epoch, number);
    } else {
        augment_plan_eval(c->preprocess, info->width, info->height, size, c->resize, plan);
    }
}

/* Values from 0 to 255 become the network's input. */
static void decode_distort(struct decode_scratch *s, const struct loader_config *c, int size,
                           struct rng *r, float *out)
{
    int channels = loader_channels(c);
    size_t count = loader_floats_of(c, size);

    for (size_t i = 0; i < count; i++)
        s->pixels[i] = (uint8_t)out[i];
    distort_pixels(&c->distort, r, s->pixels, size, channels, s->pixels + count);
    augment_normalize(c->preprocess, s->pixels, count, channels, out);
}

/* Files in class folders may have any supported format; shards contain JPEGs. */
static int decode_pixels(struct decode_scratch *s, const struct loader_config *c, int size,
                         int64_t epoch, int64_t index, const struct dataset_image *image,
                         float *out, struct error *e)
{
    struct jpeg_info info;
    struct jpeg_rectangle part;
    struct jpeg_pixels pixels;
    struct augment_plan plan;
    bool png =
        dataset_format(c->dataset) == DATASET_FOLDER && png_is(image->jpeg, image->jpeg_bytes);
    int rc = png ? png_header(image->jpeg, image->jpeg_bytes, &info, e)
                 : jpeg_open(s->decoder, image->jpeg, image->jpeg_bytes, &info, e);

    if (rc)
        return rc;
    decode_plan_image(c, size, epoch, index, &info, &plan);
    bool trains = c->role == DATASET_TRAIN && c->augment;
    plan.never_halved = png;
    plan.bytes = trains && distort_changes_pixels(&c->distort);
    rc = augment_prepare(&s->augmenter, c->preprocess, &plan, size, &part, e);
    if (png)
        part = (struct jpeg_rectangle){0, 0, info.width, info.height, false, false};
    part.grey = c->channels == 1;
    if (rc == 0)
        rc =
            png ? png_decode(&s->png, image->jpeg, image->jpeg_bytes, part.grey ? 1 : 4, &pixels, e)
                : jpeg_read(s->decoder, &part, &pixels, e);
    if (rc == 0)
        rc = augment_apply(&s->augmenter, c->preprocess, &plan, &pixels, &part, out, e);
    if (rc || !trains)
        return rc;
    struct rng r = rng_stream(c->seed, epoch, c->first_number + index, RNG_DISTORT);
    if (plan.bytes)
        decode_distort(s, c, size, &r, out);
    distort_erase(&c->distort, &r, out, size, loader_channels(c));
    return 0;
}

int decode_image(struct decode_scratch *s, const struct loader_config *c, int size, int64_t epoch,
                 int64_t index, void *out, int32_t *label, bool *bad, struct error *e)
{
    struct dataset_image image;

    *bad = false;
    int rc = dataset_read(c->dataset, index, &image, e);
    if (rc)
        return rc;
    *label = image.label;
    rc = decode_check_label(c, &image, e);
    if (rc == 0) {
        rc = decode_pixels(s, c, size, epoch, index, &image, c->bf16 ? s->image : out, e);
        *bad = rc && rc != -ERR_NO_MEMORY;
    }
    if (rc == 0 && c->bf16)
        bf16_from_floats(s->image, loader_floats_of(c, size), out);
    if (rc)
        decode_name_place(c->dataset, index, image.name, e);
    dataset_image_release(&image);
    return rc;
}
