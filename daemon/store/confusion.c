#include "daemon/store/confusion.h"

#include <stdlib.h>

#include "common/json.h"
#include "common/run/attempt.h"
#include "daemon/store/once.h"
#include "daemon/store/sql.h"

int confusion_store(struct sql *c, int64_t job_id, const json_t *body, struct error *e)
{
    int64_t step = json_get_integer(body, "step", -1);
    char *cells = json_to_text(json_object_get(body, "cells"), JSON_COMPACT);
    int status = 0;

    if (step < 0 || step > EVENT_STEP_MAX || !cells) {
        free(cells);
        return 0;
    }
    if (json_get_integer(body, "from", 0) == 0)
        status = sql_run(c, e, NULL, "delete from confusion where job_id = ? and step = ?", "ii",
                         job_id, step);
    if (!status)
        status = sql_run(c, e, NULL,
                         "insert or replace into confusion (job_id, step, label, predicted, "
                         "images, examples) select ?1, ?2, value ->> 0, value ->> 1, value ->> 2, "
                         "nullif(trim(value -> 3, '[]'), '') from json_each(?3) where "
                         "json_type(value, '$[0]') = 'integer' and json_type(value, '$[1]') = "
                         "'integer' and json_type(value, '$[2]') = 'integer' and "
                         "value ->> 0 >= 0 and value ->> 1 >= 0 and value ->> 2 > 0",
                         "iis", job_id, step, cells);
    free(cells);
    return status;
}

#define OF_STEP " from confusion where " STORE_OF_JOB " and step = ?2 "

int store_confusion_step(struct store *s, int64_t job_id, int64_t *step, struct error *e)
{
    int64_t wanted = *step, found = -1;
    int status = once_get(s, e,
                          "select coalesce(max(step), -1) from confusion where " STORE_OF_JOB
                          " and (?2 < 0 or step = ?2)",
                          "ii:i", job_id, wanted, &found);

    if (status || found >= 0) {
        *step = found;
        return status;
    }
    return error_set(e, ERR_NOT_FOUND,
                     "job %lld has no confusion matrix%s: it was not evaluated%s, or by an older "
                     "version",
                     (long long)job_id, wanted < 0 ? "" : " of this step",
                     wanted < 0 ? " yet" : " there");
}

/* Names are quoted as by text_print_csv. */
#define AS_CSV                                                                                     \
    "with name(at, text) as materialized (select key, '\"' || iif(ltrim(value, '''') glob "        \
    "'[-=+@' || char(9, 13) || ']*', '''', '') || replace(value, '\"', '\"\"') || '\"' "           \
    "from json_each(?4)) select 'label,predicted,images' || iif(?4 is null, '', "                  \
    "',label_name,predicted_name') || char(10) || group_concat(line, '') from (select format("     \
    "'%d,%d,%d%s%s%s%s' || char(10), label, predicted, images, iif(?4 is null, '', ','), a.text, " \
    "iif(?4 is null, '', ','), b.text) as line from confusion left join name a on a.at = label "   \
    "left join name b on b.at = predicted where " STORE_OF_JOB                                     \
    " and step = ?2 and ?3 order by label, predicted)"

#define AS_JSON                                                                                    \
    "select json_object('job', ?1, 'step', ?2, 'images', sum(images), "                            \
    "'right', sum(iif(label = predicted, images, 0)), "                                            \
    "'mistaken_pairs', sum(label <> predicted), 'calibration_error', "                             \
    "(select calibration_error from eval where job_id = ?1 and step = ?2), "                       \
    "'names', json(?4), 'classes', json((select json_group_array(json_object("                     \
    "'label', label, 'images', n, 'right', r)) from (select label, sum(images) as n, "             \
    "sum(iif(label = predicted, images, 0)) as r" OF_STEP "group by label "                        \
    "order by 1.0 * r / n, n desc, label limit ?3))), "                                            \
    "'mistakes', json((select json_group_array(json_object('label', label, 'predicted', "          \
    "predicted, 'images', images, 'examples', iif(examples is null, 0, "                           \
    "1 + length(examples) - length(replace(examples, ',', ''))))) from (select *" OF_STEP          \
    "and label <> predicted order by images desc, label, predicted limit ?3)))) || "               \
    "char(10)" OF_STEP

int store_confusion_text(struct store *s, int64_t job_id, int64_t step, bool csv, int64_t limit,
                         const char *names, char **text, struct error *e)
{
    return once_get(s, e, csv ? AS_CSV : AS_JSON, "iiis:s", job_id, step, limit, names, text);
}

int store_confusion_example(struct store *s, int64_t job_id, int64_t step, int64_t *label,
                            int64_t predicted, int64_t number, int64_t *image, struct error *e)
{
    int64_t found = 0; /* 1 + the position; 0: none */
    int status =
        once_get(s, e,
                 "select coalesce(1 + (json('[' || examples || ']') ->> ?5), 0), label" OF_STEP
                 "and examples is not null and (?3 < 0 or label = ?3) and (?4 < 0 or "
                 "predicted = ?4) order by images desc, label, predicted limit 1",
                 "iiiii:ii", job_id, step, *label, predicted, number, &found, label);

    *image = found - 1;
    if (!status && found < 1)
        status = error_set(e, ERR_NOT_FOUND,
                           "job %lld has no such image: see \"mistakes\" and their \"examples\" in "
                           "/v1/jobs/%lld/confusion",
                           (long long)job_id, (long long)job_id);
    return status;
}
