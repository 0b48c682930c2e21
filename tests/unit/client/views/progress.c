/* What is told of a job's progress in words and as a bar. */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/views/progress.h"

static const struct job running = {.id = 3,
                                   .state = "running",
                                   .reason = "",
                                   .step = 117,
                                   .train_steps = 234,
                                   .images_per_sec = 212.4,
                                   .loss = 0.8123,
                                   .top1 = NAN,
                                   .global_batch = 256,
                                   .left = 141,
                                   .read_at = 1000};

static int progress_columns(const char *text)
{
    int columns = 0;

    for (; *text; text++)
        columns += (*text & 0xc0) != 0x80;
    return columns;
}

Test(progress, words_have_all_numbers)
{
    char text[512];

    cr_expect_str_eq(progress_words(text, sizeof text, &running, 1000),
                     " 50 %  step 117/234  212 images/s  loss 0.8123  2 min 21 s left");
}

Test(progress, accuracy_shows_once_it_is_known)
{
    struct job job = running;
    char text[512];

    job.top1 = 0.8412;
    job.state = "succeeded";
    progress_words(text, sizeof text, &job, 1000);
    cr_expect(strstr(text, "top-1 84.12 %"), "%s", text);
    cr_expect_not(strstr(text, "left"), "%s", text);
}

Test(progress, the_reason_is_shown_before_the_first_step)
{
    struct job job = running;
    char text[512];

    job.step = NAN;
    job.reason = "waiting for 2 of 4 slots";
    cr_expect_str_eq(progress_words(text, sizeof text, &job, 1000), "waiting for 2 of 4 slots");
}

Test(progress, a_bar_has_its_width_and_grows)
{
    char text[PROGRESS_BAR_BYTES(100)];

    cr_expect_str_eq(progress_bar(text, sizeof text, 0.5, 10, false), "[####....]");
    cr_expect_str_eq(progress_bar(text, sizeof text, 1, 10, false), "[########]");
    cr_expect_str_eq(progress_bar(text, sizeof text, 1.0 / 16, 4, true), "▕▏ ▏");
    for (int columns = 3; columns <= 100; columns++)
        cr_expect_eq(progress_columns(progress_bar(text, sizeof text, 0.37, columns, true)),
                     columns);
}

Test(progress, a_line_is_printed_only_after_a_change, .init = cr_redirect_stdout)
{
    struct progress shown = {0};
    struct job job = {.id = 4,
                      .state = "queued",
                      .step = NAN,
                      .top1 = NAN,
                      .loss = 0.8123,
                      .images_per_sec = NAN,
                      .left = NAN};

    for (int i = 0; i < 3; i++) {
        static const char *const reasons[] = {"waiting for 2 slots (job 2 should finish in 5 min)",
                                              "waiting for 2 slots (job 2 should finish in 4 min)",
                                              "waiting behind job 3; 4 min"};
        job.reason = reasons[i];
        progress_show(&shown, &job);
        shown.last_line -= 3600; /* time alone is no news */
        progress_show(&shown, &job);
    }
    job.state = "running";
    job.reason = "";
    job.step = 1;
    job.train_steps = 10;
    for (int i = 0; i < 4; i++) {
        job.step += i % 2;
        progress_show(&shown, &job);
        shown.last_line -= 3600;
    }
    fflush(stdout);
    cr_expect_stdout_eq_str("job 4 queued  waiting for 2 slots (job 2 should finish in 5 min)\n"
                            "job 4 queued  waiting behind job 3; 4 min\n"
                            "job 4 running   10 %  step 1/10  -  loss 0.8123\n"
                            "job 4 running   20 %  step 2/10  -  loss 0.8123\n"
                            "job 4 running   30 %  step 3/10  -  loss 0.8123\n");
}
