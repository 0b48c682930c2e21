#include "common/system/content.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define TO_JPEG    "convert it to JPEG or PNG"
#define TO_TENSORS "convert it to safetensors, as under EXAMPLES in train-job(5)"

struct head {
    const unsigned char *at;
    size_t bytes;
};

static bool content_has(const struct head *h, size_t offset, const char *magic, size_t bytes)
{
    return h->bytes >= offset + bytes && memcmp(h->at + offset, magic, bytes) == 0;
}

/* A magic number of two bytes is weak evidence: a TFRecord file may begin with a length of the same
 * two bytes, followed by zeros. */
static bool content_is_no_length(const struct head *h)
{
    return h->bytes >= 8 && memcmp(h->at + 3, "\0\0\0\0\0", 5) != 0;
}

static bool content_is_zlib(const struct head *h)
{
    return content_is_no_length(h) && h->at[0] == 0x78 && (h->at[0] << 8 | h->at[1]) % 31 == 0;
}

static bool content_is_bmp(const struct head *h)
{
    return content_has(h, 0, "BM", 2) && content_has(h, 6, "\0\0\0\0", 4) && h->bytes > 14 &&
           (h->at[14] == 12 || h->at[14] == 40 || h->at[14] == 108 || h->at[14] == 124);
}

static bool content_is_torch_zip(const struct head *h)
{
    return content_has(h, 0, "PK\3\4", 4) && memmem(h->at, h->bytes, "/data.pkl", 9);
}

static bool content_is_pickle(const struct head *h)
{
    return content_is_no_length(h) && h->at[0] == 0x80 && h->at[1] >= 2 && h->at[1] <= 5;
}

static bool content_is_tensors(const struct head *h)
{
    for (size_t i = 8; i < 16; i++)
        if (i >= h->bytes || !isprint(h->at[i]))
            return false;
    return content_has(h, 8, "{\"", 2);
}

static bool content_is_onnx(const struct head *h)
{
    if (h->bytes < 5 || h->at[0] != 0x08 || h->at[1] > 0x20 || h->at[2] != 0x12)
        return false;
    for (size_t i = 4; i < 4u + h->at[3]; i++)
        if (i >= h->bytes || !isgraph(h->at[i]))
            return false;
    return h->at[3] > 0;
}

static bool content_is_html(const struct head *h)
{
    static const char *const begins[] = {"<!doctype html", "<html", "<head", "<?xml", "<!--"};
    size_t at = content_has(h, 0, "\xef\xbb\xbf", 3) ? 3 : 0;

    while (at < h->bytes && isspace(h->at[at]))
        at++;
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (h->bytes - at >= strlen(begins[i]) &&
            strncasecmp((const char *)h->at + at, begins[i], strlen(begins[i])) == 0)
            return true;
    return false;
}

static bool content_is_heif(const struct head *h)
{
    return content_has(h, 4, "ftyp", 4) &&
           (content_has(h, 8, "hei", 3) || content_has(h, 8, "hev", 3) ||
            content_has(h, 8, "mif1", 4) || content_has(h, 8, "msf1", 4));
}

static bool content_is_text(const struct head *h)
{
    for (size_t i = 0; i < h->bytes; i++)
        if (h->at[i] == 127 || (h->at[i] < ' ' && !isspace(h->at[i])))
            return false;
    return h->bytes > 0;
}

#define AT(offset, magic) (offset), (magic), sizeof(magic) - 1, NULL
#define BY(test)          0, NULL, 0, (test)

/* clang-format off */
static const struct {
    struct content is;
    size_t offset;
    const char *magic;
    size_t magic_bytes;
    bool (*test)(const struct head *h); /* used instead of a magic number */
} kinds[] = {
    {{"a Git LFS pointer", "fetch the file itself with git lfs pull", false},  AT(0, "version https://git-lfs")},
    {{"a git-annex pointer", "fetch the file itself with git annex get", false}, AT(0, "/annex/objects/")},
    {{"a JPEG image", NULL, false},                                            AT(0, "\xff\xd8\xff")},
    {{CONTENT_PNG, "train-prep convert makes JPEGs of PNG files", false},      AT(0, "\x89PNG\r\n\x1a\n")},
    {{"a GIF image", TO_JPEG, false},                                          AT(0, "GIF8")},
    {{"a BMP image", TO_JPEG, false},                                          BY(content_is_bmp)},
    {{"a WebP image", TO_JPEG, false},                                         AT(8, "WEBP")},
    {{"a TIFF image", TO_JPEG, false},                                         AT(0, "II*\0")},
    {{"a TIFF image", TO_JPEG, false},                                         AT(0, "MM\0*")},
    {{"an AVIF image", TO_JPEG, false},                                        AT(4, "ftypavi")},
    {{"a HEIC image", TO_JPEG, false},                                         BY(content_is_heif)},
    {{"a JPEG XL image", TO_JPEG, false},                                      AT(0, "\0\0\0\x0cJXL ")},
    {{"a JPEG 2000 image", TO_JPEG, false},                                    AT(0, "\0\0\0\x0cjP  ")},
    {{"a PDF document", NULL, false},                                          AT(0, "%PDF-")},
    {{"a gzip file", "decompress it with gzip -d", true},                      AT(0, "\x1f\x8b\x08")},
    {{"a zlib stream", "decompress it with zlib-flate -uncompress", true},     BY(content_is_zlib)},
    {{"a Zstandard file", "decompress it with zstd -d", true},                 AT(0, "\x28\xb5\x2f\xfd")},
    {{"an xz file", "decompress it with xz -d", true},                         AT(0, "\xfd" "7zXZ\0")},
    {{"a bzip2 file", "decompress it with bzip2 -d", true},                    AT(0, "BZh")},
    {{"an LZ4 file", "decompress it with lz4 -d", true},                       AT(0, "\x04\x22\x4d\x18")},
    {{"a PyTorch file", TO_TENSORS, false},                                    BY(content_is_torch_zip)},
    {{"a PyTorch file", TO_TENSORS, false},                                    AT(2, "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19")},
    {{"a Python pickle", TO_TENSORS, false},                                   BY(content_is_pickle)},
    {{"a ZIP archive", "unpack it", false},                                    AT(0, "PK\3\4")},
    {{"a 7z archive", "unpack it", false},                                     AT(0, "7z\xbc\xaf\x27\x1c")},
    {{"a tar archive", "unpack it", false},                                    AT(257, "ustar")},
    {{"an HDF5 file", TO_TENSORS, false},                                      AT(0, "\x89HDF\r\n\x1a\n")},
    {{"an ONNX model", TO_TENSORS, false},                                     BY(content_is_onnx)},
    {{"a GGUF model", TO_TENSORS, false},                                      AT(0, "GGUF")},
    {{"a TensorFlow Lite model", TO_TENSORS, false},                           AT(4, "TFL3")},
    {{"a NumPy array", NULL, false},                                           AT(0, "\x93NUMPY")},
    {{"a MATLAB file", NULL, false},                                           AT(0, "MATLAB ")},
    {{"a Parquet file", NULL, false},                                          AT(0, "PAR1")},
    {{"an LMDB database", NULL, false},                                        AT(16, "\xde\xc0\xef\xbe")},
    {{"a RecordIO file of MXNet", NULL, false},                                AT(0, "\x0a\x23\xd7\xce")},
    {{"an SQLite database", NULL, false},                                      AT(0, "SQLite format 3")},
    {{"a program", NULL, false},                                               AT(0, "\x7f" "ELF")},
    {{"a safetensors file", NULL, false},                                      BY(content_is_tensors)},
    {{"an IDX file", "train-prep convert makes shards of it", false},          AT(0, "\0\0\x08\x01")},
    {{"an IDX file", "train-prep convert makes shards of it", false},          AT(0, "\0\0\x08\x03")},
    {{"an HTML or XML page", "it may be the error page of a download", false}, BY(content_is_html)},
    {{"a text file", NULL, false},                                             BY(content_is_text)},
};
/* clang-format on */

const struct content *content_of(const void *head, size_t bytes)
{
    struct head h = {head, bytes < CONTENT_HEAD_BYTES ? bytes : CONTENT_HEAD_BYTES};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].test ? kinds[i].test(&h)
                          : content_has(&h, kinds[i].offset, kinds[i].magic, kinds[i].magic_bytes))
            return &kinds[i].is;
    return NULL;
}

int content_explain(const char *path, const void *head, size_t bytes, const char *wanted,
                    struct error *e)
{
    const struct content *c = content_of(head, bytes);

    if (!c || strstr(c->what, wanted))
        return -(int)e->code;
    if (c->compressed)
        return error_set(e, e->code, "%s is %s, not %s: a compressed one is not read; %s", path,
                         c->what, wanted, c->advice);
    return error_set(e, e->code, "%s is %s, not %s%s%s", path, c->what, wanted,
                     c->advice ? ": " : "", c->advice ? c->advice : "");
}

int content_explain_fd(int fd, const char *path, const char *wanted, struct error *e)
{
    char head[CONTENT_HEAD_BYTES];
    ssize_t got = pread(fd, head, sizeof head, 0);

    return got > 0 ? content_explain(path, head, (size_t)got, wanted, e) : -(int)e->code;
}

int content_skip_mark(const char **text, size_t *bytes, struct error *e)
{
    struct head h = {(const unsigned char *)*text, *bytes};

    if (content_has(&h, 0, "\xff\xfe", 2) || content_has(&h, 0, "\xfe\xff", 2) ||
        content_has(&h, 0, "\0\0\xfe\xff", 4))
        return error_set(
            e, ERR_USAGE,
            "the text is in UTF-16 or UTF-32 by its byte order mark; save it as UTF-8");
    if (content_has(&h, 0, "\xef\xbb\xbf", 3)) {
        *text += 3;
        *bytes -= 3;
    }
    return 0;
}

int content_drop_mark(char *text, size_t *bytes, struct error *e)
{
    const char *begin = text;
    int status = content_skip_mark(&begin, bytes, e);

    if (!status)
        memmove(text, begin, *bytes + 1);
    return status;
}
