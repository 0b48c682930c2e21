#include <criterion/criterion.h>
#include <string.h>

#include "common/plan/replan.h"

static struct job_spec replan_spec_of(enum job_rescale rescale, int64_t workers, int64_t batch,
                                      int64_t steps)
{
    struct job_spec s = {
        .batch_per_worker = batch, .accumulate_steps = 1, .has_steps = steps > 0, .steps = steps};
    s.cluster.nodes = 2;
    s.cluster.workers_per_node = workers / 2;
    s.restart.on_fewer_nodes = rescale;
    return s;
}

Test(replan, rescale_keeps_a_workers_batch_and_the_images_of_the_run)
{
    struct error e;
    struct job_spec s = replan_spec_of(JOB_RESCALE_RESCALE, 4, 32, 300);
    cr_assert_eq(replan_spec(&s, 3, &e), 0);
    cr_assert_eq(job_spec_world_size(&s), 3);
    cr_assert_eq(s.batch_per_worker, 32);
    cr_assert_eq(s.steps, 400);
}

static void keeps(int64_t workers, int64_t batch, int64_t world, int64_t new_batch,
                  int64_t accumulate)
{
    struct error e;
    struct job_spec s = replan_spec_of(JOB_RESCALE_KEEP_BATCH, workers, batch, 300);
    cr_assert_eq(replan_spec(&s, world, &e), 0, "%s", e.text);
    cr_assert_eq(s.batch_per_worker, new_batch, "%lld", (long long)s.batch_per_worker);
    cr_assert_eq(s.accumulate_steps, accumulate);
    cr_assert_eq(world * new_batch * accumulate, workers * batch);
    cr_assert_eq(s.steps, 300);
}

Test(replan, keep_batch_shares_the_same_batch_out)
{
    keeps(4, 32, 2, 32, 2);
    keeps(4, 32, 1, 32, 4);
    keeps(4, 48, 3, 32, 2);
    keeps(4, 32, 8, 16, 1);
    keeps(4, 32, 4, 32, 1);
}

static void replan_refuses(int64_t workers, int64_t batch, int64_t world)
{
    struct error e;
    struct job_spec s = replan_spec_of(JOB_RESCALE_KEEP_BATCH, workers, batch, 0);
    cr_assert_eq(replan_spec(&s, world, &e), -ERR_INVALID);
    cr_assert_not_null(strstr(e.text, "cannot be shared out"), "%s", e.text);
}

Test(replan, keep_batch_refuses_what_is_uneven_or_tiny)
{
    replan_refuses(4, 32, 3);
    replan_refuses(4, 31, 2 * 31 - 1);
    replan_refuses(62, 30, 60); /* 31 images a worker: a prime, of which 30 fit */
}

static void stands(int64_t epoch, int64_t images, int64_t batch, int64_t steps_per_epoch,
                   int64_t step, int64_t shift)
{
    struct plan plan = {.phases = {{.global_batch = batch, .steps_per_epoch = steps_per_epoch}},
                        .phase_count = 1};
    int64_t schedule_step, image_shift;
    replan_place(epoch, images, &plan, &schedule_step, &image_shift);
    cr_assert_eq(schedule_step, step, "%lld", (long long)schedule_step);
    cr_assert_eq(image_shift, shift, "%lld", (long long)image_shift);
}

Test(replan, a_place_is_kept_in_images)
{
    stands(3, 0, 10, 10, 30, 0);   /* between epochs */
    stands(3, 40, 20, 5, 17, 0);   /* on a step of the new batch */
    stands(3, 50, 20, 5, 18, -10); /* inside one: the next begins at image 50 */
    stands(3, 90, 20, 5, 20, 0);   /* too few are left for a step */
    stands(3, 99, 20, 4, 16, 0);
}

/* A checkpoint, a run from it with another batch, its next checkpoint. */
static void replan_goes_on(const struct plan *plan, int64_t epoch, int64_t images, int64_t steps,
                           int64_t then_epoch, int64_t then_images)
{
    int64_t first, shift, at_epoch, at_images;

    replan_place(epoch, images, plan, &first, &shift);
    replan_position(plan, first + steps, first, shift, &at_epoch, &at_images);
    cr_assert_eq(at_epoch, then_epoch, "%lld", (long long)at_epoch);
    cr_assert_eq(at_images, then_images, "%lld", (long long)at_images);
}

Test(replan, a_step_has_the_place_that_its_checkpoint_is_found_by)
{
    struct plan plan = {.phases = {{.global_batch = 20, .steps_per_epoch = 5}},
                        .phase_count = 1,
                        .train_images = 107};

    replan_goes_on(&plan, 0, 0, 7, 1, 40);
    replan_goes_on(&plan, 3, 50, 0, 3, 50); /* shifted in its own epoch */
    replan_goes_on(&plan, 3, 50, 1, 3, 70);
    replan_goes_on(&plan, 3, 50, 2, 4, 0); /* and in no later one */
    plan.exact = true;
    replan_goes_on(&plan, 3, 50, 0, 3, 50);
    replan_goes_on(&plan, 3, 50, 3, 4, 3); /* its images are 107, not 100 */
}
