#include "common/run/safetensors.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/assert_always.h"
#include "common/run/stall_report.h"
#include "common/system/content.h"
#include "common/system/file.h"
#include "common/xalloc.h"

static const struct {
    const char *name;
    size_t bytes;
} dtypes[] = {
    [SAFETENSORS_F32] = {"F32",  4},
    [SAFETENSORS_I64] = {"I64",  8},
    [SAFETENSORS_F16] = {"F16",  2},
    [SAFETENSORS_BF16] = {"BF16", 2},
};

static size_t safetensors_count(const struct safetensors_tensor *t)
{
    size_t count = 1;
    for (int i = 0; i < t->dims; i++)
        count *= (size_t)t->shape[i];
    return count;
}

size_t safetensors_bytes(const struct safetensors_tensor *t)
{
    return safetensors_count(t) * dtypes[t->dtype].bytes;
}

static json_t *safetensors_describe(const struct safetensors_tensor *t, size_t offset)
{
    json_t *shape = json_array();
    for (int i = 0; i < t->dims; i++)
        json_array_append_new(shape, json_integer(t->shape[i]));
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtypes[t->dtype].name, "shape", shape,
                     "data_offsets", (json_int_t)offset,
                     (json_int_t)(offset + safetensors_bytes(t)));
}

static char *safetensors_make_header(const struct safetensors_tensor *tensors, size_t count,
                                     const struct safetensors_meta *meta, size_t meta_count,
                                     size_t *length, size_t *file_bytes)
{
    json_t *header = json_object(), *strings = json_object();
    size_t offset = 0;

    for (size_t i = 0; i < meta_count; i++)
        json_object_set_new(strings, meta[i].key, json_string(meta[i].value));
    if (meta_count)
        json_object_set(header, "__metadata__", strings);
    for (size_t i = 0; i < count; i++) {
        json_object_set_new(header, tensors[i].name, safetensors_describe(&tensors[i], offset));
        offset += safetensors_bytes(&tensors[i]);
    }
    char *text = must_alloc(json_dumps(header, JSON_COMPACT));
    *length = (strlen(text) + 7) & ~(size_t)7;
    *file_bytes = 8 + *length + offset;
    char *padded = xmalloc(*length + 1);
    memset(padded, ' ', *length);
    memcpy(padded, text, strlen(text));
    free(text);
    json_decref(strings);
    json_decref(header);
    return padded;
}

static int safetensors_write_part(int fd, const void *data, size_t bytes)
{
    int failed = file_write_all(fd, data, bytes);
    if (!failed)
        stall_progress_add(bytes);
    return failed;
}

static int safetensors_write_header(int fd, const char *header, size_t length)
{
    unsigned char prefix[8];
    for (int i = 0; i < 8; i++)
        prefix[i] = (unsigned char)((uint64_t)length >> (8 * i));
    int failed = safetensors_write_part(fd, prefix, sizeof prefix);
    return failed ? failed : safetensors_write_part(fd, header, length);
}

static int safetensors_write_tensors(int fd, const struct safetensors_tensor *tensors, size_t count,
                                     safetensors_fill *fill, void *context)
{
    size_t largest = 1;
    int failed = 0;

    for (size_t i = 0; i < count; i++)
        largest =
            safetensors_bytes(&tensors[i]) > largest ? safetensors_bytes(&tensors[i]) : largest;
    void *buffer = malloc(largest);
    if (!buffer)
        return ENOMEM;
    for (size_t i = 0; i < count && !failed; i++) {
        fill(i, buffer, context);
        failed = safetensors_write_part(fd, buffer, safetensors_bytes(&tensors[i]));
    }
    free(buffer);
    return failed;
}

int safetensors_write(const char *path, const struct safetensors_tensor *tensors, size_t count,
                      const struct safetensors_meta *meta, size_t meta_count,
                      safetensors_fill *fill, void *context, struct error *e)
{
    size_t length = 0, bytes = 0;
    char temporary[PATH_MAX];

    if (file_path(temporary, e, "%s.%ld.tmp", path, (long)getpid()))
        return -ERR_INVALID;
    char *header = safetensors_make_header(tensors, count, meta, meta_count, &length, &bytes);
    unlink(temporary);
    int failed = 0,
        fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        failed = errno;
    if (!failed)
        failed = safetensors_write_header(fd, header, length);
    if (!failed)
        failed = safetensors_write_tensors(fd, tensors, count, fill, context);
    free(header);
    assert_always(failed || lseek(fd, 0, SEEK_CUR) == (off_t)bytes);
    if (!failed && fsync(fd))
        failed = errno;
    if (fd >= 0 && close(fd) && !failed)
        failed = errno;
    if (!failed && rename(temporary, path))
        failed = errno;
    if (failed) {
        if (fd >= 0)
            unlink(temporary);
        return error_set_errno(e, failed, "cannot write %s", path);
    }
    file_sync_dir_of(path);
    return 0;
}

struct entry {
    struct safetensors_tensor tensor;
    uint64_t first, end; /* relative to the end of the header */
};

struct safetensors {
    char *path;
    int fd;
    uint64_t data; /* position in the file of the first tensor's bytes */
    uint64_t data_bytes;
    json_t *header;
    struct entry *entries;
    size_t count;
};

static int safetensors_corrupt(const struct safetensors *s, struct error *e, uint64_t offset,
                               const char *what)
{
    return error_set(e, ERR_CORRUPT, "%s is not a sound safetensors file: at byte %" PRIu64 ": %s",
                     s->path, offset, what);
}

static int safetensors_read_all(int fd, void *data, size_t bytes, uint64_t offset)
{
    char *p = data;
    while (bytes) {
        ssize_t done = pread(fd, p, bytes, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return errno;
        if (!done)
            return -1;
        p += done;
        offset += (uint64_t)done;
        stall_progress_add((uint64_t)done);
        bytes -= (size_t)done;
    }
    return 0;
}

static int safetensors_read_header(struct safetensors *s, struct error *e)
{
    unsigned char prefix[8];
    uint64_t length = 0;
    struct stat st;
    json_error_t why;

    if (fstat(s->fd, &st))
        return error_set_errno(e, errno, "cannot read %s", s->path);
    if (st.st_size < 8 || safetensors_read_all(s->fd, prefix, 8, 0))
        return safetensors_corrupt(s, e, 0, "it has no header length");
    for (int i = 0; i < 8; i++)
        length |= (uint64_t)prefix[i] << (8 * i);
    if (length > SAFETENSORS_HEADER_LIMIT_BYTES)
        return safetensors_corrupt(s, e, 0, "the header length is over 100000000");
    if (length > (uint64_t)st.st_size - 8)
        return safetensors_corrupt(s, e, 8, "the header is cut off");
    char *text = malloc(length ? length : 1);
    if (!text)
        return error_set(e, ERR_NO_MEMORY, "no memory for the header of %s", s->path);
    int failed = safetensors_read_all(s->fd, text, length, 8);
    if (!failed)
        s->header = json_loadb(text, length, JSON_REJECT_DUPLICATES, &why);
    free(text);
    if (failed)
        return error_set_errno(e, failed > 0 ? failed : EIO, "cannot read %s", s->path);
    if (!s->header)
        return safetensors_corrupt(s, e, 8 + (uint64_t)(why.position > 0 ? why.position : 0),
                                   why.text);
    if (!json_is_object(s->header))
        return safetensors_corrupt(s, e, 8, "the header is not a JSON object");
    s->data = 8 + length;
    s->data_bytes = (uint64_t)st.st_size - s->data;
    return 0;
}

static int safetensors_bad_tensor(const struct safetensors *s, struct error *e, const char *name,
                                  const char *what)
{
    return error_set(e, ERR_CORRUPT,
                     "%s is not a sound safetensors file: header, tensor \"%.200s\": %s", s->path,
                     name, what);
}

static int safetensors_read_dtype(const struct safetensors *s, const char *name,
                                  const json_t *value, struct entry *entry, struct error *e)
{
    const char *dtype = json_string_value(value);
    if (!dtype)
        return safetensors_bad_tensor(s, e, name, "it has no dtype");
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (!strcmp(dtype, dtypes[i].name)) {
            entry->tensor.dtype = (enum safetensors_dtype)i;
            return 0;
        }
    return error_set(e, ERR_UNSUPPORTED,
                     "%s: tensor \"%.200s\" has dtype %.20s, which is not supported by this "
                     "version (supported: F32, F16, BF16 and I64)",
                     s->path, name, dtype);
}

static int safetensors_read_shape(const struct safetensors *s, const char *name,
                                  const json_t *value, struct entry *entry, struct error *e)
{
    uint64_t bytes = dtypes[entry->tensor.dtype].bytes;
    const json_t *dim;
    size_t i;

    if (!json_is_array(value) || json_array_size(value) > SAFETENSORS_DIMS_MAX)
        return safetensors_bad_tensor(s, e, name, "its shape is not a list of at most 8 sizes");
    json_array_foreach (value, i, dim) {
        json_int_t size = json_integer_value(dim);
        if (!json_is_integer(dim) || size < 0)
            return safetensors_bad_tensor(
                s, e, name, "its shape has a size that is not a whole number from 0 on");
        if (__builtin_mul_overflow(bytes, (uint64_t)size, &bytes))
            return safetensors_bad_tensor(s, e, name, "its shape is too large");
        entry->tensor.shape[i] = size;
    }
    entry->tensor.dims = (int)json_array_size(value);
    if (entry->end - entry->first != bytes)
        return safetensors_bad_tensor(s, e, name, "its data_offsets do not match its shape");
    return 0;
}

static int safetensors_read_offsets(const struct safetensors *s, const char *name,
                                    const json_t *value, struct entry *entry, struct error *e)
{
    const json_t *first = json_array_get(value, 0), *end = json_array_get(value, 1);

    if (json_array_size(value) != 2 || !json_is_integer(first) || !json_is_integer(end) ||
        json_integer_value(first) < 0 || json_integer_value(end) < json_integer_value(first))
        return safetensors_bad_tensor(s, e, name, "its data_offsets are not two growing offsets");
    entry->first = (uint64_t)json_integer_value(first);
    entry->end = (uint64_t)json_integer_value(end);
    if (entry->end > s->data_bytes)
        return error_set(e, ERR_CORRUPT,
                         "%s is cut off: tensor \"%.200s\" ends at byte %" PRIu64
                         ", the file at byte %" PRIu64,
                         s->path, name, s->data + entry->end, s->data + s->data_bytes);
    return 0;
}

static int safetensors_read_entry(const struct safetensors *s, const char *name,
                                  const json_t *value, struct entry *entry, struct error *e)
{
    entry->tensor.name = name;
    if (!json_is_object(value))
        return safetensors_bad_tensor(s, e, name, "it is not described by a JSON object");
    int status = safetensors_read_dtype(s, name, json_object_get(value, "dtype"), entry, e);
    if (!status)
        status =
            safetensors_read_offsets(s, name, json_object_get(value, "data_offsets"), entry, e);
    if (!status)
        status = safetensors_read_shape(s, name, json_object_get(value, "shape"), entry, e);
    return status;
}

static int safetensors_check_metadata(const struct safetensors *s, const json_t *meta,
                                      struct error *e)
{
    const json_t *value;
    const char *key;

    if (!json_is_object(meta))
        return safetensors_corrupt(s, e, 8, "__metadata__ is not a JSON object");
    json_object_foreach ((json_t *)meta, key, value)
        if (!json_is_string(value))
            return safetensors_corrupt(s, e, 8, "__metadata__ contains non-string values");
    return 0;
}

static int safetensors_by_offset(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

static int safetensors_check_holes(const struct safetensors *s, struct error *e)
{
    uint64_t end = 0;
    for (size_t i = 0; i < s->count; i++) {
        if (s->entries[i].first < end)
            return safetensors_corrupt(s, e, s->data + s->entries[i].first, "two tensors overlap");
        if (s->entries[i].first > end)
            return safetensors_corrupt(s, e, s->data + end, "a hole between two tensors");
        end = s->entries[i].end;
    }
    if (end != s->data_bytes)
        return safetensors_corrupt(s, e, s->data + end, "bytes after the last tensor");
    return 0;
}

static int safetensors_read_entries(struct safetensors *s, struct error *e)
{
    const json_t *value;
    const char *name;

    s->entries = xcalloc(json_object_size(s->header) + 1, sizeof *s->entries);
    json_object_foreach (s->header, name, value) {
        int status;
        if (!strcmp(name, "__metadata__"))
            status = safetensors_check_metadata(s, value, e);
        else
            status = safetensors_read_entry(s, name, value, &s->entries[s->count++], e);
        if (status)
            return status;
    }
    qsort(s->entries, s->count, sizeof *s->entries, safetensors_by_offset);
    return safetensors_check_holes(s, e);
}

int safetensors_open(const char *path, struct safetensors **out, struct error *e)
{
    int fd = file_open(path, e);
    return fd < 0 ? fd : safetensors_open_fd(fd, path, out, e);
}

int safetensors_open_fd(int fd, const char *path, struct safetensors **out, struct error *e)
{
    struct safetensors *s = xcalloc(1, sizeof *s);

    s->path = xstrdup(path);
    s->fd = fd;
    int status = safetensors_read_header(s, e);
    if (status == -ERR_CORRUPT)
        status = content_explain_fd(fd, path, "a safetensors file", e);
    if (!status)
        status = safetensors_read_entries(s, e);
    if (status) {
        safetensors_close(s);
        return status;
    }
    *out = s;
    return 0;
}

void safetensors_close(struct safetensors *s)
{
    if (!s)
        return;
    close(s->fd);
    json_decref(s->header);
    free(s->entries);
    free(s->path);
    free(s);
}

size_t safetensors_tensors(const struct safetensors *s)
{
    return s->count;
}

const struct safetensors_tensor *safetensors_at(const struct safetensors *s, size_t i)
{
    return &s->entries[i].tensor;
}

const struct safetensors_tensor *safetensors_find(const struct safetensors *s, const char *name)
{
    for (size_t i = 0; i < s->count; i++)
        if (!strcmp(s->entries[i].tensor.name, name))
            return &s->entries[i].tensor;
    return NULL;
}

bool safetensors_strip(struct safetensors *s, const char *prefix)
{
    size_t length = strlen(prefix);

    for (size_t i = 0; i < s->count; i++)
        if (strncmp(s->entries[i].tensor.name, prefix, length) != 0)
            return false;
    for (size_t i = 0; i < s->count; i++)
        s->entries[i].tensor.name += length;
    return s->count > 0;
}

const char *safetensors_metadata(const struct safetensors *s, const char *key)
{
    return json_string_value(json_object_get(json_object_get(s->header, "__metadata__"), key));
}

int safetensors_read(struct safetensors *s, const struct safetensors_tensor *t, void *data,
                     struct error *e)
{
    const struct entry *entry = (const struct entry *)t; /* t is its first member */
    int failed = safetensors_read_all(s->fd, data, safetensors_bytes(t), s->data + entry->first);

    if (failed < 0)
        return safetensors_corrupt(s, e, s->data + entry->first,
                                   "the file became shorter while it was read");
    return failed ? error_set_errno(e, failed, "cannot read %s", s->path) : 0;
}

const char *safetensors_dtype_name(enum safetensors_dtype dtype)
{
    return dtypes[dtype].name;
}

static float safetensors_float_of_half(uint16_t half)
{
    unsigned exponent = half >> 10 & 31, fraction = half & 0x3ff;
    float value = exponent == 31 ? (fraction ? NAN : INFINITY)
                  : exponent     ? ldexpf((float)(fraction | 0x400), (int)exponent - 25)
                                 : ldexpf((float)fraction, -24);

    return half & 0x8000 ? -value : value;
}

static float safetensors_float_of_bfloat(uint16_t high)
{
    uint32_t bits = (uint32_t)high << 16;
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

int safetensors_read_floats(struct safetensors *s, const struct safetensors_tensor *t, float *data,
                            struct error *e)
{
    size_t count = safetensors_count(t);

    if (t->dtype == SAFETENSORS_F32)
        return safetensors_read(s, t, data, e);
    if (t->dtype == SAFETENSORS_I64)
        return error_set(e, ERR_INVALID, "%s: tensor \"%.200s\" is of integers", s->path, t->name);
    uint16_t *halves = malloc(count ? safetensors_bytes(t) : 1);
    int status = halves ? safetensors_read(s, t, halves, e)
                        : error_set(e, ERR_NO_MEMORY, "no memory to read %s", s->path);
    for (size_t i = 0; i < count && !status; i++) {
        uint16_t value = le16toh(halves[i]);
        data[i] = t->dtype == SAFETENSORS_F16 ? safetensors_float_of_half(value)
                                              : safetensors_float_of_bfloat(value);
    }
    free(halves);
    return status;
}
