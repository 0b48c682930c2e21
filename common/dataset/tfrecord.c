#include "common/dataset/tfrecord.h"

#include <endian.h>
#include <inttypes.h>
#include <isa-l/crc.h>
#include <string.h>

uint32_t tfrecord_crc32c(const void *data, size_t bytes)
{
    const size_t max = 1 << 30; /* ISA-L takes an int */
    const uint8_t *at = data;
    uint32_t crc = 0xffffffff;

    for (; bytes > max; at += max, bytes -= max)
        crc = crc32_iscsi((unsigned char *)at, (int)max, crc);
    return ~crc32_iscsi((unsigned char *)at, (int)bytes, crc);
}

uint32_t tfrecord_mask(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static uint32_t tfrecord_read_u32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return le32toh(value);
}

static void tfrecord_write_u32(uint8_t *at, uint32_t value)
{
    value = htole32(value);
    memcpy(at, &value, sizeof value);
}

void tfrecord_header(uint64_t payload_bytes, uint8_t out[TFRECORD_HEADER_BYTES])
{
    uint64_t length = htole64(payload_bytes);
    memcpy(out, &length, sizeof length);
    tfrecord_write_u32(out + 8, tfrecord_mask(tfrecord_crc32c(out, 8)));
}

void tfrecord_footer(const void *payload, size_t bytes, uint8_t out[TFRECORD_FOOTER_BYTES])
{
    tfrecord_write_u32(out, tfrecord_mask(tfrecord_crc32c(payload, bytes)));
}

int tfrecord_frame(const uint8_t *header, uint64_t file_bytes, const char *name, uint64_t offset,
                   uint64_t *payload_bytes, struct error *e)
{
    uint64_t rest = file_bytes - offset, length;

    if (rest < TFRECORD_HEADER_BYTES)
        return error_set(e, ERR_CORRUPT,
                         "%s is truncated: the record at byte %" PRIu64 " has only %" PRIu64
                         " of the %d bytes of its header",
                         name, offset, rest, TFRECORD_HEADER_BYTES);
    memcpy(&length, header, sizeof length);
    length = le64toh(length);
    if (tfrecord_read_u32(header + 8) != tfrecord_mask(tfrecord_crc32c(header, 8)))
        return error_set(e, ERR_CORRUPT,
                         "%s is corrupt: the checksum of the record length at byte %" PRIu64
                         " is wrong",
                         name, offset);
    rest -= TFRECORD_HEADER_BYTES;
    if (length > rest || rest - length < TFRECORD_FOOTER_BYTES)
        return error_set(e, ERR_CORRUPT,
                         "%s is truncated: the record at byte %" PRIu64 " is %" PRIu64
                         " bytes long, but only %" PRIu64 " bytes follow",
                         name, offset, length, rest);
    *payload_bytes = length;
    return 0;
}

int tfrecord_check(const uint8_t *payload, uint64_t payload_bytes, const char *name,
                   uint64_t offset, struct error *e)
{
    if (tfrecord_read_u32(payload + payload_bytes) ==
        tfrecord_mask(tfrecord_crc32c(payload, payload_bytes)))
        return 0;
    return error_set(e, ERR_CORRUPT,
                     "%s is corrupt: the checksum of the record at byte %" PRIu64 " (%" PRIu64
                     " bytes) is wrong",
                     name, offset, payload_bytes);
}
