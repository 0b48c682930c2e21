/* safetensors files (https://github.com/huggingface/safetensors, "Format"): u64 little-endian
 * header length, a JSON header padded with spaces, then the tensors' bytes without holes,
 * row-major. Reads F32, F16, BF16 and I64; writes F32 and I64. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define SAFETENSORS_HEADER_LIMIT_BYTES 100000000 /* of the format */
#define SAFETENSORS_DIMS_MAX           8

enum safetensors_dtype { SAFETENSORS_F32, SAFETENSORS_I64, SAFETENSORS_F16, SAFETENSORS_BF16 };
const char *safetensors_dtype_name(enum safetensors_dtype dtype); /* "F32" */

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

/* Writes atomically, by a temporary file beside path; on failure path stays as it was. ERR_NO_SPACE
 * for a full disk. */
int safetensors_write(const char *path, const struct safetensors_tensor *tensors, size_t count,
                      const struct safetensors_meta *meta, size_t meta_count,
                      safetensors_fill *fill, void *context, struct error *e);

struct safetensors;

/* Opens a regular file and checks it fully: header, dtypes, shapes against offsets, no hole,
 * overlap or trailing bytes. ERR_CORRUPT names file and offset; ERR_UNSUPPORTED for another
 * dtype. */
int safetensors_open(const char *path, struct safetensors **out, struct error *e);

/* Takes over the descriptor, also on error; path is for messages. */
int safetensors_open_fd(int fd, const char *path, struct safetensors **out, struct error *e);
void safetensors_close(struct safetensors *s);

size_t safetensors_tensors(const struct safetensors *s);
const struct safetensors_tensor *safetensors_at(const struct safetensors *s, size_t i);
const struct safetensors_tensor *safetensors_find(const struct safetensors *s, const char *name);
const char *safetensors_metadata(const struct safetensors *s, const char *key);

int safetensors_read(struct safetensors *s, const struct safetensors_tensor *t, void *data,
                     struct error *e);

/* F32, F16 or BF16 as fp32, which is exact. */
int safetensors_read_floats(struct safetensors *s, const struct safetensors_tensor *t, float *data,
                            struct error *e);
