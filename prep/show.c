#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "common/image/png.h"
#include "common/system/file.h"
#include "prep/records.h"

struct table {
    struct jpeg_decoder *decoder;
    bool json, begun; /* begun: the header is there */
    int file_width;
};

/* As wide as the longest name, within reason. */
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
    return records_print(i, line, e);
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

int show(const struct show_options *o, struct error *e)
{
    struct table t = {.json = o->json};
    struct dataset *d;
    int64_t end, taken;

    int rc = records_open(o->dir, &o->choice, &d, &end, e);
    if (rc)
        return rc;
    rc = jpeg_decoder_create(&t.decoder, e);
    if (!o->json && rc == 0)
        t.file_width = show_width_of_files(d, o->choice.first, end);
    if (rc == 0)
        rc = records_visit(d, &o->choice, end, show_record, &t, &taken, e);
    if (rc == 0 && (fflush(stdout) || ferror(stdout)))
        rc = error_set(e, ERR_IO, "cannot write to standard output");
    jpeg_decoder_destroy(t.decoder);
    dataset_close(d);
    return rc;
}
