#include <criterion/criterion.h>
#include <string.h>

#include "common/dataset/tfrecord.h"
#include "common/system/content.h"

#define HEAD(bytes, what)                                                                          \
    {                                                                                              \
        bytes, sizeof(bytes) - 1, what                                                             \
    }

/* What a system test has no file of. */
Test(content, is_told_by_the_first_bytes)
{
    static const struct {
        const char *head;
        size_t bytes;
        const char *what; /* NULL: not known */
    } heads[] = {
        HEAD("/annex/objects/MD5E-s1--0.jpg\n", "a git-annex pointer"),
        HEAD("\0\0\0\x18"
             "ftypheic\0\0\0\0",
             "a HEIC image"),
        HEAD("\0\0\0\x18"
             "ftypmif1\0\0\0\0",
             "a HEIC image"),
        HEAD("\0\0\0\x1c"
             "ftypavif\0\0\0\0",
             "an AVIF image"),
        HEAD("RIFF\1\0\0\0WEBPVP8 ", "a WebP image"),
        HEAD("MM\0*\0\0\0\x08", "a TIFF image"),
        HEAD("BM\x36\x10\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0", "a BMP image"),
        HEAD("\x28\xb5\x2f\xfd\x24", "a Zstandard file"),
        HEAD("BZh91AY&SY", "a bzip2 file"),
        HEAD("\x78\x01\xcb\x48\xcd\xc9\xc9\x07", "a zlib stream"),
        HEAD("\x78\xda\xcb\x48\xcd\xc9\xc9\x07", "a zlib stream"),
        HEAD("\xef\xbb\xbf\r\n<HTML>", "an HTML or XML page"),
        HEAD("<?xml version=\"1.0\"?><Error>", "an HTML or XML page"),
        HEAD("\x08\x08\x12\x07pytorch", "an ONNX model"),
        HEAD("\x80\x04\x95\x10\0\0\0\0", "a Python pickle"),
        HEAD("\x20\0\0\0\0\0\0\0{\"a\":{\"dt", "a safetensors file"),
        HEAD("image,label\nx.jpg,\xc3\xa4\n", "a text file"),
        HEAD("", NULL),
        HEAD("\0\1\2\3\4\5\6\7", NULL),
        HEAD("\x08\x08\x12\x07pyto", NULL), /* a name that is cut */
    };

    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        const struct content *c = content_of(heads[i].head, heads[i].bytes);
        if (heads[i].what)
            cr_expect(c && strcmp(c->what, heads[i].what) == 0, "%s, not %s", c ? c->what : "none",
                      heads[i].what);
        else
            cr_expect_null(c, "%zu: %s", i, c ? c->what : "");
    }
}

/* A shard's first record may have any length, as that which looks like "BM" or zlib's header. */
Test(content, a_broken_shard_is_not_taken_for_something_else)
{
    int told = 0;

    for (uint64_t length = 1; length < 3000000; length++) {
        uint8_t header[TFRECORD_HEADER_BYTES + 8] = {0};
        tfrecord_header(length, header);
        header[8] ^= 1;
        memcpy(header + TFRECORD_HEADER_BYTES, "\x0a\xff\x07\x0a\x10\x0a\x0c", 7);
        told += content_of(header, sizeof header) != NULL;
    }
    cr_expect_lt(told, 3, "%d of 3 million", told);
}

Test(content, what_is_as_wanted_or_not_known_keeps_its_error)
{
    static const char tensors[] = "\x20\0\0\0\0\0\0\0{\"a\":{\"dt";
    struct error e;

    error_set(&e, ERR_CORRUPT, "its own words");
    cr_expect_eq(content_explain("x", tensors, sizeof tensors - 1, "a safetensors file", &e),
                 -ERR_CORRUPT);
    cr_expect_str_eq(e.text, "its own words");
    content_explain("x", "\0\1", 2, "a safetensors file", &e);
    cr_expect_str_eq(e.text, "its own words");
    cr_expect_eq(content_explain("x", "hello", 5, "a safetensors file", &e), -ERR_CORRUPT);
    cr_expect_str_eq(e.text, "x is a text file, not a safetensors file");
}

Test(content, a_byte_order_mark_is_skipped_or_named)
{
    static const char wide[][5] = {"\xff\xfe{", "\xfe\xff", "\xff\xfe\0\0", "\0\0\xfe\xff"};
    struct error e;
    const char *text = "\xef\xbb\xbf{}";
    size_t bytes = 5;

    cr_assert_eq(content_skip_mark(&text, &bytes, &e), 0);
    cr_expect(bytes == 2 && strcmp(text, "{}") == 0);
    cr_assert_eq(content_skip_mark(&text, &bytes, &e), 0);
    cr_expect_eq(bytes, 2);
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
        text = wide[i];
        bytes = 4;
        cr_expect_eq(content_skip_mark(&text, &bytes, &e), -ERR_USAGE, "%zu", i);
    }
    char own[] = "\xef\xbb\xbf";
    bytes = 3;
    cr_assert_eq(content_drop_mark(own, &bytes, &e), 0);
    cr_expect(bytes == 0 && *own == '\0');
}
