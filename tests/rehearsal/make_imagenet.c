/*
 * make_imagenet DIR: what is downloaded of ImageNet (ILSVRC2012), with other pictures in it: 1,000
 * classes in a tar of tars, 1,281,167 training images, 732 to 1,300 a class, and 50,000 for
 * validation with their labels. A rehearsal of all that is done with ImageNet's files needs no
 * ImageNet then. --scale 100 makes a hundredth of it. The same command goes on where it ended.
 */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>
#include <png.h>

#include "common/dataset/file_list.h"
#include "common/json.h"
#include "common/rng.h"
#include "common/system/command_line.h"
#include "common/system/file.h"
#include "prep/work.h"
#include "prep/prep.h"
#include "prep/write/encode.h"
#include "tests/rehearsal/draw.h"
#include "tests/rehearsal/tar_units.h"

#define FONT               "/usr/share/fonts/truetype/vlgothic/VL-Gothic-Regular.ttf"
#define TRAIN_IMAGES       1281167
#define VALIDATION_IMAGES  50000
#define CLASS_IMAGES_MOST  1300
#define CLASS_IMAGES_LEAST 732
#define FULL_CLASSES       895 /* with the most images */
#define UNIT_IMAGES        100 /* of the validation set */
#define UNIT_BYTES_MAX     ((size_t)1 << 30)
#define DESCRIPTION        "rehearsal.json"

volatile int prep_interrupted;

struct options {
    const char *dir, *font;
    int64_t seed;
    int scale, side, threads;
};

struct set {
    const struct options *options;
    enum dataset_role role;
    int64_t units;
    int64_t first[DRAW_CLASSES + 1]; /* training: the number of images before each class */
    int64_t images;                  /* of all units */
    struct rng_permutation order;    /* validation: of the classes */
    struct tar_units tar;
    int64_t begun; /* units that an earlier run has made */
    struct progress progress;
};

/* Of one thread. */
struct maker {
    struct artist *artist;
    struct encoder *encoder;
    struct buffer inner, unit;
    uint8_t *png;
};

/* ---- how many images */

/* As ImageNet's as far as is published: most classes have 1,300, the others from 732 up, and the
 * sum is right. Those others are spread over the classes. */
static int64_t class_images(int class)
{
    int others = DRAW_CLASSES - FULL_CLASSES;
    int place = class * others / DRAW_CLASSES;

    if (place == (class + 1) * others / DRAW_CLASSES)
        return CLASS_IMAGES_MOST;
    int64_t sum = TRAIN_IMAGES - (int64_t)FULL_CLASSES * CLASS_IMAGES_MOST;
    double most = CLASS_IMAGES_MOST - 1 - CLASS_IMAGES_LEAST;
    /* The mean of x to the power of p, x from 0 to 1, is 1 / (p + 1). */
    double mean = (double)sum / others - CLASS_IMAGES_LEAST, p = most / mean - 1;
    return CLASS_IMAGES_LEAST + (int64_t)(most * pow((double)place / (others - 1), p));
}

/* The number of images before each class. What rounding took from the sum, the second of the
 * smaller classes gets. */
static void count_images(int64_t first[DRAW_CLASSES + 1], int scale)
{
    int64_t missing = TRAIN_IMAGES, before = 0;
    int smaller = 0;

    for (int c = 0; c < DRAW_CLASSES; c++)
        missing -= class_images(c);
    for (int c = 0; c <= DRAW_CLASSES; c++) {
        first[c] = (before + scale / 2) / scale;
        int64_t images = class_images(c);
        smaller += images < CLASS_IMAGES_MOST;
        before += images + (images < CLASS_IMAGES_MOST && smaller == 2 ? missing : 0);
    }
}

static int64_t unit_images(void *context, int64_t k)
{
    const struct set *s = context;

    if (s->role == DATASET_TRAIN)
        return s->first[k + 1] - s->first[k];
    int64_t left = s->images - k * UNIT_IMAGES;
    return left < UNIT_IMAGES ? left : UNIT_IMAGES;
}

/* A class's tar is one member, a unit of the validation set has one for each image. */
static int64_t unit_members(void *context, int64_t k)
{
    const struct set *s = context;
    return s->role == DATASET_TRAIN ? 1 : unit_images(context, k);
}

static int validation_class(const struct set *s, int64_t i)
{
    return (int)(rng_permutation_at(&s->order, i) * DRAW_CLASSES / s->images);
}

static void set_begin(struct set *s, const struct options *o, enum dataset_role role)
{
    *s = (struct set){.options = o, .role = role};
    if (role == DATASET_TRAIN) {
        count_images(s->first, o->scale);
        s->units = DRAW_CLASSES;
        s->images = s->first[DRAW_CLASSES];
        return;
    }
    s->images = VALIDATION_IMAGES / o->scale;
    s->units = (s->images + UNIT_IMAGES - 1) / UNIT_IMAGES;
    s->order = rng_permutation(s->images, rng_stream(o->seed, 0, 0, RNG_SHUFFLE));
}

/* ---- an image */

static void synset_name(int class, char name[16])
{
    snprintf(name, 16, "n%08d", 1440764 + 37 * class);
}

/* One of ImageNet's training images is a PNG by the name of a JPEG. */
static int encode_png(struct maker *m, const struct drawing *d, const uint8_t **data, size_t *bytes,
                      struct error *e)
{
    png_image png = {.version = PNG_IMAGE_VERSION,
                     .width = (png_uint_32)d->width,
                     .height = (png_uint_32)d->height,
                     .format = d->channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY};
    png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png);

    free(m->png);
    m->png = malloc(size);
    if (!m->png || !png_image_write_to_memory(&png, m->png, &size, 0, d->pixels, 0, NULL))
        return error_set(e, ERR_NO_MEMORY, "cannot encode a PNG: %s", png.message);
    *data = m->png;
    *bytes = size;
    return 0;
}

static int put_image(struct set *s, struct maker *m, struct archive *tar, int class, int64_t i,
                     const char *name, struct error *e)
{
    const struct options *o = s->options;
    const uint8_t *data = NULL;
    struct drawing d;
    size_t bytes = 0;

    if (prep_interrupted)
        return error_set(e, ERR_INTERRUPTED, "interrupted");
    int rc = artist_draw(m->artist, o->seed, s->role, class, i, o->side, &d, e);
    if (rc == 0 && s->role == DATASET_TRAIN && class == 0 && i == 1)
        rc = encode_png(m, &d, &data, &bytes, e);
    else if (rc == 0)
        rc = encode(m->encoder, d.pixels, d.width, d.height, d.channels, d.quality, &data, &bytes,
                    e);
    if (rc == 0)
        rc = tar_add(tar, name, data, bytes, e);
    progress_add(&s->progress, 1, (int64_t)bytes);
    return rc;
}

/* ---- a unit, by any thread */

static int make_class(struct set *s, struct maker *m, struct archive *tar, int class,
                      struct error *e)
{
    char synset[16], name[64];
    int64_t images = unit_images(s, class);
    int rc = 0;

    synset_name(class, synset);
    for (int64_t i = 0; i < images && rc == 0; i++) {
        snprintf(name, sizeof name, "%s_%" PRId64 ".JPEG", synset, i + 1);
        rc = put_image(s, m, tar, class, i, name, e);
    }
    return rc;
}

static int make_validation(struct set *s, struct maker *m, struct archive *tar, int64_t k,
                           struct error *e)
{
    char name[64];
    int rc = 0;

    for (int64_t i = k * UNIT_IMAGES, end = i + unit_images(s, k); i < end && rc == 0; i++) {
        snprintf(name, sizeof name, "ILSVRC2012_val_%08" PRId64 ".JPEG", i + 1);
        rc = put_image(s, m, tar, validation_class(s, i), i, name, e);
    }
    return rc;
}

/* The class's tar, as a member of the training tar. */
static int wrap_class(struct maker *m, int class, struct error *e)
{
    struct archive *tar = tar_begin(&m->unit);
    char name[32];

    if (!tar)
        return error_set(e, ERR_NO_MEMORY, "no memory for a tar");
    synset_name(class, name);
    strcat(name, ".tar");
    int rc = tar_add(tar, name, m->inner.data, m->inner.bytes, e);
    int ended = tar_end(tar, &m->unit, false, rc ? NULL : e);
    return rc ? rc : ended;
}

static int make_unit(void *context, void *scratch, int64_t number, struct error *e)
{
    struct set *s = context;
    struct maker *m = scratch;
    int64_t k = s->begun + number;
    bool train = s->role == DATASET_TRAIN;

    m->inner.bytes = m->unit.bytes = 0;
    struct buffer *out = train ? &m->inner : &m->unit;
    struct archive *tar = tar_begin(out);
    int rc = tar ? 0 : error_set(e, ERR_NO_MEMORY, "no memory for a tar");
    if (rc == 0)
        rc = train ? make_class(s, m, tar, (int)k, e) : make_validation(s, m, tar, k, e);
    if (tar) {
        int ended = tar_end(tar, out, train, rc ? NULL : e);
        rc = rc ? rc : ended;
    }
    if (rc == 0 && train)
        rc = wrap_class(m, (int)k, e);
    if (rc == 0)
        rc = tar_units_put(&s->tar, k, &m->unit, e);
    else
        tar_units_fail(&s->tar);
    return rc;
}

static void maker_end(void *scratch)
{
    struct maker *m = scratch;

    if (!m)
        return;
    artist_destroy(m->artist);
    encoder_destroy(m->encoder);
    buffer_clear(&m->inner);
    buffer_clear(&m->unit);
    free(m->png);
    free(m);
}

static int maker_begin(void *context, void **scratch, struct error *e)
{
    struct set *s = context;
    struct maker *m = calloc(1, sizeof *m);

    *scratch = m;
    int rc = m ? 0 : error_set(e, ERR_NO_MEMORY, "no memory to draw");
    if (m) {
        m->inner = m->unit = BUFFER(UNIT_BYTES_MAX);
        rc = artist_create(s->options->font, &m->artist, e);
    }
    if (rc == 0)
        rc = encoder_create(&m->encoder, e);
    if (rc)
        tar_units_fail(&s->tar);
    return rc;
}

/* ---- the files */

static int make_tar(struct set *s, const char *name, struct error *e)
{
    static const struct parallel_work work = {maker_begin, make_unit, maker_end};
    char path[PATH_MAX];
    int64_t done = 0;

    snprintf(path, sizeof path, "%.3900s/%s", s->options->dir, name);
    int rc = tar_units_open(&s->tar, path, s->units, unit_members, s, e);
    if (rc)
        return rc;
    s->begun = s->tar.next;
    for (int64_t k = 0; k < s->begun; k++)
        done += unit_images(s, k);
    if (done)
        fprintf(stderr, "make_imagenet: %" PRId64 " of %" PRId64 " images of %s are there\n", done,
                s->images, name);
    progress_begin(&s->progress, s->role == DATASET_TRAIN ? "train" : "validate", s->images - done,
                   0);
    rc = parallel_run(s->options->threads, s->units - s->begun, &work, s, e);
    double seconds = progress_seconds(&s->progress);
    progress_end(&s->progress);
    struct error closing;
    int closed = tar_units_close(&s->tar, rc ? &closing : e);
    if (rc == 0 && closed == 0)
        printf("{\"file\": \"%s\", \"images\": %" PRId64 ", \"made\": %" PRId64
               ", \"made_bytes\": %" PRId64 ", \"seconds\": %.3f}\n",
               name, s->images, s->progress.images, s->progress.bytes, seconds);
    return rc ? rc : closed;
}

static int make_labels(const struct set *s, struct error *e)
{
    struct buffer text = BUFFER((size_t)VALIDATION_IMAGES * 16);
    char path[PATH_MAX], synset[16];

    for (int64_t i = 0; i < s->images; i++) {
        synset_name(validation_class(s, i), synset);
        buffer_printf(&text, "%s\n", synset);
    }
    snprintf(path, sizeof path, "%.3900s/imagenet_2012_validation_synset_labels.txt",
             s->options->dir);
    int rc = text.failed ? error_set(e, ERR_NO_MEMORY, "no memory for the labels")
                         : file_write_atomic(path, text.data, text.bytes, e);
    buffer_clear(&text);
    return rc;
}

static int check_font(const struct options *o, struct stat *font, struct error *e)
{
    if (stat(o->font, font) == 0)
        return 0;
    return error_set(e, ERR_NOT_FOUND,
                     "there is no font %s: name one with --font, or install Debian's "
                     "fonts-vlgothic",
                     o->font);
}

/* What is there may go on only as it began. */
static int check_description(const struct options *o, const struct stat *font, struct error *e)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%.3900s/" DESCRIPTION, o->dir);
    json_t *mine = json_pack("{s:i, s:i, s:I, s:s, s:I}", "scale", o->scale, "side", o->side,
                             "seed", (json_int_t)o->seed, "font", file_base_name(o->font),
                             "font_bytes", (json_int_t)font->st_size);
    json_t *there = json_load_file(path, 0, NULL);
    int rc = 0;
    if (!there)
        rc = json_file_write(path, mine, e);
    else if (!json_equal(mine, there))
        rc = error_set(e, ERR_CONFLICT,
                       "%s was made with other options, which %s tells: use those, or another "
                       "folder",
                       o->dir, path);
    json_decref(there);
    json_decref(mine);
    return rc;
}

static int make_all(const struct options *o, struct error *e)
{
    struct set set;
    struct stat font;

    int rc = check_font(o, &font, e);
    if (rc == 0)
        rc = file_make_dirs(o->dir, e);
    if (rc == 0)
        rc = check_description(o, &font, e);
    if (rc)
        return rc;
    set_begin(&set, o, DATASET_EVAL);
    rc = make_labels(&set, e);
    if (rc == 0)
        rc = make_tar(&set, "ILSVRC2012_img_val.tar", e);
    if (rc)
        return rc;
    set_begin(&set, o, DATASET_TRAIN);
    return make_tar(&set, "ILSVRC2012_img_train.tar", e);
}

/* ---- the command line */

#define AT(field) offsetof(struct options, field)

/* clang-format off */
static const struct command_option table[] = {
    {.name = "scale", .value = "N", .kind = OPTION_INT, .offset = AT(scale), .min = 1, .max = 700,
     .help = "an Nth of the images of each class (default: 1, all 1,281,167 + 50,000)"},
    {.name = "side", .value = "N", .kind = OPTION_INT, .offset = AT(side), .min = 16, .max = 2000,
     .help = "short side of the average picture, pixels (default: 96)"},
    {.name = "seed", .value = "S", .kind = OPTION_INT64, .offset = AT(seed), .max = INT64_MAX,
     .help = "seed of all pictures (default: 1)"},
    {.name = "font", .value = "FILE", .kind = OPTION_TEXT, .offset = AT(font),
     .help = "with at least 1,000 Chinese characters (default: " FONT ")"},
    {.name = "threads", .value = "N", .kind = OPTION_INT, .offset = AT(threads), .min = 1, .max = PARALLEL_THREADS_MAX,
     .help = "(default: one per core)"},
    {0},
};
/* clang-format on */

static void stop(int number)
{
    (void)number;
    prep_interrupted = 1;
}

int main(int argc, char **argv)
{
    static const struct command_line line = {
        .program = "make_imagenet",
        .usage = "Usage: make_imagenet [OPTION...] DIR",
        .options = table,
        .operand = "DIR",
        .operand_offset = AT(dir),
        .doc = "Makes tar files like those of ImageNet (ILSVRC2012), with pictures of 1,000 "
               "characters. What an earlier run has finished in DIR is kept.",
    };
    struct options o = {
        .font = FONT, .seed = 1, .scale = 1, .side = 96, .threads = parallel_default_threads()};
    struct sigaction action = {.sa_handler = stop, .sa_flags = SA_RESETHAND};
    struct error e;

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    int rc = command_line_read(&line, argc, argv, &o);
    if (rc >= 0)
        return rc;
    rc = make_all(&o, &e);
    if (rc == 0)
        return 0;
    fprintf(stderr, "make_imagenet: %s\n", e.text);
    return error_type(e.code)->exit_code;
}
