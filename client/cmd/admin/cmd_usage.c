/* trainctl usage: who uses the machine, and what one user may. */
#include <math.h>
#include <stdio.h>

#include "client/cmd.h"
#include "client/views/format.h"
#include "client/views/print.h"
#include "client/views/table.h"
#include "common/json.h"

static void usage_print_users(const json_t *users)
{
    static const char *const counts[] = {"running", "slots", "queued"};
    struct libscols_table *table =
        table_create(1, "USER~,SHARE>,SLOT-HOURS>,RUNNING>,SLOTS>,QUEUED>");
    char text[FORMAT_BYTES];
    const json_t *user;
    size_t i;

    json_array_foreach (users, i, user) {
        struct libscols_line *line = table_line(table);
        table_set(line, 0, json_get_text(user, "user", "(without a token)"));
        snprintf(text, sizeof text, "%.0f %%", 100 * json_get_number(user, "share", 0));
        table_set(line, 1, text);
        table_set(line, 2,
                  format_number(text, sizeof text, json_get_number(user, "slot_hours", NAN)));
        for (size_t c = 0; c < 3; c++) {
            snprintf(text, sizeof text, "%lld", json_get_integer(user, counts[c], 0));
            table_set(line, 3 + c, text);
        }
    }
    table_finish(table);
}

static void usage_print_limits(const json_t *answer)
{
    static const char *const names[] = {"max_running_per_user", "max_slots_per_user",
                                        "max_queued_per_user"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (json_get_integer(answer, names[i], 0) > 0)
            printf("%s: %lld\n", names[i], json_get_integer(answer, names[i], 0));
    double weight = json_get_number(answer, "fair_share_weight", 0);
    double hours = json_get_number(answer, "fair_share_half_life_hours", 0);
    bool days = fmod(hours, 24) == 0;
    if (weight > 0)
        print_prose("Usage decays with a half-life of %g %s. A user with all of it loses %g "
                    "points of priority.",
                    days ? hours / 24 : hours, days ? "days" : "hours", weight);
    else
        print_prose("Usage decays with a half-life of %g %s. It does not affect queue order.",
                    days ? hours / 24 : hours, days ? "days" : "hours");
}

static void usage_print(const json_t *answer)
{
    usage_print_users(json_object_get(answer, "users"));
    usage_print_limits(answer);
}

/* clang-format off */
const struct cmd cmd_usage_entry = {
    .name = "usage", .synopsis = "", .help = "show usage and limits per user", .example = "trainctl usage",
    .run = cmd_show_document, .document = "/v1/usage", .print = usage_print,
};
/* clang-format on */
