/* Which jobs a filter finds, as a condition in SQL: for the files of this folder. */
#pragma once

#include "daemon/store/store.h"

/* A value of a job's document as JSON text; one that an older version did not write is null. */
#define FIND_VALUE(path) "coalesce(spec -> " path ", 'null')"

/* "user:eve" and "token:eve" are both found by "eve". instr finds text as it is: no wildcards. A
 * job has few tags: those asked for are counted. */
/* The submitters ?2 stands for: as they are written, the bare name of a user or token, and the
 * sweeps of these, as a sweep's jobs belong to its owner. */
#define FIND_NAMES "?2, 'user:' || ?2, 'token:' || ?2"
#define FIND_SUBMITTERS                                                                            \
    "(values (?2), ('user:' || ?2), ('token:' || ?2) union all "                                   \
    "select 'sweep ' || its.id from sweep as its where its.submitted_by in (" FIND_NAMES "))"
#define FIND_FITS                                                                                  \
    "(?1 = '' or instr(?1, ',' || state || ',')) "                                                 \
    "and (?2 is null or submitted_by in " FIND_SUBMITTERS ") "                                     \
    "and (?3 is null or instr(lower(coalesce(name, '')), lower(?3))) "                             \
    "and (?4 = 0 or submitted_by = 'sweep ' || ?4) "                                               \
    "and (?7 is null or ?8 = (select count(*) from job_tag as its where its.job_id = job.id "      \
    "and instr(?7, ',' || its.tag || ','))) "                                                      \
    "and (?11 is null or failure_label = ?11) "                                                    \
    "and (?9 is null or " FIND_VALUE(                                                              \
        "?9") " = ?10) "                                                                           \
              "and (?12 = 0 or finished_at > ?12) "                                                \
              "and (?5 is null or id = ?5 or instr(lower(coalesce(name, '') || char(10) || "       \
              "coalesce(reason, '') || char(10) || coalesce(submitted_by, '') || char(10) || "     \
              "coalesce(note, '') || char(10) || coalesce((select group_concat(its.tag, "          \
              "char(10)) "                                                                         \
              "from job_tag as its where its.job_id = job.id), '') || char(10) || "                \
              "coalesce(json_extract(spec, '$.model.arch'), '') || char(10) || "                   \
              "coalesce(json_extract(spec, '$.data.train'), '')), lower(?5)))"

/* What is bound to ?1 to ?12, for sql_query; a statement's own values stand behind it. ?6 is the
 * first of the tags, for a statement that begins with it. */
#define FIND_FORMAT "sssisssisssi"
#define FIND_BOUND(f, w)                                                                           \
    (w)->states, (f)->user, (f)->name, (f)->sweep, (f)->text, (w)->tag, (w)->tags, (w)->tag_count, \
        (f)->key, (f)->value, (f)->label, (f)->finished_after

/* The lists of a filter as the condition wants them. */
struct find_words {
    char states[256];       /* ",queued,,running,"; "": all */
    const char *tag, *tags; /* the first, and ",a,b,"; NULL: any */
    int64_t tag_count;
    char tag_text[STORE_TAGS_BYTES], tags_text[STORE_TAGS_BYTES + 2];
};
void find_words_of(const struct store_job_filter *filter, struct find_words *words);
