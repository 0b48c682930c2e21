/* IDX files of the MNIST family, plain or compressed by gzip: train-images-idx3-ubyte,
 * train-labels-idx1-ubyte, and t10k-* for the validation. http://yann.lecun.com/exdb/mnist: a
 * big-endian u32 magic (0x00000803 for three dimensions of bytes, 0x00000801 for one), a u32 for
 * each dimension, then the bytes. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <xxhash.h>
#include <zlib.h>

#include "common/system/content.h"
#include "common/system/file.h"
#include "prep/source/source.h"

#define IDX_DIMENSION_MAX 65500       /* that of a JPEG */
#define IDX_BYTES_MAX     (8LL << 30) /* per file, uncompressed */
#define IDX_FIRST_BYTES   ((size_t)1 << 20)

struct idx {
    uint8_t *data;
    uint32_t dims[3];
};

struct idx_source {
    struct source base;
    struct idx pixels[2], labels[2]; /* indexed by role */
};

static const char *const stems[] = {[DATASET_TRAIN] = "train", [DATASET_EVAL] = "t10k"};

/* Distinguishes a short file from a damaged gzip stream. */
static int idx_read_bytes(gzFile file, const char *path, void *out, size_t bytes, struct error *e)
{
    for (size_t done = 0; done < bytes;) {
        size_t want = bytes - done < INT_MAX ? bytes - done : INT_MAX;
        int number, got = gzread(file, (char *)out + done, (unsigned)want);
        if (got > 0) {
            done += (size_t)got;
            continue;
        }
        const char *words = gzerror(file, &number);
        if (got < 0 && number == Z_ERRNO)
            return error_set_errno(e, errno, "cannot read %s", path);
        if (got < 0 && number != Z_BUF_ERROR)
            return error_set(e, ERR_CORRUPT, "%s is corrupt: %s", path, words);
        return error_set(e, ERR_CORRUPT, "%s is truncated: %zu more bytes were expected", path,
                         bytes - done);
    }
    return 0;
}

static uint32_t idx_big_endian(const uint8_t at[4])
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static int idx_read_header(gzFile file, const char *path, int dimensions, struct idx *idx,
                           size_t *bytes, struct error *e)
{
    uint8_t word[4];
    int rc = idx_read_bytes(file, path, word, 4, e);

    if (rc)
        return rc;
    if (idx_big_endian(word) != 0x800u + (unsigned)dimensions)
        return error_set(e, ERR_INVALID,
                         "%s is not an IDX file of %d dimensions of bytes: its magic number is "
                         "0x%08" PRIx32 ", expected 0x%08x",
                         path, dimensions, idx_big_endian(word), 0x800u + (unsigned)dimensions);
    uint64_t total = 1;
    for (int i = 0; i < 3; i++)
        idx->dims[i] = 1;
    for (int i = 0; i < dimensions; i++) {
        rc = idx_read_bytes(file, path, word, 4, e);
        if (rc)
            return rc;
        idx->dims[i] = idx_big_endian(word);
        if (idx->dims[i] == 0 || (i > 0 && idx->dims[i] > IDX_DIMENSION_MAX))
            return error_set(e, ERR_INVALID, "%s: dimension %d is %" PRIu32 "; expected 1 to %d",
                             path, i, idx->dims[i], i > 0 ? IDX_DIMENSION_MAX : INT_MAX);
        total *= idx->dims[i]; /* at most 2^32 x 65500 x 65500 < 2^64 */
    }
    if (total > IDX_BYTES_MAX)
        return error_set(e, ERR_TOO_LARGE, "%s says it holds %" PRIu64 " bytes; the limit is %lld",
                         path, total, IDX_BYTES_MAX);
    *bytes = total;
    return 0;
}

/* Allocates memory as data arrive, because a header may contain any number. */
static int idx_read_data(gzFile file, const char *path, struct idx *idx, size_t bytes,
                         struct error *e)
{
    for (size_t done = 0, capacity = IDX_FIRST_BYTES; done < bytes; capacity *= 2) {
        size_t to = capacity < bytes ? capacity : bytes;
        uint8_t *larger = realloc(idx->data, to);
        if (!larger)
            return error_set(e, ERR_NO_MEMORY, "no memory for the %zu bytes of %s", bytes, path);
        idx->data = larger;
        int rc = idx_read_bytes(file, path, larger + done, to - done, e);
        if (rc)
            return rc;
        done = to;
    }
    return 0;
}

static int idx_read_content(gzFile file, const char *path, int dimensions, struct idx *idx,
                            struct error *e)
{
    uint8_t extra;
    size_t bytes = 0;
    int rc = idx_read_header(file, path, dimensions, idx, &bytes, e);

    if (rc)
        return rc;
    rc = idx_read_data(file, path, idx, bytes, e);
    if (rc)
        return rc;
    /* Reading past the end makes zlib check the CRC. */
    int got = gzread(file, &extra, 1);
    if (got > 0)
        return error_set(e, ERR_INVALID, "%s is longer than its header specifies", path);
    if (got < 0)
        return error_set(e, ERR_CORRUPT, "%s is corrupt: %s", path, gzerror(file, &(int){0}));
    return 0;
}

/* Reports the type of a file that is not IDX, after decompression if it is compressed. */
static int idx_explain(gzFile file, const char *path, struct error *e)
{
    char head[CONTENT_HEAD_BYTES];
    int got = gzrewind(file) ? 0 : gzread(file, head, sizeof head);

    return got > 0 ? content_explain(path, head, (size_t)got, "an IDX file", e) : -(int)e->code;
}

/* Reads PATH/STEM-KIND, with or without .gz. Returns ERR_NOT_FOUND if neither exists. */
static int idx_load(const char *folder, const char *stem, const char *kind, int dimensions,
                    struct idx *idx, struct error *e)
{
    static const char *const endings[] = {".gz", ""};
    char path[PATH_MAX];
    gzFile file = NULL;

    for (int i = 0; i < 2 && !file; i++) {
        file_path(path, NULL, "%s/%s-%s%s", folder, stem, kind, endings[i]);
        errno = 0;
        file = gzopen(path, "rb");
        if (!file && errno != ENOENT)
            return error_set_errno(e, errno ? errno : ENOMEM, "cannot open %s", path);
    }
    if (!file)
        return error_set(e, ERR_NOT_FOUND, "there is no %s-%s[.gz] in %s", stem, kind, folder);
    gzbuffer(file, 1 << 17);
    int rc = idx_read_content(file, path, dimensions, idx, e);
    if (rc && !idx->data)
        rc = idx_explain(file, path, e);
    gzclose(file);
    return rc;
}

static int idx_read_role(struct idx_source *s, const char *folder, enum dataset_role role,
                         struct error *e)
{
    int rc = idx_load(folder, stems[role], "images-idx3-ubyte", 3, &s->pixels[role], e);
    if (rc == 0)
        rc = idx_load(folder, stems[role], "labels-idx1-ubyte", 1, &s->labels[role], e);
    if (rc)
        return rc;
    if (s->pixels[role].dims[0] != s->labels[role].dims[0])
        return error_set(e, ERR_INVALID,
                         "%s holds %" PRIu32 " %s images, but %" PRIu32 " labels for them", folder,
                         s->pixels[role].dims[0], stems[role], s->labels[role].dims[0]);
    s->base.images[role] = s->pixels[role].dims[0];
    return 0;
}

static int idx_pad_images(struct idx *pixels, int pad, struct error *e)
{
    int rc = source_pad(&pixels->data, pixels->dims[0], (int)pixels->dims[1], (int)pixels->dims[2],
                        1, pad, e);

    pixels->dims[1] += 2 * (uint32_t)pad;
    pixels->dims[2] += 2 * (uint32_t)pad;
    return rc;
}

static int idx_largest_label(const struct idx_source *s)
{
    int most = 0;
    for (int role = 0; role < 2; role++)
        for (int64_t i = 0; i < s->base.images[role]; i++)
            if (s->labels[role].data[i] > most)
                most = s->labels[role].data[i];
    return most;
}

static int idx_name_classes(struct idx_source *s, const char *classes_file, struct error *e)
{
    struct source_class_list *list = &s->base.classes;
    int most = idx_largest_label(s);

    if (classes_file) {
        int rc = source_classes_read(classes_file, list, e);
        if (rc == 0 && most >= list->count)
            rc = error_set(e, ERR_INVALID, "found label %d, but %s names only %d classes", most,
                           classes_file, list->count);
        return rc;
    }
    while (list->count <= most) {
        char name[16];
        source_classes_add(list, name, (size_t)snprintf(name, sizeof name, "%d", list->count));
    }
    return 0;
}

static int idx_read(struct source *base, enum dataset_role role, int64_t i, struct source_image *x,
                    struct error *e)
{
    struct idx_source *s = (struct idx_source *)base;
    const struct idx *pixels = &s->pixels[role];

    (void)e;
    x->height = (int)pixels->dims[1];
    x->width = (int)pixels->dims[2];
    x->channels = 1;
    x->pixels = pixels->data + (size_t)i * (size_t)x->width * (size_t)x->height;
    x->class = s->labels[role].data[i];
    snprintf(x->filename, sizeof x->filename, "%s-%06" PRId64 ".jpg", stems[role], i);
    snprintf(x->place, sizeof x->place, "%s image %" PRId64, stems[role], i);
    return 0;
}

static uint64_t idx_identify(const struct idx *idx, uint64_t hash)
{
    size_t bytes = (size_t)idx->dims[0] * idx->dims[1] * idx->dims[2];
    hash = XXH3_64bits_withSeed(idx->dims, sizeof idx->dims, hash);
    return idx->data ? XXH3_64bits_withSeed(idx->data, bytes, hash) : hash;
}

static void idx_close(struct source *base)
{
    struct idx_source *s = (struct idx_source *)base;
    for (int role = 0; role < 2; role++) {
        free(s->pixels[role].data);
        free(s->labels[role].data);
    }
}

static int idx_open(struct source *base, const char *path, const struct source_options *options,
                    struct error *e)
{
    struct idx_source *s = (struct idx_source *)base;
    int rc = access(path, F_OK) ? error_set_errno(e, errno, "cannot open %s", path)
                                : idx_read_role(s, path, DATASET_TRAIN, e);
    if (rc == 0) {
        rc = idx_read_role(s, path, DATASET_EVAL, e);
        /* The validation images and labels may be missing, but only both. */
        if (rc == -ERR_NOT_FOUND && !s->pixels[DATASET_EVAL].data)
            rc = 0;
    }
    if (rc == 0)
        rc = idx_name_classes(s, options->classes_file, e);
    for (int role = 0; role < 2 && rc == 0 && options->pad > 0; role++)
        rc = idx_pad_images(&s->pixels[role], options->pad, e);
    for (int role = 0; role < 2 && rc == 0; role++)
        base->identity =
            idx_identify(&s->labels[role], idx_identify(&s->pixels[role], base->identity));
    return rc;
}

const struct source_kind source_idx = {"idx", sizeof(struct idx_source), idx_open, idx_read,
                                       idx_close};
