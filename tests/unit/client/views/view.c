/* Events in words: one line each, whatever a worker wrote. */
#include <criterion/criterion.h>
#include <string.h>

#include "client/views/view.h"

static const char *view_words(const char *type, const char *body)
{
    static char text[256];
    json_t *json = json_loads(body, 0, NULL);
    struct stream_event event = {.type = type, .body = json};
    bool worth = view_event_words(&event, text, sizeof text);

    json_decref(json);
    return worth ? text + strlen("12:34:56  ") : NULL;
}

Test(view, step_events_print_no_line)
{
    cr_expect_null(view_words("step", "{\"t\": 1, \"step\": 3}"));
    cr_expect_null(view_words("eval_progress", "{\"t\": 1}"));
}

Test(view, events_say_what_and_where)
{
    cr_expect_str_eq(
        view_words("state", "{\"t\": 1, \"state\": \"queued\", \"reason\": \"waits\"}"),
        "queued: waits");
    cr_expect_str_eq(view_words("checkpoint", "{\"t\": 1, \"step\": 120}"),
                     "checkpoint at step 120");
    cr_expect_str_eq(view_words("run_start", "{\"t\": 1}"), "run start");
    cr_expect_str_eq(
        view_words("eval", "{\"t\": 1, \"step\": 5, \"top1\": 0.5, \"top5\": 0.75, \"loss\": 1}"),
        "eval at step 5: top-1 50.00 %, top-5 75.00 %");
    cr_expect_str_eq(view_words("warning", "{\"t\": 1, \"step\": 2, \"message\": \"slow\"}"),
                     "warning at step 2: slow");
    cr_expect_str_eq(
        view_words("straggler", "{\"t\": 1, \"step\": 9, \"rank\": 3, \"host\": \"n2\","
                                " \"phase\": \"data\", \"busy_ms\": 80,"
                                " \"median_ms\": 20}"),
        "straggler at step 9: rank 3 on n2, 80 ms of data instead of 20", "of an older worker");
    cr_expect_str_eq(view_words("straggler", "{\"t\": 1, \"step\": 9, \"rank\": 3, "
                                             "\"message\": \"rank 3 is slower than the others\"}"),
                     "straggler at step 9: rank 3 is slower than the others");
}

Test(view, a_log_line_cannot_steer_the_terminal)
{
    cr_expect_str_eq(view_words("failed", "{\"t\": 1, \"reason\": \"a\\u001b[2J\\nb\"}"),
                     "failed: a [2J b");
}
