#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "prep/prep.h"
#include "worker/data/jpeg.h"

static void show_header(void)
{
    printf("%8s  %-28s %12s %7s %6s %9s  %s\n", "record", "file", "offset", "bytes", "class",
           "size", "name");
}

static void show_line(const struct dataset *d, int64_t i, const struct dataset_image *image,
                      const struct jpeg_info *info)
{
    const struct dataset_entry *entry = dataset_entry(d, i);
    const char *file = dataset_file(d, entry->file), *slash = strrchr(file, '/');
    char size[32];

    snprintf(size, sizeof size, "%dx%d", info->width, info->height);
    printf("%8" PRId64 "  %-28s %12" PRIu64 " %7zu %6d %9s  %s\n", i, slash ? slash + 1 : file,
           entry->offset, image->jpeg_bytes, image->label, size, image->name);
}

static int show_json(const struct dataset *d, int64_t i, const struct dataset_image *image,
                     const struct jpeg_info *info, struct error *e)
{
    const struct dataset_entry *entry = dataset_entry(d, i);
    json_t *line = json_pack(
        "{s:I, s:s, s:I, s:I, s:i, s:s, s:i, s:i, s:i, s:s}", "record", (json_int_t)i, "file",
        dataset_file(d, entry->file), "offset", (json_int_t)entry->offset, "jpeg_bytes",
        (json_int_t)image->jpeg_bytes, "class", image->label, "text", image->text, "width",
        info->width, "height", info->height, "channels", info->channels, "name", image->name);
    if (!line)
        return error_set(e, ERR_CORRUPT, "record %" PRId64 " holds a name that is not UTF-8", i);
    json_dumpf(line, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(line);
    return 0;
}

static int show_record(struct dataset *d, int64_t i, struct jpeg_decoder *decoder, bool json,
                       struct error *e)
{
    struct dataset_image image;
    struct jpeg_info info;

    int rc = dataset_read(d, i, &image, e);
    if (rc)
        return rc;
    rc = jpeg_header(decoder, image.jpeg, image.jpeg_bytes, &info, e);
    if (rc)
        error_prefix(e, "%s, record at byte %" PRIu64, dataset_file(d, dataset_entry(d, i)->file),
                     dataset_entry(d, i)->offset);
    else if (json)
        rc = show_json(d, i, &image, &info, e);
    else
        show_line(d, i, &image, &info);
    dataset_image_release(&image);
    return rc;
}

int show(const struct show_options *o, struct error *e)
{
    struct jpeg_decoder *decoder = NULL;
    struct dataset *d;

    int rc = dataset_open(o->dir, o->role, &d, e);
    if (rc == 0)
        rc = jpeg_decoder_create(&decoder, e);
    int64_t count = rc ? 0 : dataset_images(d);
    if (o->limit && o->limit < count)
        count = o->limit;
    if (!o->json && rc == 0)
        show_header();
    for (int64_t i = 0; i < count && rc == 0 && !prep_interrupted; i++)
        rc = show_record(d, i, decoder, o->json, e);
    if (rc == 0 && (fflush(stdout) || ferror(stdout)))
        rc = error_set(e, ERR_IO, "cannot write to standard output");
    jpeg_decoder_destroy(decoder);
    dataset_close(d);
    return rc;
}
