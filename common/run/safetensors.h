/* safetensors files (https://github.com/huggingface/safetensors, "Format"): the length of the
 * header as little-endian u64, a JSON header padded with spaces, then the bytes of the tensors
 * without holes, row-major. Reads F32, F16, BF16 and I64; writes F32 and I64. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define SAFETENSORS_HEADER_LIMIT_BYTES 100000000 /* limit of the format */
#define SAFETENSORS_DIMS_MAX           8

enum safetensors_dtype { SAFETENSORS_F32, SAFETENSORS_I64, SAFETENSORS_F16, SAFETENSORS_BF16 };
const char *safetensors_dtype_name(enum safetensors_dtype dtype); /* for example "F32" */

struct safetensors_meta {
    const char *key, *value;
};

struct safetensors_tensor {
    const char *name;
    enum safetensors_dtype dtype;
    int dims;
    int64_t shape[SAFETENSORS_DIMS_MAX];
};

size_t safetensors_bytes(const struct safetensors_tensor *t);

typedef void safetensors_fill(size_t i, void *data, void *context);

/* Replaces a file atomically; on an error the old file stays. ERR_NO_SPACE: disk full. */
int safetensors_write(const char *path, const struct safetensors_tensor *tensors, size_t count,
                      const struct safetensors_meta *meta, size_t meta_count,
                      safetensors_fill *fill, void *context, struct error *e);

struct safetensors;

/* Opens a regular file and checks it completely: header, dtypes, shapes against offsets, no holes,
 * overlap or trailing bytes. ERR_CORRUPT with file and offset, or ERR_UNSUPPORTED (dtype). */
int safetensors_open(const char *path, struct safetensors **out, struct error *e);

/* Like safetensors_open, for a descriptor, which it always owns. path is used in messages. */
int safetensors_open_fd(int fd, const char *path, struct safetensors **out, struct error *e);
void safetensors_close(struct safetensors *s);

size_t safetensors_tensors(const struct safetensors *s);
const struct safetensors_tensor *safetensors_at(const struct safetensors *s, size_t i);
const struct safetensors_tensor *safetensors_find(const struct safetensors *s, const char *name);
const char *safetensors_metadata(const struct safetensors *s, const char *key);

/* Removes the prefix from the names if all of them have it; returns whether they had. */
bool safetensors_strip(struct safetensors *s, const char *prefix);

int safetensors_read(struct safetensors *s, const struct safetensors_tensor *t, void *data,
                     struct error *e);

/* Reads F32, F16 or BF16 as fp32, which is exact. */
int safetensors_read_floats(struct safetensors *s, const struct safetensors_tensor *t, float *data,
                            struct error *e);
