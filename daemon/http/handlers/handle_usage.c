/* Who uses this machine, and what one user may. */
#include <math.h>

#include "common/clock.h"
#include "daemon/http/json_text.h"
#include "daemon/http/routes.h"
#include "daemon/store/usage.h"

static void usage_user(struct json_text *t, const struct store_uses *uses,
                       const struct store_use *use)
{
    json_text_open(t, NULL, '{');
    json_text_string(t, "user", *use->user ? use->user : NULL);
    json_text_rounded(t, "slot_hours", use->slot_seconds / 3600);
    json_text_rounded(t, "share", store_uses_share(uses, use->user));
    json_text_integer(t, "running", use->running);
    json_text_integer(t, "slots", use->slots);
    json_text_integer(t, "queued", use->queued);
    json_text_close(t, '}');
}

int handle_usage(const struct request *q, struct reply *r, struct error *e)
{
    struct job_limits limits = job_manager_limits(q->app->jobs);
    struct store_uses uses;

    /* By the minute: the use of jobs that run grows with every request. */
    double now = 60 * floor(clock_now() / 60);

    if (store_usage(q->app->store, now, limits.fair_share.half_life_seconds, &uses, e))
        return -(int)e->code;
    struct json_text text = JSON_TEXT;
    json_text_open(&text, NULL, '{');
    json_text_open(&text, "users", '[');
    for (size_t i = 0; i < uses.count; i++)
        usage_user(&text, &uses, &uses.items[i]);
    json_text_close(&text, ']');
    json_text_integer(&text, "max_running_per_user", limits.caps.running);
    json_text_integer(&text, "max_slots_per_user", limits.caps.slots);
    json_text_integer(&text, "max_queued_per_user", limits.max_queued_per_user);
    json_text_real(&text, "fair_share_weight", limits.fair_share.weight);
    json_text_real(&text, "fair_share_half_life_hours", limits.fair_share.half_life_seconds / 3600);
    json_text_close(&text, '}');
    store_uses_clear(&uses);
    return reply_json_text(r, 200, &text, e);
}
