#include <stdio.h>
#include <string.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/job.h"
#include "client/views/print.h"
#include "client/views/view.h"
#include "common/run/attempt.h"
#include "common/json.h"

#define PAGE_EVENTS 1000

static int events_fetch_page(long id, const char *types, long long *after, struct error *e)
{
    json_t *answer, *event;
    char words[2048];
    size_t i;

    if (api_call("GET", &answer, e, "/v1/jobs/%ld/events?types=%s&after=%lld&limit=%d", id, types,
                 *after, PAGE_EVENTS))
        return -(int)e->code;
    json_array_foreach (json_object_get(answer, "events"), i, event) {
        struct stream_event shown = {json_get_text(event, "type", ""), event};
        if (client.json || !view_event_words(&shown, words, sizeof words))
            print_json_line(stdout, event);
        else
            puts(words);
    }
    bool more = json_is_integer(json_object_get(answer, "next"));
    *after = json_get_integer(answer, "next", 0);
    json_decref(answer);
    return more;
}

static int cmd_events(const struct cmd_args *args)
{
    struct error e;
    char types[256] = "";
    long long after = 0;
    size_t used = 0;
    long id;
    int more;

    const char *wanted = cmd_value(args, "types");
    if (cmd_job_id(args->operands[0], &id, &e) < 0 ||
        (wanted && cmd_words(wanted, "type of event", event_kind_at, &e)))
        return cmd_fail(&e);
    for (size_t i = 0; event_kind_at(i) && !wanted; i++)
        if (strcmp(event_kind_at(i), "step") != 0 && strcmp(event_kind_at(i), "eval_progress") != 0)
            used += (size_t)snprintf(types + used, sizeof types - used, "%s%s", used ? "," : "",
                                     event_kind_at(i));
    if (wanted)
        snprintf(types, sizeof types, "%.250s", wanted);
    do
        more = events_fetch_page(id, types, &after, &e);
    while (more > 0);
    return more < 0 ? cmd_fail(&e) : 0;
}

/* clang-format off */
const struct cmd cmd_events_entry = {
    .name = "events", .synopsis = "[--types A,B] ID", .help = "print a job's events", .example = "trainctl events --types state,eval 7",
    .run = cmd_events, .completion = "job", .operands = {1, 1},
    .options = {
        OPTION("types", 0, "A,B", "event types, e.g. state,eval (all except steps)", "event"),
    },
};
/* clang-format on */
