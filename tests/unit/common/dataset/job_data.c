/* What a job document leaves to its training data. tests/api/jobs/defaults.sh has shards, and who
 * else agrees. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/dataset/job_data.h"
#include "common/job/job_document.h"
#include "common/json.h"
#include "tests/unit/data_fixture.h"

static char *folder;

static void make_data(void)
{
    char path[4096];
    const char *top = getenv("top_srcdir");

    snprintf(path, sizeof path, "%s/etc/presets", top ? top : ".");
    setenv("TRAIND_PRESETS", path, 1);
    folder = fixture_folder();
}

static void remove_data(void)
{
    fixture_remove(folder);
}

TestSuite(job_data, .init = make_data, .fini = remove_data);

static void add_image(const char *class, int width, int height)
{
    char name[64];
    size_t bytes;
    uint8_t *jpeg = fixture_jpeg(width, height, 3, 1, &bytes);

    mkdir(fixture_path(folder, class), 0755);
    snprintf(name, sizeof name, "%s/1.jpg", class);
    fixture_write(fixture_path(folder, name), jpeg, bytes);
    free(jpeg);
}

/* Of data.train and these other keys, as in "\"model\": {}". */
static struct job_spec *read_job(const char *more, struct problems *problems)
{
    char text[4096];

    snprintf(text, sizeof text, "{\"data\": {\"train\": \"%s\"}%s%s}", folder, *more ? ", " : "",
             more);
    json_t *document = json_loads(text, 0, NULL);
    cr_assert_not_null(document, "%s", text);
    struct job_spec *spec = job_data_read(document, problems);
    json_decref(document);
    return spec;
}

static void expect_job(const char *more, int classes, int size, enum job_preprocess preprocess)
{
    struct problems problems = {0};
    struct job_spec *spec = read_job(more, &problems);
    char *words = problems_to_text(&problems);

    cr_expect_str_empty(words, "%s: %s", more, words);
    cr_expect_eq(spec->model.classes, classes, "%s: %d classes", more, (int)spec->model.classes);
    cr_expect_eq(spec->model.image_size, size, "%s: %d pixels", more, (int)spec->model.image_size);
    cr_expect_eq(spec->data.preprocess, preprocess, "%s", more);
    free(words);
    job_spec_destroy(spec);
}

Test(job_data, small_images_of_one_size_stay_as_they_are)
{
    add_image("a", 48, 48);
    add_image("b", 48, 48);
    add_image("c", 48, 48);
    expect_job("", 3, 48, JOB_PREPROCESS_WHOLE);
    expect_job("\"model\": {\"arch\": \"cnn\"}", 3, 48, JOB_PREPROCESS_WHOLE);
}

Test(job_data, a_network_has_a_smallest_size)
{
    add_image("a", 16, 16);
    add_image("b", 16, 16);
    expect_job("", 2, 32, JOB_PREPROCESS_WHOLE);
    expect_job("\"model\": {\"arch\": \"cnn\"}", 2, 28, JOB_PREPROCESS_WHOLE);
}

Test(job_data, larger_images_and_several_sizes_are_scaled_as_for_ImageNet_s)
{
    static const int sizes[][2] = {
        {65, 65},
        {48, 47},
        {64, 64}
    };

    for (size_t i = 0; i < 3; i++) {
        add_image("a", 48, 48);
        add_image("b", sizes[i][0], sizes[i][1]);
        expect_job("", 2, 224, JOB_PREPROCESS_TPU);
    }
}

Test(job_data, keys_of_the_document_are_not_changed)
{
    add_image("a", 48, 48);
    add_image("b", 48, 48);
    expect_job("\"model\": {\"classes\": 7}", 7, 48, JOB_PREPROCESS_WHOLE);
    expect_job("\"model\": {\"image_size\": 224}", 2, 224, JOB_PREPROCESS_TPU);
    expect_job("\"model\": {\"image_size\": [[0, 32], [1, 64]]}", 2, 64, JOB_PREPROCESS_TPU);
    expect_job("\"preset\": \"goyal-8k\"", 1000, 224, JOB_PREPROCESS_TORCHVISION);
    expect_job("\"preset\": \"mnist-cnn\"", 2, 48, JOB_PREPROCESS_WHOLE);
    expect_job("\"model\": {\"init\": \"/weights\"}", 2, 224, JOB_PREPROCESS_TPU);
}

Test(job_data, the_values_taken_from_the_data_are_reported)
{
    struct problems problems = {0};

    add_image("a", 48, 48);
    add_image("b", 48, 48);
    struct job_spec *spec = read_job("\"model\": {\"classes\": 7}", &problems);
    cr_expect_not_null(json_get_at(spec->from_data, "/model.image_size/source"));
    cr_expect_str_eq(json_string_value(json_get_at(spec->from_data, "/data.preprocess/value")),
                     "whole");
    cr_expect_eq(json_object_size(spec->from_data), 2, "the classes were stated");
    cr_expect_null(spec->data.eval, "no shards, no evaluation");
    job_spec_destroy(spec);
}

Test(job_data, a_wrong_document_is_refused_as_without_data)
{
    static const char *const wrong[] = {"\"model\": 5", "\"model\": {\"classes\": null}",
                                        "\"mode\": 1", "\"preset\": \"none\"",
                                        "\"model\": {\"arch\": 3}"};

    add_image("a", 48, 48);
    add_image("b", 48, 48);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct problems problems = {0};
        struct job_spec *spec = read_job(wrong[i], &problems);
        cr_expect_eq(problems.count, 1, "%s: %zu", wrong[i], problems.count);
        job_spec_destroy(spec);
        problems_clear(&problems);
    }
    struct problems problems = {0};
    json_t *list = json_array();
    cr_expect_null(job_data_read(list, &problems));
    json_decref(list);
    problems_clear(&problems);
}
