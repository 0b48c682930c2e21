/* The progress line fits the terminal, whatever its width. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "client/progress.h"

static const struct job running = {.id = 3,
                                   .state = "running",
                                   .reason = "",
                                   .step = 117,
                                   .train_steps = 234,
                                   .images_per_sec = 212.4,
                                   .loss = 0.8123,
                                   .top1 = NAN,
                                   .global_batch = 256};

static int columns_of(const char *text)
{
    int columns = 0;

    for (; *text; text++)
        columns += (*text & 0xc0) != 0x80;
    return columns;
}

Test(progress, one_line_has_bar_and_numbers)
{
    char text[512];

    progress_line(text, sizeof text, &running, 141, 200, false);
    cr_expect_str_eq(text, "job 3 running  [###############...............]  50 %  step 117/234  "
                           "212 images/s  loss 0.8123  2 min 21 s left");
}

Test(progress, accuracy_shows_once_it_is_known)
{
    struct job job = running;
    char text[512];

    job.top1 = 0.8412;
    progress_line(text, sizeof text, &job, NAN, 200, false);
    cr_expect(strstr(text, "top-1 84.12 %"), "%s", text);
    cr_expect_not(strstr(text, "left"), "%s", text);
}

Test(progress, a_usual_terminal_keeps_the_bar)
{
    struct job job = running;
    char text[512];

    progress_line(text, sizeof text, &job, 141, 79, false);
    cr_expect(strstr(text, "[#####") && strstr(text, "loss 0.8123"), "%s", text);
    job.top1 = 0.8412;
    progress_line(text, sizeof text, &job, 141, 79, false);
    cr_expect(strstr(text, "[####") && strstr(text, "top-1 84.12 %"), "%s", text);
}

Test(progress, never_wider_than_the_terminal)
{
    char text[512];

    for (int columns = 1; columns < 160; columns++) {
        progress_line(text, sizeof text, &running, 141, columns, true);
        cr_expect_leq(columns_of(text), columns, "%d columns: %s", columns, text);
    }
}

Test(progress, what_waits_says_why)
{
    struct job job = {.id = 4,
                      .state = "queued",
                      .reason = "waits for 2 slots",
                      .step = NAN,
                      .train_steps = 234,
                      .top1 = NAN};
    char text[512];

    progress_line(text, sizeof text, &job, NAN, 80, false);
    cr_expect_str_eq(text, "job 4 queued  waits for 2 slots");
}
