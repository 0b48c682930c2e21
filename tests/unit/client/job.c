/* A job of the API, read; what its states mean for the exit code. */
#include <criterion/criterion.h>
#include <math.h>

#include "client/job.h"

static struct job job_state_read(const char *state)
{
    static json_t *json;
    struct job job;

    json_decref(json);
    json = json_pack("{s:i, s:s, s:n, s:i, s:i, s:i}", "id", 3, "state", state, "top1", "step", 117,
                     "train_steps", 234, "global_batch", 256);
    job_read(json, &job);
    return job;
}

Test(job, null_and_missing_members_are_nan)
{
    struct job job = job_state_read("running");

    cr_expect_eq(job.id, 3);
    cr_expect(isnan(job.top1) && isnan(job.loss));
    cr_expect_str_eq(job.reason, "");
    cr_expect_float_eq(job_progress(&job), 0.5, 1e-12);
}

Test(job, time_left_excludes_the_current_evaluation)
{
    struct job job = job_state_read("succeeded");

    cr_expect_str_eq(job_time_label(&job), "time to train");
    job.train_steps = 0;
    job.eval_images = 50;
    cr_expect_str_eq(job_time_label(&job), "time to evaluate");
}

Test(job, outcomes_are_exit_codes)
{
    static const struct {
        const char *state;
        int outcome;
    } all[] = {
        {"queued",            -1 },
        {"starting",          -1 },
        {"running",           -1 },
        {"evaluating",        -1 },
        {"succeeded",         0  },
        {"failed",            1  },
        {"cancelled",         130},
        {"a later version's", -1 }
    };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct job job = job_state_read(all[i].state);
        cr_expect_eq(job_outcome(&job), all[i].outcome, "%s", all[i].state);
        cr_expect_eq(job_ended(&job), all[i].outcome >= 0, "%s", all[i].state);
    }
}

Test(job, without_a_forecast_time_left_is_images_left_by_speed)
{
    struct job job = job_state_read("running");

    job.images_per_sec = 128;
    cr_expect_float_eq(job_time_left(&job, job.read_at).value, 117 * 256 / 128.0, 1e-9);
    cr_expect(isnan(job_time_left(&job, job.read_at).low));
    job.images_per_sec = 0;
    cr_expect(isnan(job_time_left(&job, job.read_at).value));
}

Test(job, the_daemons_time_left_decreases_with_the_clock)
{
    struct job job = job_state_read("running");

    job.left = 100;
    job.left_low = 5;
    job.left_high = 150;
    struct job_left left = job_time_left(&job, job.read_at + 10);
    cr_expect_float_eq(left.value, 90, 1e-9);
    cr_expect_float_eq(left.low, 0, 1e-9);
    cr_expect_float_eq(left.high, 140, 1e-9);
    job.state = "succeeded";
    cr_expect(isnan(job_time_left(&job, job.read_at).value));
}

Test(job, events_update_the_numbers)
{
    struct job job = job_state_read("running");
    json_t *step = json_pack("{s:i, s:f, s:f}", "step", 120, "loss", 0.5, "lr", 0.1);
    json_t *eval = json_pack("{s:i, s:f, s:f}", "step", 120, "loss", 9.0, "top1", 0.25);

    cr_expect(job_take_event(&job, "step", step));
    cr_expect(job_take_event(&job, "eval", eval));
    cr_expect_not(job_take_event(&job, "checkpoint", step));
    cr_expect_not(job_take_event(&job, "eval_progress", step), "a training counts steps");
    cr_expect_float_eq(job.step, 120, 0);
    cr_expect_float_eq(job.loss, 0.5, 0, "an evaluation's loss is another one");
    cr_expect_float_eq(job.top1, 0.25, 0);
    json_decref(step);
    json_decref(eval);
}
