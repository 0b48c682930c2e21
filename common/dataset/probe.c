#include "common/dataset/probe.h"

#include <dirent.h>
#include <endian.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/dataset/file_list.h"
#include "common/dataset/manifest.h"
#include "common/dataset/tf_example.h"
#include "common/dataset/tfrecord.h"
#include "common/system/content.h"
#include "common/system/file.h"
#include "common/system/open_beneath.h"

#define RECORD_LIMIT_BYTES ((size_t)16 << 20)
#define SAMPLE_IMAGES      16
#define SMALL_PIXELS       64
/* Read of a JPEG file, whose image size comes after the EXIF data */
#define HEAD_BYTES ((size_t)256 << 10)

static bool probe_png_size(const uint8_t *png, size_t bytes, int *width, int *height)
{
    const struct content *kind = content_of(png, bytes);
    uint32_t sizes[2];

    if (bytes < 24 || !kind || strcmp(kind->what, CONTENT_PNG) != 0)
        return false;
    memcpy(sizes, png + 16, sizeof sizes);
    *width = (int)(be32toh(sizes[0]) & INT32_MAX);
    *height = (int)(be32toh(sizes[1]) & INT32_MAX);
    return *width > 0 && *height > 0;
}

bool dataset_image_size(const uint8_t *image, size_t bytes, int *width, int *height)
{
    size_t at = 2;

    if (probe_png_size(image, bytes, width, height))
        return true;
    if (bytes < 4 || image[0] != 0xff || image[1] != 0xd8)
        return false;
    while (at + 9 <= bytes && image[at] == 0xff) {
        uint8_t marker = image[at + 1];
        /* ITU-T T.81, table B.1: start of frame, but not C4, C8 or CC. */
        if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 &&
            marker != 0xcc) {
            *height = image[at + 5] << 8 | image[at + 6];
            *width = image[at + 7] << 8 | image[at + 8];
            return *width > 0 && *height > 0;
        }
        at += 2 + (size_t)(image[at + 2] << 8 | image[at + 3]);
    }
    return false;
}

static uint8_t *probe_bytes(const char *path, uint64_t from, size_t limit, size_t *bytes,
                            struct dataset_probe *out)
{
    struct error e;
    struct stat st;
    int fd = open_beneath_file(path, &e);
    uint8_t *data = fd >= 0 && fstat(fd, &st) == 0 ? malloc(limit) : NULL;
    ssize_t got = 0;

    *bytes = 0;
    if (data) {
        out->device = st.st_dev;
        out->inode = st.st_ino;
        do {
            *bytes += (size_t)got;
            got = pread(fd, data + *bytes, limit - *bytes, (off_t)(from + *bytes));
        } while (got > 0);
    }
    if (fd >= 0)
        close(fd);
    return data;
}

static void probe_record(const char *path, uint64_t *from, struct dataset_probe *out)
{
    size_t bytes;
    uint64_t payload;
    struct tf_example_view view;
    struct error e;
    uint8_t *head = probe_bytes(path, *from, TFRECORD_HEADER_BYTES, &bytes, out);

    if (head && bytes == TFRECORD_HEADER_BYTES &&
        tfrecord_frame(head, INT64_MAX, path, 0, &payload, &e) == 0 &&
        payload <= RECORD_LIMIT_BYTES) {
        size_t whole = TFRECORD_HEADER_BYTES + payload;
        free(head);
        head = probe_bytes(path, *from, whole, &bytes, out);
        *from += whole + TFRECORD_FOOTER_BYTES;
        if (head && bytes == whole &&
            tf_example_parse(head + TFRECORD_HEADER_BYTES, payload, &view, &e) == 0)
            dataset_image_size(view.jpeg, view.jpeg_bytes, &out->width, &out->height);
    }
    free(head);
}

static void probe_image(const char *path, struct dataset_probe *out)
{
    size_t bytes;
    uint8_t *head = probe_bytes(path, 0, HEAD_BYTES, &bytes, out);

    if (head)
        dataset_image_size(head, bytes, &out->width, &out->height);
    free(head);
}

static void probe_class(const char *folder, const char *name, bool any, struct dataset_probe *out)
{
    char path[PATH_MAX], image[PATH_MAX], first[NAME_MAX + 1] = "";
    const struct dirent *entry;
    struct error e;

    if (file_path(path, NULL, "%s/%s", folder, name))
        return;
    int fd = open_beneath_folder(path, &e);
    DIR *images = fd < 0 ? NULL : fdopendir(fd);
    while (images && !(any && *first) && (entry = readdir(images)))
        if (dataset_is_image_name(entry->d_name) && (!*first || strcmp(entry->d_name, first) < 0))
            snprintf(first, sizeof first, "%s", entry->d_name);
    if (images)
        closedir(images);
    else if (fd >= 0)
        close(fd);
    if (*first && !file_path(image, NULL, "%s/%s", path, first))
        probe_image(image, out);
}

void dataset_probe(const char *path, enum dataset_role role, struct dataset_probe *out)
{
    struct dataset_list list;
    struct error e;

    *out = (struct dataset_probe){0};
    if (strcmp(path, "synthetic") == 0)
        return;
    if (dataset_list_find(path, role, (struct dataset_part){0, 1}, &list, &e) == 0) {
        memcpy(out->remarks, list.remarks, sizeof out->remarks);
        if (list.format == DATASET_TFRECORD) {
            const char *why;
            json_t *classes = manifest_classes(&list, &why);
            out->classes = (int64_t)json_array_size(classes);
            json_decref(classes);
            size_t first = 0;
            while (first + 1 < list.count && list.bytes[first] == 0)
                first++;
            uint64_t from = 0;
            probe_record(list.files[first], &from, out);
        } else {
            out->classes = list.class_count;
            probe_class(list.folder, list.classes[0], false, out);
        }
    }
    dataset_list_free(&list);
}

int64_t dataset_small_size(const struct dataset_list *list)
{
    bool folders = list->format != DATASET_TFRECORD;
    size_t count = folders ? (size_t)list->class_count : list->count, before = count;
    uint64_t from = 0;
    int size = 0;

    for (size_t k = 0; k < SAMPLE_IMAGES; k++) {
        struct dataset_probe image = {0};
        size_t i = k * count / SAMPLE_IMAGES;
        if (folders && i == before)
            continue;
        from = i == before ? from : 0;
        before = i;
        if (folders)
            probe_class(list->folder, list->classes[i], true, &image);
        else
            probe_record(list->files[i], &from, &image);
        if (image.width > SMALL_PIXELS || image.width != image.height ||
            (size && image.width && image.width != size))
            return 0;
        size = image.width ? image.width : size;
    }
    return size;
}
