#include "prep/source/imagenet_truth.h"

#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <matio.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/system/content.h"
#include "common/system/file.h"
#include "prep/source/archive.h"

#define FILE_LIMIT_BYTES (64u << 20)
#define IMAGES_MAX       10000000

static int imagenet_truth_add_image(struct imagenet_truth *t, int64_t i, const char *synset,
                                    size_t length)
{
    size_t capacity = t->capacity;
    char(*larger)[SYNSET_BYTES] =
        array_reserve(t->synsets, (size_t)i + 1, &t->capacity, sizeof *larger);

    if (!larger)
        return -1;
    t->synsets = larger;
    if (t->capacity > capacity)
        memset(larger + capacity, 0, (t->capacity - capacity) * sizeof *larger);
    t->images = i < t->images ? t->images : i + 1;
    snprintf(t->synsets[i], SYNSET_BYTES, "%.*s", (int)length, synset);
    return 0;
}

static int imagenet_truth_add_words(struct imagenet_truth *t, const char *synset, size_t length,
                                    const char *text)
{
    struct imagenet_words *larger =
        array_grow(t->words, (size_t)t->word_count, &t->word_room, sizeof *larger);
    if (!larger)
        return -1;
    t->words = larger;
    struct imagenet_words *w = &t->words[t->word_count++];
    snprintf(w->synset, SYNSET_BYTES, "%.*s", (int)length, synset);
    w->text = strdup(text);
    return w->text ? 0 : -1;
}

/* Returns the length of the synset ("n" and digits) at the start of text, or 0. */
static size_t imagenet_truth_synset_length(const char *text)
{
    size_t digits = text[0] == 'n' ? strspn(text + 1, "0123456789") : 0;
    return digits && digits + 2 < SYNSET_BYTES ? digits + 1 : 0;
}

/* number: of the line, from 1. Returns -1 if the line is malformed. */
typedef int take_line(struct imagenet_truth *t, int64_t number, char *line);

static int imagenet_truth_take_synset(struct imagenet_truth *t, int64_t number, char *line)
{
    size_t length = imagenet_truth_synset_length(line);
    return length && !line[length] ? imagenet_truth_add_image(t, number - 1, line, length) : -1;
}

static int imagenet_truth_take_solution(struct imagenet_truth *t, int64_t number, char *line)
{
    int64_t image;
    int used = 0;

    if (number == 1 && strncmp(line, "ImageId,", 8) == 0)
        return 0;
    if (sscanf(line, "ILSVRC2012_val_%8" SCNd64 ",%n", &image, &used) != 1 || !used || image < 1 ||
        image > IMAGES_MAX)
        return -1;
    size_t length = imagenet_truth_synset_length(line + used);
    return length ? imagenet_truth_add_image(t, image - 1, line + used, length) : -1;
}

static int imagenet_truth_take_word(struct imagenet_truth *t, int64_t number, char *line)
{
    size_t length = imagenet_truth_synset_length(line);

    (void)number;
    if (!length || !isblank((unsigned char)line[length]))
        return -1;
    return imagenet_truth_add_words(t, line, length, line + length + strspn(line + length, " \t"));
}

static int imagenet_truth_take_lines(struct imagenet_truth *t, char *text, const char *name,
                                     take_line *take, const char *expected, struct error *e)
{
    size_t bytes = strlen(text);
    char *rest, *line;
    int64_t number = 1;

    if (content_drop_mark(text, &bytes, e))
        return error_prefix(e, "%s", name);
    for (line = strtok_r(text, "\r\n", &rest); line; line = strtok_r(NULL, "\r\n", &rest), number++)
        if (take(t, number, line))
            return error_set(e, ERR_INVALID, "line %" PRId64 " of %s is \"%.60s\"; expected %s",
                             number, name, line, expected);
    return 0;
}

/* ---- meta.mat: a MATLAB file with a struct array "synsets" */

/* Truncates to `capacity`. */
static bool imagenet_truth_matlab_text(matvar_t *synsets, const char *field, size_t i, char *out,
                                       size_t capacity)
{
    const matvar_t *v = Mat_VarGetStructFieldByName(synsets, field, i);
    size_t used = 0;

    if (!v || v->class_type != MAT_C_CHAR || (v->data_size != 1 && v->data_size != 2))
        return false;
    for (size_t k = 0; v->data && k * (size_t)v->data_size < v->nbytes && used + 2 < capacity;
         k++) {
        unsigned c =
            v->data_size == 1 ? ((const uint8_t *)v->data)[k] : ((const uint16_t *)v->data)[k];
        if (c < 0x80 || v->data_size == 1) /* such bytes are UTF-8 already */
            out[used++] = (char)c;
        else
            used += (size_t)snprintf(out + used, 2, "?");
    }
    out[used] = '\0';
    return used > 0;
}

/* Maps each ILSVRC2012_ID to its synset; only 1000 of them are classes, others are groups. */
static int imagenet_truth_take_synsets(struct imagenet_truth *t, matvar_t *synsets,
                                       char (*of_id)[SYNSET_BYTES], int ids)
{
    size_t count = 1;
    char synset[SYNSET_BYTES], words[1024];

    for (int d = 0; d < synsets->rank; d++)
        count *= synsets->dims[d];
    for (size_t i = 0; i < count; i++) {
        const matvar_t *id = Mat_VarGetStructFieldByName(synsets, "ILSVRC2012_ID", i);
        if (!id || id->class_type != MAT_C_DOUBLE || id->nbytes < sizeof(double) ||
            !imagenet_truth_matlab_text(synsets, "WNID", i, synset, sizeof synset) ||
            !imagenet_truth_synset_length(synset))
            return -1;
        double number = *(const double *)id->data;
        if (number >= 1 && number <= ids)
            snprintf(of_id[(int)number - 1], SYNSET_BYTES, "%s", synset);
        if (imagenet_truth_matlab_text(synsets, "words", i, words, sizeof words) &&
            imagenet_truth_add_words(t, synset, strlen(synset), words))
            return -1;
    }
    return 0;
}

/* Puts the content into a file in memory, because matio only reads files. */
static mat_t *imagenet_truth_open_content(const struct archive_blob *meta)
{
    int fd = memfd_create("meta.mat", MFD_CLOEXEC);
    char path[64];
    mat_t *mat = NULL;

    if (fd < 0)
        return NULL;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (write(fd, meta->data, meta->bytes) == (ssize_t)meta->bytes)
        mat = Mat_Open(path, MAT_ACC_RDONLY);
    close(fd);
    return mat;
}

static int imagenet_truth_read_meta(struct imagenet_truth *t, const struct archive_blob *meta,
                                    char (*of_id)[SYNSET_BYTES], int ids, struct error *e)
{
    mat_t *mat = imagenet_truth_open_content(meta);
    matvar_t *synsets = mat ? Mat_VarRead(mat, "synsets") : NULL;
    int rc = -1;

    if (synsets && synsets->class_type == MAT_C_STRUCT)
        rc = imagenet_truth_take_synsets(t, synsets, of_id, ids);
    Mat_VarFree(synsets);
    if (mat)
        Mat_Close(mat);
    return rc ? error_set(e, ERR_CORRUPT,
                          "meta.mat cannot be read: expected a MATLAB file with the struct array "
                          "\"synsets\" of ILSVRC2012_ID, WNID and words")
              : 0;
}

#define IDS 1000

static int imagenet_truth_take_ids(struct imagenet_truth *t, const struct archive_blob *truth,
                                   char (*of_id)[SYNSET_BYTES], struct error *e)
{
    size_t bytes = strlen(truth->data);
    char *rest, *line;
    int64_t number = 1;

    if (content_drop_mark(truth->data, &bytes, e))
        return error_prefix(e, "%s", truth->name);
    for (line = strtok_r(truth->data, "\r\n", &rest); line;
         line = strtok_r(NULL, "\r\n", &rest), number++) {
        char *end;
        long id = strtol(line, &end, 10);
        if (end == line || *end || id < 1 || id > IDS)
            return error_set(e, ERR_INVALID,
                             "line %" PRId64 " of %s is \"%.60s\"; expected an ILSVRC2012_ID, 1 to "
                             "%d",
                             number, truth->name, line, IDS);
        if (!of_id[id - 1][0])
            return error_set(e, ERR_INVALID,
                             "line %" PRId64 " of %s is %ld, which meta.mat has no synset for",
                             number, truth->name, id);
        if (imagenet_truth_add_image(t, number - 1, of_id[id - 1], strlen(of_id[id - 1])))
            return error_set(e, ERR_NO_MEMORY, "no memory for labels");
    }
    return 0;
}

/* labels: also read the ground truth. */
static int imagenet_truth_read_kit(struct imagenet_truth *t, const char *path, bool labels,
                                   struct error *e)
{
    struct archive_blob kit[2] = {{.name = "ILSVRC2012_validation_ground_truth.txt"},
                                  {.name = "meta.mat"}};
    char of_id[IDS][SYNSET_BYTES] = {{0}};

    int rc = archive_pick(path, kit, 2, FILE_LIMIT_BYTES, e);
    if (rc == 0 && kit[1].data)
        rc = imagenet_truth_read_meta(t, &kit[1], of_id, IDS, e);
    else if (rc == 0 && kit[0].data && labels)
        rc = error_set(e, ERR_NOT_FOUND,
                       "%s has %s, but not meta.mat, which maps numbers to synsets: both are in "
                       "ILSVRC2012_devkit_t12.tar.gz",
                       path, kit[0].name);
    if (rc == 0 && kit[0].data && kit[1].data && labels) {
        rc = imagenet_truth_take_ids(t, &kit[0], of_id, e);
        snprintf(t->source, sizeof t->source, "%s", kit[0].name);
    }
    archive_blobs_free(kit, 2);
    return rc;
}

static int imagenet_truth_read_kits(struct imagenet_truth *t, const char *folder, struct error *e)
{
    static const char *const places[] = {"", "/ILSVRC2012_devkit_t12.tar.gz",
                                         "/ILSVRC2012_devkit_t12/data", "/data"};
    char path[PATH_MAX];
    int rc = 0;

    for (size_t i = 0; i < sizeof places / sizeof *places && rc == 0; i++) {
        file_path(path, NULL, "%s%s", folder, places[i]);
        if (access(path, F_OK) == 0)
            rc = imagenet_truth_read_kit(t, path, !t->source[0], e);
    }
    return rc;
}

static const struct text_file {
    const char *name;
    bool labels;
    take_line *take;
    const char *expected;
} text_files[] = {
    {"imagenet_2012_validation_synset_labels.txt", true,  imagenet_truth_take_synset,
     "a synset as n01440764"                                                                                    },
    {"synset_labels.txt",                          true,  imagenet_truth_take_synset,   "a synset as n01440764" },
    {"LOC_val_solution.csv",                       true,  imagenet_truth_take_solution,
     "ILSVRC2012_val_00000001,n01440764 ..."                                                                    },
    {"LOC_synset_mapping.txt",                     false, imagenet_truth_take_word,     "a synset and its words"},
    {"synset_words.txt",                           false, imagenet_truth_take_word,     "a synset and its words"},
    {"imagenet_metadata.txt",                      false, imagenet_truth_take_word,     "a synset and its words"},
};

static int truth_read_text(struct imagenet_truth *t, const char *folder, const struct text_file *f,
                           struct error *e)
{
    char path[PATH_MAX], *text;
    size_t bytes;

    file_path(path, NULL, "%s/%s", folder, f->name);
    if (access(path, F_OK))
        return 0;
    int rc = file_read(path, FILE_LIMIT_BYTES, &text, &bytes, e);
    if (rc)
        return rc;
    rc = imagenet_truth_take_lines(t, text, f->name, f->take, f->expected, e);
    free(text);
    if (f->labels)
        snprintf(t->source, sizeof t->source, "%s", f->name);
    return rc;
}

int imagenet_truth_read(const char *folder, struct imagenet_truth *t, struct error *e)
{
    int rc = 0;

    *t = (struct imagenet_truth){0};
    for (size_t i = 0; i < sizeof text_files / sizeof *text_files && rc == 0; i++)
        if (!text_files[i].labels || !t->source[0])
            rc = truth_read_text(t, folder, &text_files[i], e);
    if (rc == 0 && (!t->source[0] || !t->words))
        rc = imagenet_truth_read_kits(t, folder, e);
    return rc;
}

void imagenet_truth_free(struct imagenet_truth *t)
{
    for (int i = 0; i < t->word_count; i++)
        free(t->words[i].text);
    free(t->words);
    free(t->synsets);
    *t = (struct imagenet_truth){0};
}

const char *imagenet_truth_text(const struct imagenet_truth *t, const char *synset)
{
    for (int i = 0; i < t->word_count; i++)
        if (strcmp(t->words[i].synset, synset) == 0)
            return t->words[i].text;
    return NULL;
}
