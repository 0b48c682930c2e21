#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/run/safetensors.h"

static char folder[64], path[128];

static void make_tensors(void)
{
    snprintf(folder, sizeof folder, "/tmp/safetensors-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/f.safetensors", folder);
}

static void remove_tensors(void)
{
    unlink(path);
    cr_assert_eq(rmdir(folder), 0, "no temporary file is left");
}

static void fill_small_tensor(size_t i, void *data, void *context)
{
    (void)context;
    if (i == 0)
        memcpy(data, (float[]){1, 2, 3, 4, 5, 6}, 24);
    else
        memcpy(data, &(int64_t){42}, 8);
}

static const struct safetensors_tensor tensors[] = {
    {"a", SAFETENSORS_F32, 2, {2, 3}},
    {"b", SAFETENSORS_I64, 0, {0}   }
};

Test(safetensors, written_tensors_are_read_back, .init = make_tensors, .fini = remove_tensors)
{
    struct safetensors_meta meta = {"k", "v \"quoted\""};
    struct safetensors *s;
    struct error e;
    float a[6];
    int64_t b;

    cr_assert_eq(safetensors_write(path, tensors, 2, &meta, 1, fill_small_tensor, NULL, &e), 0,
                 "%s", e.text);
    cr_assert_eq(safetensors_open(path, &s, &e), 0, "%s", e.text);
    cr_assert_eq(safetensors_tensors(s), 2);
    cr_assert_str_eq(safetensors_at(s, 0)->name, "a");
    cr_assert_eq(safetensors_read(s, safetensors_find(s, "a"), a, &e), 0);
    cr_assert_eq(safetensors_read(s, safetensors_find(s, "b"), &b, &e), 0);
    cr_assert_eq(a[5], 6);
    cr_assert_eq(b, 42);
    cr_assert_str_eq(safetensors_metadata(s, "k"), "v \"quoted\"");
    cr_assert_null(safetensors_find(s, "c"));
    safetensors_close(s);
}

static void write_tensor_file(uint64_t length, const char *header, size_t data_bytes)
{
    FILE *f = fopen(path, "wb");
    char zeros[64] = {0};
    fwrite(&length, 8, 1, f);
    fwrite(header, 1, strlen(header), f);
    fwrite(zeros, 1, data_bytes, f);
    fclose(f);
}

static void tensors_refused(const char *header, size_t data_bytes, int code, const char *words)
{
    struct safetensors *s;
    struct error e;
    write_tensor_file(strlen(header), header, data_bytes);
    cr_assert_eq(safetensors_open(path, &s, &e), -code, "%s: %s", header, e.text);
    cr_assert_not_null(strstr(e.text, words), "%s: %s", header, e.text);
    cr_assert_not_null(strstr(e.text, path), "names the file: %s", e.text);
}

#define TENSOR(name, dtype, shape, from, to)                                                       \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" #from "," #to   \
    "]}"

Test(safetensors, refuses_unsound_headers, .init = make_tensors, .fini = remove_tensors)
{
    tensors_refused("{\"a\": ", 0, ERR_CORRUPT, "at byte");
    tensors_refused("[]", 0, ERR_CORRUPT, "not a JSON object");
    tensors_refused("{" TENSOR("a", "F32", "[2]", 0, 8) "}", 4, ERR_CORRUPT, "cut off");
    tensors_refused("{" TENSOR("a", "F32", "[2]", 0, 4) "}", 4, ERR_CORRUPT,
                    "do not match its shape");
    tensors_refused("{" TENSOR("a", "F32", "[-1]", 0, 4) "}", 4, ERR_CORRUPT, "whole number");
    tensors_refused("{" TENSOR("a", "F32", "[4294967296, 4294967296, 4]", 0, 0) "}", 0, ERR_CORRUPT,
                    "too large");
    tensors_refused("{" TENSOR("a", "F32", "[1]", 8, 4) "}", 8, ERR_CORRUPT, "growing");
    tensors_refused("{" TENSOR("a", "F64", "[2]", 0, 16) "}", 16, ERR_UNSUPPORTED, "F64");
    tensors_refused("{" TENSOR("a", "F32", "[1]", 0, 4) "," TENSOR("b", "F32", "[1]", 8, 12) "}",
                    12, ERR_CORRUPT, "hole");
    tensors_refused("{" TENSOR("a", "F32", "[2]", 0, 8) "," TENSOR("b", "F32", "[1]", 4, 8) "}", 8,
                    ERR_CORRUPT, "overlap");
    tensors_refused("{" TENSOR("a", "F32", "[1]", 0, 4) "}", 8, ERR_CORRUPT, "after the last");
    tensors_refused("{\"a\": {\"dtype\": 1}}", 0, ERR_CORRUPT, "no dtype");
    tensors_refused("{\"a\": 3}", 0, ERR_CORRUPT, "not described");
    tensors_refused("{\"__metadata__\": {\"a\": 1}}", 0, ERR_CORRUPT, "non-string values");
}

Test(safetensors, refuses_invalid_lengths, .init = make_tensors, .fini = remove_tensors)
{
    struct safetensors *s;
    struct error e;
    write_tensor_file(100000001, "{}", 0);
    cr_assert_eq(safetensors_open(path, &s, &e), -ERR_CORRUPT);
    cr_assert_not_null(strstr(e.text, "100000000"), "%s", e.text);
    write_tensor_file(1000, "{}", 0);
    cr_assert_eq(safetensors_open(path, &s, &e), -ERR_CORRUPT);
    cr_assert_not_null(strstr(e.text, "cut off"), "%s", e.text);
    close(open(path, O_WRONLY | O_TRUNC));
    cr_assert_eq(safetensors_open(path, &s, &e), -ERR_CORRUPT);
    cr_assert_eq(safetensors_open(folder, &s, &e), -ERR_INVALID, "a folder");
    cr_assert_eq(safetensors_open("/nowhere/f", &s, &e), -ERR_NOT_FOUND);
}

/* A limit of the file size stands in for a full disk: the write fails in the middle. */
Test(safetensors, a_failed_write_leaves_the_old_file_and_no_other, .init = make_tensors,
     .fini = remove_tensors)
{
    static const struct safetensors_tensor large = {"a", SAFETENSORS_F32, 1, {6}};
    struct safetensors_tensor huge = {"a", SAFETENSORS_F32, 1, {100000}};
    struct rlimit limit = {4096, 4096};
    struct safetensors *s;
    struct error e;

    cr_assert_eq(safetensors_write(path, &large, 1, NULL, 0, fill_small_tensor, NULL, &e), 0, "%s",
                 e.text);
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    cr_assert_lt(safetensors_write(path, &huge, 1, NULL, 0, fill_small_tensor, NULL, &e), 0);
    cr_assert_not_null(strstr(e.text, path), "%s", e.text);
    cr_assert_eq(safetensors_open(path, &s, &e), 0, "%s", e.text);
    safetensors_close(s);
}

Test(safetensors, a_full_disk_is_told_as_such)
{
    struct error e;
    cr_assert_lt(safetensors_write("/nowhere/f", tensors, 2, NULL, 0, fill_small_tensor, NULL, &e),
                 0);
    cr_assert_eq(e.code, ERR_NOT_FOUND);
    cr_assert_eq(error_set_errno(&e, ENOSPC, "x"), -ERR_NO_SPACE);
}

static void fill_halves(size_t i, void *data, void *context)
{
    /* 1, the largest, the smallest of all, the smallest normal one, -0.333..., infinity */
    static const uint16_t half[] = {0x3c00, 0x7bff, 0x0001, 0x0400, 0xb555, 0x7c00};
    static const uint16_t bfloat[] = {0x3f80, 0x7f7f, 0x0001, 0x0080, 0xbeab, 0x7f80};

    (void)context;
    memcpy(data, i ? bfloat : half, sizeof half);
}

Test(safetensors, halves_are_read_as_floats, .init = make_tensors, .fini = remove_tensors)
{
    static const struct safetensors_tensor halves[] = {
        {"half",   SAFETENSORS_F16,  1, {6}},
        {"bfloat", SAFETENSORS_BF16, 1, {6}}
    };
    static const float want[2][6] = {
        {1, 65504,       0x1p-24f,  0x1p-14f,  -0.333251953125f, INFINITY},
        {1, 0x1.fep127f, 0x1p-133f, 0x1p-126f, -0.333984375f,    INFINITY}
    };
    struct safetensors *s;
    struct error e;
    float got[6];

    cr_assert_eq(safetensors_write(path, halves, 2, NULL, 0, fill_halves, NULL, &e), 0, "%s",
                 e.text);
    cr_assert_eq(safetensors_open(path, &s, &e), 0, "%s", e.text);
    for (size_t t = 0; t < 2; t++) {
        cr_assert_eq(safetensors_read_floats(s, safetensors_at(s, t), got, &e), 0, "%s", e.text);
        for (int i = 0; i < 6; i++)
            cr_assert(got[i] == want[t][i], "%zu: %d is %a, not %a", t, i, (double)got[i],
                      (double)want[t][i]);
    }
    safetensors_close(s);
}
