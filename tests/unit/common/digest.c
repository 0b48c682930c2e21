#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/digest.h"

/* printf abc | xxh128sum */
#define ABC "06b05ab6733a618578af5f94892f3950"

Test(digest, equals_the_output_of_xxh128sum)
{
    char hex[DIGEST_BYTES];
    digest_text("abc", 3, hex);
    cr_assert_str_eq(hex, ABC);
}

Test(digest, of_a_file_equals_that_of_its_bytes)
{
    char path[] = "/tmp/digest-XXXXXX", hex[DIGEST_BYTES], same[DIGEST_BYTES];
    size_t bytes = ((size_t)1 << 20) + 7; /* more than one piece */
    char *data = malloc(bytes);
    struct error e;
    int fd = mkstemp(path);

    for (size_t i = 0; i < bytes; i++)
        data[i] = (char)(i * 31);
    cr_assert_eq(write(fd, data, bytes), (ssize_t)bytes);
    close(fd);
    digest_text(data, bytes, same);
    cr_assert_eq(digest_file(path, hex, &e), 0);
    cr_assert_str_eq(hex, same);
    data[bytes - 1] ^= 1;
    digest_text(data, bytes, same);
    cr_assert_str_neq(hex, same);
    unlink(path);
    free(data);
    cr_assert_eq(digest_file(path, hex, &e), -ERR_NOT_FOUND);
    cr_assert_not_null(strstr(e.text, path));
}

Test(digest, can_be_computed_in_parts)
{
    char hex[DIGEST_BYTES];
    struct digest *d = digest_begin();

    digest_add(d, "a", 1);
    digest_add(d, "", 0);
    digest_add(d, "bc", 2);
    digest_end(d, hex);
    cr_assert_str_eq(hex, ABC);
    digest_end(NULL, hex);
    cr_assert_str_eq(hex, "");
}
