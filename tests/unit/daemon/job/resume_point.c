#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "daemon/job/resume_point.h"
#include "tests/unit/daemon/job/fixture.h"

static char run_dir[300];
static struct error e;

static void set_up(void)
{
    jobs_open();
    snprintf(run_dir, sizeof run_dir, "%s/1", jobs_dir);
}

TestSuite(resume_point, .init = set_up, .fini = jobs_close);

Test(resume_point, a_run_without_checkpoints_has_none)
{
    struct resume_point at;

    cr_assert_eq(resume_point_find(run_dir, &at, &e), 0, "without its folder");
    jobs_write(1, "checkpoints/notes.txt", "");
    cr_assert_eq(resume_point_find(run_dir, &at, &e), 0);
    cr_assert_eq(resume_point_newest_step(run_dir, &e), 0);
    cr_assert_eq(resume_point_usable_step(run_dir), 0);
}

Test(resume_point, the_newest_checkpoint_is_taken)
{
    struct resume_point at;

    jobs_write_checkpoint(1, 5);
    jobs_write_checkpoint(1, 20);
    jobs_write_checkpoint(1, 9);
    cr_assert_eq(resume_point_find(run_dir, &at, &e), 1, "%s", e.text);
    cr_assert_eq(at.step, 20);
    cr_assert_eq(at.epoch_images, 20);
    cr_assert_eq(at.passed_over, 0);
    cr_assert_eq(resume_point_newest_step(run_dir, &e), 20);
}

Test(resume_point, a_damaged_checkpoint_is_passed_over_and_named)
{
    static const char *const damaged[] = {
        "", "{", "{\"step\":20}",
        "{\"step\":20,\"epoch_number\":0,\"epoch_images\":20,\"xxh128\":\"00\"}"};
    struct resume_point at;

    jobs_write_checkpoint(1, 5);
    for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
        jobs_write(1, "checkpoints/step-00000020/state.json", damaged[i]);
        cr_assert_eq(resume_point_find(run_dir, &at, &e), 1, "%s", damaged[i]);
        cr_assert_eq(at.step, 5);
        cr_assert_eq(at.passed_over, 20);
        cr_assert(strstr(at.why_not, "step-00000020/state.json"), "%s", at.why_not);
        cr_assert_eq(resume_point_usable_step(run_dir), 5);
        cr_assert_eq(resume_point_newest_step(run_dir, &e), 20);
    }
}

Test(resume_point, an_error_says_that_none_is_usable)
{
    struct resume_point at;

    jobs_write(1, "checkpoints/step-00000005/state.json", "{");
    jobs_write(1, "checkpoints/step-00000020/state.json", "{");
    cr_assert_lt(resume_point_find(run_dir, &at, &e), 0);
    cr_assert_eq(at.passed_over, 20);
    cr_assert_eq(resume_point_usable_step(run_dir), 0);
}
