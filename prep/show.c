#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/dataset/dataset.h"
#include "common/image/png.h"
#include "common/system/command_line.h"
#include "common/system/file.h"
#include "prep/prep.h"
#include "prep/work.h"

/* Selects records by their numbers in file order, and by class. */
struct record_choice {
    enum dataset_role role;
    int64_t first, last; /* inclusive */
    bool to_end;         /* up to the last record; ignore `last` */
    bool any_class;
    int32_t class; /* 0-based */
    int64_t limit; /* of the selected records; 0: all */
};

struct show_options {
    const char *dir;
    struct record_choice choice;
    bool json; /* print a JSON object per line */
};

struct extract_options {
    const char *dir, *out;
    struct record_choice choice;
    bool json; /* print a JSON object for each file */
};

/* If it returns an error, the loop ends. */
typedef int show_visit(struct dataset *d, int64_t i, const struct dataset_image *image,
                       void *context, struct error *e);

/* Opens the data and sets *end to the number after the last selected record. Returns ERR_NOT_FOUND
 * if there is no such record. */
static int show_open(const char *dir, const struct record_choice *choice, struct dataset **out,
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

/* Calls `take` for the selected records in file order and counts them in *taken. Returns
 * ERR_NOT_FOUND if there are none. */
static int show_records(struct dataset *d, const struct record_choice *choice, int64_t end,
                        show_visit *take, void *context, int64_t *taken, struct error *e)
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

/* Prints and frees line. NULL, from json_pack, means that a name is not UTF-8. */
static int show_print_json(int64_t i, json_t *line, struct error *e)
{
    if (!line)
        return error_set(e, ERR_CORRUPT, "record %" PRId64 " holds a name that is not UTF-8", i);
    json_dumpf(line, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(line);
    return 0;
}

struct table {
    struct jpeg_decoder *decoder;
    bool json, begun; /* begun: the header has been printed */
    int file_width;
};

static int show_width_of_files(const struct dataset *d, int64_t first, int64_t end)
{
    size_t width = strlen("file");

    for (int64_t i = first; i < end; i++) {
        size_t length = strlen(file_base_name(dataset_file(d, dataset_entry(d, i)->file)));
        width = length > width ? length : width;
    }
    return width > 48 ? 48 : (int)width;
}

static void show_header(const struct table *t)
{
    printf("%8s  %-*s %12s %8s %6s %11s  %s\n", "record", t->file_width, "file", "offset", "bytes",
           "class", "size", "name");
}

static void show_line(const struct table *t, const struct dataset *d, int64_t i,
                      const struct dataset_image *image, const struct jpeg_info *info)
{
    const struct dataset_entry *entry = dataset_entry(d, i);
    char size[32];

    snprintf(size, sizeof size, "%dx%d", info->width, info->height);
    printf("%8" PRId64 "  %-*s %12" PRIu64 " %8zu %6d %11s  %s\n", i, t->file_width,
           file_base_name(dataset_file(d, entry->file)), entry->offset, image->jpeg_bytes,
           image->label, size, image->name);
}

static int show_image_json(const struct dataset *d, int64_t i, const struct dataset_image *image,
                           const struct jpeg_info *info, struct error *e)
{
    const struct dataset_entry *entry = dataset_entry(d, i);
    json_t *line = json_pack(
        "{s:I, s:s, s:I, s:I, s:i, s:s, s:i, s:i, s:i, s:s}", "record", (json_int_t)i, "file",
        dataset_file(d, entry->file), "offset", (json_int_t)entry->offset, "jpeg_bytes",
        (json_int_t)image->jpeg_bytes, "class", image->label, "text", image->text, "width",
        info->width, "height", info->height, "channels", info->channels, "name", image->name);
    return show_print_json(i, line, e);
}

static int show_record(struct dataset *d, int64_t i, const struct dataset_image *image,
                       void *context, struct error *e)
{
    struct table *t = context;
    struct jpeg_info info;

    int rc = png_is(image->jpeg, image->jpeg_bytes)
                 ? png_header(image->jpeg, image->jpeg_bytes, &info, e)
                 : jpeg_header(t->decoder, image->jpeg, image->jpeg_bytes, &info, e);
    if (rc)
        return error_prefix(e, "%s, record at byte %" PRIu64,
                            dataset_file(d, dataset_entry(d, i)->file),
                            dataset_entry(d, i)->offset);
    if (t->json)
        return show_image_json(d, i, image, &info, e);
    if (!t->begun)
        show_header(t);
    t->begun = true;
    show_line(t, d, i, image, &info);
    return 0;
}

static int show_run(const struct show_options *o, struct error *e)
{
    struct table t = {.json = o->json};
    struct dataset *d;
    int64_t end, taken;

    int rc = show_open(o->dir, &o->choice, &d, &end, e);
    if (rc)
        return rc;
    rc = jpeg_decoder_create(&t.decoder, e);
    if (!o->json && rc == 0)
        t.file_width = show_width_of_files(d, o->choice.first, end);
    if (rc == 0)
        rc = show_records(d, &o->choice, end, show_record, &t, &taken, e);
    if (rc == 0 && (fflush(stdout) || ferror(stdout)))
        rc = error_set(e, ERR_IO, "cannot write to standard output");
    jpeg_decoder_destroy(t.decoder);
    dataset_close(d);
    return rc;
}

/* Makes an untrusted name safe: keeps its last part, and in it only harmless characters. */
static void show_safe_name(const char *name, char out[128])
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

static int show_print_file(int64_t i, const struct dataset_image *image, const char *path,
                           struct error *e)
{
    json_t *line =
        json_pack("{s:I, s:i, s:s, s:s, s:I}", "record", (json_int_t)i, "class", image->label,
                  "name", image->name, "path", path, "jpeg_bytes", (json_int_t)image->jpeg_bytes);
    return show_print_json(i, line, e);
}

static int show_extract_record(struct dataset *d, int64_t i, const struct dataset_image *image,
                               void *context, struct error *e)
{
    struct extraction *x = context;
    char path[PATH_MAX], name[128];
    (void)d;

    show_safe_name(image->name[0] ? image->name : "image.jpg", name);
    if (file_path(path, e, "%s/%09" PRId64 "-%s", x->options->out, i, name))
        return -ERR_INVALID;
    if (access(path, F_OK) == 0)
        return error_set(e, ERR_CONFLICT, "%s exists already", path);
    int rc = file_write_atomic(path, image->jpeg, image->jpeg_bytes, e);
    if (rc == 0 && x->options->json)
        rc = show_print_file(i, image, path, e);
    progress_add(&x->progress, 1, (int64_t)image->jpeg_bytes);
    return rc;
}

static int show_extract(const struct extract_options *o, struct error *e)
{
    struct extraction x = {.options = o};
    struct dataset *d;
    int64_t end, taken = 0;

    int rc = show_open(o->dir, &o->choice, &d, &end, e);
    if (rc)
        return rc;
    int64_t most = end - o->choice.first;
    rc = file_make_dirs(o->out, e);
    progress_begin(&x.progress, "extract",
                   o->choice.limit && o->choice.limit < most ? o->choice.limit : most, 0);
    if (rc == 0)
        rc = show_records(d, &o->choice, end, show_extract_record, &x, &taken, e);
    progress_end(&x.progress);
    dataset_close(d);
    if (rc == 0 && !o->json)
        printf("%s: %" PRId64 " images\n", o->out, taken);
    return rc;
}

static const struct record_choice all_records = {.to_end = true, .any_class = true};

static int show_parse_records(const struct command_option *option, const char *text, void *field,
                              struct error *e)
{
    struct record_choice *c = field;
    char *end, *dash;

    errno = 0;
    c->first = c->last = strtoll(text, &end, 10);
    dash = end;
    if (*dash == '-' && dash[1])
        c->last = strtoll(dash + 1, &end, 10);
    else if (*dash == '-')
        end++;
    c->to_end = *dash == '-' && !dash[1];
    if (errno || *text < '0' || *text > '9' || *end || (*dash == '-' && dash[1] == '-') ||
        c->last < c->first)
        return error_set(e, ERR_USAGE, "--%s %s: expected N, N-M or N-, as 7, 7-9 or 7-",
                         option->name, text);
    return 0;
}

static int show_parse_class(const struct command_option *option, const char *text, void *field,
                            struct error *e)
{
    struct record_choice *c = field;
    char *end;

    errno = 0;
    long class = strtol(text, &end, 10);
    if (errno || end == text || *end || class < 0 || class > INT32_MAX)
        return error_set(e, ERR_USAGE, "--%s %s: expected a whole number from 0 to %d",
                         option->name, text, INT32_MAX);
    c->class = (int32_t) class;
    c->any_class = false;
    return 0;
}

static int show_parse_role(const struct command_option *option, const char *text, void *field,
                           struct error *e)
{
    struct record_choice *c = field;

    if (strcmp(text, "train") != 0 && strcmp(text, "validation") != 0)
        return error_set(e, ERR_USAGE, "--%s %s: expected train or validation", option->name, text);
    c->role = strcmp(text, "train") == 0 ? DATASET_TRAIN : DATASET_EVAL;
    return 0;
}

/* clang-format off */
#define CHOICE_OPTIONS(type) \
    {.name = "role", .value = "ROLE", .kind = OPTION_TAKEN, .offset = offsetof(type, choice), .parse = show_parse_role, \
     .help = "train (default) or validation, if the folder contains both"}, \
    {.name = "record", .letter = 'r', .value = "N[-[M]]", .kind = OPTION_TAKEN, .offset = offsetof(type, choice), .parse = show_parse_records, \
     .help = "record N, or N to M, or from N on (default: all)"}, \
    {.name = "class", .value = "C", .kind = OPTION_TAKEN, .offset = offsetof(type, choice), .parse = show_parse_class, \
     .help = "only records of this class, counted from 0"}, \
    {.name = "limit", .letter = 'n', .value = "N", .kind = OPTION_INT64, .offset = offsetof(type, choice.limit), .min = 1, .max = INT64_MAX, \
     .help = "at most this many (default: all)"}

static const struct command_option show_table[] = {
    {.name = "json", .kind = OPTION_FLAG, .offset = offsetof(struct show_options, json),
     .help = "print one JSON object per line"},
    CHOICE_OPTIONS(struct show_options),
    {0},
};
/* clang-format on */

static int show_command_run(int argc, char **argv, struct error *e)
{
    static const struct command_line line = {
        .program = "train-prep show",
        .usage = "Usage: train-prep show [OPTION...] DIR",
        .options = show_table,
        .operand = "DIR",
        .operand_offset = offsetof(struct show_options, dir),
        .doc = "Lists the records of a data set in file order; checksums are verified.",
    };
    struct show_options o = {.choice = all_records};

    int rc = command_line_read(&line, argc, argv, &o);
    return rc >= 0 ? rc : show_run(&o, e);
}

/* clang-format off */
static const struct command_option extract_table[] = {
    {.name = "out", .letter = 'o', .value = "FOLDER", .kind = OPTION_TEXT, .offset = offsetof(struct extract_options, out), .required = true,
     .help = "output folder"},
    {.name = "json", .kind = OPTION_FLAG, .offset = offsetof(struct extract_options, json),
     .help = "print one JSON object per written file"},
    CHOICE_OPTIONS(struct extract_options),
    {0},
};
/* clang-format on */

static int show_extract_command_run(int argc, char **argv, struct error *e)
{
    static const struct command_line line = {
        .program = "train-prep extract",
        .usage = "Usage: train-prep extract [OPTION...] DIR",
        .options = extract_table,
        .operand = "DIR",
        .operand_offset = offsetof(struct extract_options, dir),
        .doc = "Writes the images of a data set as JPEG files, just as they are stored.",
    };
    struct extract_options o = {.choice = all_records};

    int rc = command_line_read(&line, argc, argv, &o);
    return rc >= 0 ? rc : show_extract(&o, e);
}

const struct prep_command show_command = {"show", "list the records of a data set",
                                          show_command_run};
const struct prep_command extract_command = {
    "extract", "write the images of a data set as JPEG files", show_extract_command_run};
