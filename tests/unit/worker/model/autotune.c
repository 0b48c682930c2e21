#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/tune_all.h"
#include "common/run/stall_report.h"
#include "common/system/file.h"
#include "tests/unit/worker/compare.h"
#include "tests/unit/worker/tiny.h"
#include "worker/model/autotune.h"

static struct model_config tune_config(int batch)
{
    struct model_config c = tiny_config(&tiny_basic, 1);

    c.stem = JOB_STEM_SMALL;
    c.classes = 10;
    c.image_size = 32;
    c.batch = batch;
    return c;
}

static char folder[] = "/tmp/tune-test-XXXXXX";

static void make_cache(void)
{
    cr_assert(mkdtemp(folder));
    setenv("XDG_CACHE_HOME", folder, 1);
}

static void drop_cache(void)
{
    struct error e;
    file_remove_tree(folder, &e);
}

/* Replaces all that is remembered; returns how many files there are. */
static int remember(const char *text)
{
    char path[512], line[128];
    int files = 0;
    snprintf(path, sizeof path, "%s/traind/winograd", folder);
    DIR *d = opendir(path);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        int size, in, out;
        if (entry->d_name[0] == '.')
            continue;
        const char *at = strrchr(entry->d_name, 'x');
        while (at > entry->d_name && at[-1] >= '0' && at[-1] <= '9')
            at--;
        cr_assert_eq(sscanf(at, "%dx%d-%d", &size, &in, &out), 3, "%s", entry->d_name);
        snprintf(path, sizeof path, "%s/traind/winograd/%s", folder, entry->d_name);
        snprintf(line, sizeof line, "%dx%d-%d:%s\n", size, in, out, text);
        FILE *f = fopen(path, "w");
        fputs(line, f);
        fclose(f);
        files++;
    }
    if (d)
        closedir(d);
    return files;
}

Test(tune, what_was_measured_is_remembered, .init = make_cache, .fini = drop_cache)
{
    struct model_config c = tune_config(2);
    struct model_tuning t;
    char problem[256], text[TUNING_TEXT_BYTES];

    model_tune(&c, &t, problem);
    cr_assert_str_eq(problem, "");
    cr_assert_eq(t.count, 4);
    cr_assert_eq(remember("0/2/4"), 4);
    model_tune(&c, &t, problem);
    model_tuning_to_text(&t, text);
    cr_assert_str_eq(text, "32x64-64:0/2/4 16x128-128:0/2/4 8x256-256:0/2/4 4x512-512:0/2/4");
}

/* Another job that measures the same shapes: what it chose lies in the folder "other" and is put
 * into the cache while this process measures. */
static int links; /* of its files that came first */

static void *finish_first(void *context)
{
    uint64_t before = *(uint64_t *)context;
    char other[600], path[600];

    while (stall_progress() == before)
        sched_yield();
    snprintf(path, sizeof path, "%s/traind/winograd", folder);
    mkdir(path, 0755);
    snprintf(other, sizeof other, "%s/other", folder);
    DIR *d = opendir(other);
    for (struct dirent *entry; (entry = readdir(d));) {
        snprintf(other, sizeof other, "%s/other/%s", folder, entry->d_name);
        snprintf(path, sizeof path, "%s/traind/winograd/%s", folder, entry->d_name);
        links += entry->d_name[0] != '.' && link(other, path) == 0;
    }
    closedir(d);
    return NULL;
}

Test(tune, of_two_jobs_that_measure_at_once_the_first_decides, .init = make_cache,
     .fini = drop_cache)
{
    struct model_config c = tune_config(2);
    struct model_tuning t, cached;
    char problem[256], from[128], to[128];
    uint64_t before;
    pthread_t other;
    int others = 0;

    model_tune(&c, &t, problem);
    cr_assert_eq(remember("0/2/4"), 4);
    snprintf(from, sizeof from, "%s/traind/winograd", folder);
    snprintf(to, sizeof to, "%s/other", folder);
    cr_assert_eq(rename(from, to), 0);
    before = stall_progress();
    cr_assert_eq(pthread_create(&other, NULL, finish_first, &before), 0);
    model_tune(&c, &t, problem);
    pthread_join(other, NULL);
    cr_assert_str_eq(problem, "");
    model_tune(&c, &cached, problem);
    cr_assert_arr_eq(&t, &cached, sizeof t);
    for (int i = 0; i < t.count; i++)
        others += t.shapes[i].winograd[CONV_FORWARD] == CONV_NO_WINOGRAD &&
                  t.shapes[i].winograd[CONV_DATA] == CONV_WINOGRAD_2 &&
                  t.shapes[i].winograd[CONV_WEIGHTS] == CONV_WINOGRAD_4;
    cr_assert_geq(others, links);
}

Test(tune, a_torn_file_is_measured_again, .init = make_cache, .fini = drop_cache)
{
    struct model_config c = tune_config(1);
    struct model_tuning t;
    char problem[256];

    model_tune(&c, &t, problem);
    remember("4/4/3");
    model_tune(&c, &t, problem);
    for (int i = 0; i < t.count; i++)
        cr_assert_neq((int)t.shapes[i].winograd[CONV_WEIGHTS], 3);
    cr_assert_str_eq(problem, "");
}

Test(tune, other_batches_are_measured_by_themselves, .init = make_cache, .fini = drop_cache)
{
    struct model_config one = tune_config(1), two = tune_config(2);
    struct model_tuning t;
    char problem[256];

    model_tune(&one, &t, problem);
    model_tune(&two, &t, problem);
    cr_assert_eq(remember("0/0/0"), 8);
}

Test(tune, without_a_cache_the_problem_is_reported_and_tuning_continues)
{
    struct model_config c = tune_config(1);
    struct model_tuning t;
    char problem[256];

    setenv("XDG_CACHE_HOME", "/dev/null", 1);
    model_tune(&c, &t, problem);
    cr_assert_neq(problem[0], '\0');
    cr_assert_eq(t.count, 4);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    model_tune(&c, &t, problem);
    cr_assert(strstr(problem, "HOME"), "%s", problem);
}

Test(tune, text_is_parsed_back_to_the_same_choices)
{
    struct model_tuning t, back;
    struct model_config c = tune_config(1);
    char text[TUNING_TEXT_BYTES];

    tune_all(&c, CONV_WINOGRAD_4, &t);
    t.shapes[1].winograd[CONV_DATA] = CONV_WINOGRAD_2;
    model_tuning_to_text(&t, text);
    cr_assert_str_eq(text, "32x64-64:4/4/4 16x128-128:4/2/4 8x256-256:4/4/4 4x512-512:4/4/4");
    cr_assert_eq(model_tuning_from_text(text, &back), 0);
    cr_assert_eq(memcmp(&t, &back, sizeof t), 0);
    cr_assert_eq(model_tuning_from_text("", &back), 0);
    cr_assert_eq(back.count, 0);
}

Test(tune, invalid_texts_are_refused)
{
    static const char *const texts[] = {"4/4/4",          "8x64-64:4/4",    "8x64-64:4/4/3",
                                        "8x64-64:4/4/4,", "8x64-64:4/4/4x", "8x64-64:4/4/4 8"};
    struct model_tuning t;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        cr_assert_eq(model_tuning_from_text(texts[i], &t), -1, "%s", texts[i]);
}

Test(tune, a_convolution_gets_the_choice_of_its_shape)
{
    struct model_tuning t;
    struct conv c = conv_make(8, 256, 256, 3, 1, 1, 1), other = conv_make(8, 256, 256, 3, 2, 1, 1);

    cr_assert_eq(model_tuning_from_text("8x256-256:0/2/4", &t), 0);
    model_tuning_apply(&t, &c);
    cr_assert_eq(c.winograd[CONV_FORWARD], CONV_NO_WINOGRAD);
    cr_assert_eq(c.winograd[CONV_DATA], CONV_WINOGRAD_2);
    cr_assert_eq(c.winograd[CONV_WEIGHTS], CONV_WINOGRAD_4);
    model_tuning_apply(&t, &other);
    cr_assert_eq(other.winograd[CONV_WEIGHTS], CONV_NO_WINOGRAD);
    model_tuning_apply(NULL, &c);
    cr_assert_eq(c.winograd[CONV_WEIGHTS], CONV_WINOGRAD_4);
}
