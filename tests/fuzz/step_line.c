/* The line of a step: what the fast reader takes, jansson reads the same way. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/ingest/step_line.h"
#include "tests/fuzz/fuzz.h"

static bool same_number(double a, double b)
{
    return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}

static void same_own(const char *line, size_t own, json_t *body)
{
    size_t bytes = strlen(line) + 2;
    char *text = malloc(bytes);

    FUZZ_CHECK(own < bytes && text, "a field at %zu of %zu", own, bytes);
    snprintf(text, bytes, "{%s", line + own);
    json_t *fields = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    json_object_del(body, "seq");
    json_object_del(body, "t");
    json_object_del(body, "type");
    FUZZ_CHECK(json_equal(fields, body), "other fields in %s", line);
    json_decref(fields);
    free(text);
}

int fuzz_step_line(const uint8_t *data, size_t bytes)
{
    struct store_event event;
    struct store_step step;
    char *line = fuzz_text(data, bytes);
    size_t own;

    if (step_line_read(line, &event, &own)) {
        json_t *body = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        FUZZ_CHECK(json_is_object(body), "not JSON: %s", line);
        FUZZ_CHECK(event.seq == json_integer_value(json_object_get(body, "seq")) &&
                       same_number(event.t, json_number_value(json_object_get(body, "t"))),
                   "%s", line);
        store_step_of(body, &step);
        FUZZ_CHECK(event.step.step == step.step && same_number(event.step.epoch, step.epoch), "%s",
                   line);
        for (size_t i = 0; event_metric_at(i); i++)
            FUZZ_CHECK(same_number(event.step.metrics[i], step.metrics[i]), "%zu of %s", i, line);
        same_own(line, own, body);
        json_decref(body);
    }
    free(line);
    return 0;
}
