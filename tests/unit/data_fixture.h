/* Small data sets in temporary folders, for the tests of everything that reads images. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* A new temporary folder; removed with all in it, and freed, by fixture_remove. */
char *fixture_folder(void);
void fixture_remove(char *folder);

/* folder/name in a static buffer of its own for each of the last 8 calls. */
const char *fixture_path(const char *folder, const char *name);

void fixture_write(const char *path, const void *data, size_t bytes);
uint8_t *fixture_read(const char *path, size_t *bytes);

/* A smooth picture that depends on seed, as a JPEG: 1 channel grey, 3 RGB, 4 CMYK as Adobe writes
 * it. The caller frees it. */
uint8_t *fixture_jpeg(int width, int height, int channels, int seed, size_t *bytes);

/* The same in colour with ten scans. */
uint8_t *fixture_progressive_jpeg(int width, int height, size_t *bytes);

/* One framed tf.Example; label as stored (1-based). The caller frees it. */
uint8_t *fixture_record(const uint8_t *jpeg, size_t jpeg_bytes, int64_t label, const char *filename,
                        size_t *bytes);

/* Writes a shard of count grey 28x28 images numbered from first: named "NUMBER.jpg", stored label 1
 * + number % classes. */
void fixture_shard(const char *path, int first, int count, int classes);
