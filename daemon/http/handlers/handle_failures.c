/* The failure rules (daemon/launch/failure_rules.h) and how often each was right. */
#include <stdio.h>

#include "daemon/http/routes.h"
#include "daemon/launch/failure_rules.h"

int handle_failures(const struct request *q, struct reply *r, struct error *e)
{
    int64_t unlabelled;
    json_t *rules = job_failure_rules(q->app->jobs, &unlabelled);

    return reply_json(
        r, 200, json_pack("{s:o, s:I}", "rules", rules, "unlabelled", (json_int_t)unlabelled), e);
}

/* A label may be there twice, of two patterns: told once, as both count together. Labels need no
 * escapes. */
static bool failures_is_told(const json_t *rules, size_t before, const char *label)
{
    for (size_t i = 0; i < before; i++) {
        const json_t *rule = json_array_get(rules, i);
        if (strcmp(json_string_value(json_object_get(rule, "label")), label) == 0)
            return true;
    }
    return false;
}

void failures_print(const struct request *q, FILE *out)
{
    int64_t unlabelled;
    json_t *rules = job_failure_rules(q->app->jobs, &unlabelled);
    const json_t *rule;
    size_t i;

    fputs("# HELP traind_failures_total Failed attempts since the start of the daemon, by the "
          "label of the failure rules.\n# TYPE traind_failures_total counter\n",
          out);
    json_array_foreach (rules, i, rule) {
        const char *label = json_string_value(json_object_get(rule, "label"));
        if (!failures_is_told(rules, i, label))
            fprintf(out, "traind_failures_total{label=\"%s\"} %lld\n", label,
                    (long long)json_integer_value(json_object_get(rule, "count")));
    }
    fprintf(out, "traind_failures_total{label=\"" FAILURE_NO_LABEL "\"} %lld\n",
            (long long)unlabelled);
    json_decref(rules);
}
