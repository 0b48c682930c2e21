/* Server-sent events, however the network cuts them. */
#include <criterion/criterion.h>
#include <string.h>

#include "client/stream.h"

static const char text[] = ": a remark\nretry: 250\nid: 7\n\n"
                           "id: 8\nevent: step\ndata: {\"step\": 1}\n\n"
                           "event: heartbeat\r\ndata: {}\r\n\r\n"
                           "data:one\ndata: two\n\n"
                           "id: 9\nevent: state\ndata: {\"st";

static void expect_event(struct sse *sse, const char *type, const char *data, long long id)
{
    const char *got_type = "none", *got_data = "none";

    cr_expect_eq(sse_next(sse, &got_type, &got_data), 1);
    cr_expect_str_eq(got_type, type);
    cr_expect_str_eq(got_data, data);
    cr_expect_eq(sse->id, id);
}

Test(sse, events_have_type_data_and_id)
{
    struct sse sse;
    const char *type, *data;

    sse_init(&sse, -1, 0);
    cr_assert_eq(sse_add(&sse, text, strlen(text)), 0);
    expect_event(&sse, "", "", 7);
    cr_expect_eq(sse.retry_ms, 250);
    expect_event(&sse, "step", "{\"step\": 1}", 8);
    expect_event(&sse, "heartbeat", "{}", 8);
    expect_event(&sse, "", "one\ntwo", 8);
    cr_expect_eq(sse_next(&sse, &type, &data), 0);
    cr_expect_eq(sse.id, 8, "half an event is none: it must come again");
    sse_clear(&sse);
    cr_expect_eq(sse.id, 8);
}

Test(sse, bytes_one_at_a_time_give_the_same_events)
{
    struct sse sse;
    const char *type, *data;
    int events = 0;

    sse_init(&sse, -1, 0);
    for (size_t i = 0; i < strlen(text); i++) {
        cr_assert_eq(sse_add(&sse, text + i, 1), 0);
        while (sse_next(&sse, &type, &data))
            events++;
    }
    cr_expect_eq(events, 4);
    cr_expect_eq(sse.id, 8);
    sse_clear(&sse);
}

Test(sse, an_endless_event_is_refused)
{
    struct sse sse;
    static char much[1 << 20];
    int status = 0;

    sse_init(&sse, -1, 0);
    memset(much, 'x', sizeof much);
    for (int i = 0; i < 64 && status == 0; i++)
        status = sse_add(&sse, much, sizeof much);
    cr_expect_lt(status, 0);
    sse_clear(&sse);
}
