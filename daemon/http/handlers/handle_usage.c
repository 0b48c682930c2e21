#include "daemon/http/handlers/handle_usage.h"

#include <math.h>
#include <stdio.h>

#include "common/clock.h"
#include "daemon/http/json_text.h"
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

/* Rounded to the minute, because use changes with every request. */
static int usage_now(const struct request *q, const struct job_limits *limits,
                     struct store_uses *uses, struct error *e)
{
    return store_usage(q->app->store, 60 * floor(clock_now() / 60),
                       limits->fair_share.half_life_seconds, uses, e);
}

int handle_usage(const struct request *q, struct reply *r, struct error *e)
{
    struct job_limits limits = job_manager_limits(q->app->jobs);
    struct store_uses uses;

    if (usage_now(q, &limits, &uses, e))
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

enum usage_value {
    USAGE_SHARE,
    USAGE_SECONDS,
    USAGE_RUNNING,
    USAGE_SLOTS,
    USAGE_QUEUED,
    USAGE_VALUES
};

static const struct {
    const char *name, *help;
} usage_values[USAGE_VALUES] = {
    [USAGE_SHARE] = {"traind_user_share",        "A user's share of the use of the slots, 0 to 1."},
    [USAGE_SECONDS] = {"traind_user_slot_seconds",
                     "Use of the slots by a user, in slot-seconds, decayed with the half-life."   },
    [USAGE_RUNNING] = {"traind_user_jobs_running", "Jobs of a user running on this machine."        },
    [USAGE_SLOTS] = {"traind_user_slots_used",   "Slots in use by the jobs of a user."            },
    [USAGE_QUEUED] = {"traind_user_jobs_queued",  "Queued jobs of a user."                         },
};

static double usage_value_of(const struct store_uses *uses, const struct store_use *use,
                             enum usage_value which)
{
    switch (which) {
    case USAGE_SHARE:
        return store_uses_share(uses, use->user);
    case USAGE_SECONDS:
        return use->slot_seconds;
    case USAGE_RUNNING:
        return (double)use->running;
    case USAGE_SLOTS:
        return (double)use->slots;
    default:
        return (double)use->queued;
    }
}

static void usage_print_name(FILE *out, const char *name)
{
    for (; *name; name++) {
        if (*name == '\n')
            fputs("\\n", out);
        else
            fprintf(out, *name == '"' || *name == '\\' ? "\\%c" : "%c", *name);
    }
}

int usage_print(const struct request *q, FILE *out, struct error *e)
{
    struct job_limits limits = job_manager_limits(q->app->jobs);
    struct store_uses uses;

    if (usage_now(q, &limits, &uses, e))
        return -(int)e->code;
    for (int which = 0; which < USAGE_VALUES && uses.count; which++) {
        const char *name = usage_values[which].name;
        fprintf(out, "# HELP %s %s\n# TYPE %s gauge\n", name, usage_values[which].help, name);
        for (size_t i = 0; i < uses.count; i++) {
            fprintf(out, "%s{user=\"", name);
            usage_print_name(out, uses.items[i].user);
            fprintf(out, "\"} %.10g\n",
                    usage_value_of(&uses, &uses.items[i], (enum usage_value)which));
        }
    }
    store_uses_clear(&uses);
    return 0;
}
