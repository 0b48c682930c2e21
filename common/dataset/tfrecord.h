/* TFRecord framing (also used by TensorBoard event files), little-endian: u64 length, u32 masked
 * crc32c(length), payload, u32 masked crc32c(payload). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define TFRECORD_HEADER_BYTES 12
#define TFRECORD_FOOTER_BYTES 4

/* CRC-32C (Castagnoli); that of "123456789" is 0xE3069283. */
uint32_t tfrecord_crc32c(const void *data, size_t bytes);

/* Rotates and offsets a CRC for storage, because CRCs of data with CRCs are problematic. */
uint32_t tfrecord_mask(uint32_t crc);

void tfrecord_header(uint64_t payload_bytes, uint8_t out[TFRECORD_HEADER_BYTES]);
void tfrecord_footer(const void *payload, size_t bytes, uint8_t out[TFRECORD_FOOTER_BYTES]);

/* Checks the frame at offset: the length CRC, and that the frame is within the file. header: up to
 * 12 bytes from there. The next frame is at offset + 12 + *payload_bytes + 4. Returns ERR_CORRUPT
 * with file and offset. */
int tfrecord_frame(const uint8_t *header, uint64_t file_bytes, const char *name, uint64_t offset,
                   uint64_t *payload_bytes, struct error *e);

/* Checks the payload's CRC, which follows it. Returns ERR_CORRUPT. */
int tfrecord_check(const uint8_t *payload, uint64_t payload_bytes, const char *name,
                   uint64_t offset, struct error *e);
