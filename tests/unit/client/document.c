/* The paths of a job document from the command line. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/document.h"

static char top[] = "/tmp/traind-document-XXXXXX";

static int make_absolute(const char *folder, json_t *document, struct error *e)
{
    bool changed;

    cr_assert_not_null(mkdtemp(top));
    cr_assert_eq(chdir(top) || mkdir(folder, 0700) || chdir(folder), 0);
    int status = document_paths_absolute(document, &changed, e);
    cr_assert_eq(chdir("/") || chdir(top) || rmdir(folder) || rmdir(top), 0);
    return status;
}

Test(document, a_path_is_relative_to_the_current_folder)
{
    json_t *document = json_pack("{s:{s:s}}", "data", "train", "./shards");
    struct error e = {0};

    cr_expect_eq(make_absolute("jobs", document, &e), 0, "%s", e.text);
    const char *path =
        json_string_value(json_object_get(json_object_get(document, "data"), "train"));
    cr_expect_eq(strncmp(path, top, strlen(top)), 0);
    cr_expect_str_eq(path + strlen(top), "/jobs/shards");
    json_decref(document);
}

Test(document, a_folder_with_a_name_unfit_for_a_document_is_refused)
{
    json_t *document = json_pack("{s:{s:s}}", "data", "train", "shards");
    struct error e = {0};

    cr_expect_eq(make_absolute("\xff", document, &e), -ERR_INVALID);
    cr_expect_not_null(strstr(e.text, "not UTF-8"), "%s", e.text);
    json_decref(document);
}
