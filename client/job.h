/* A job as returned by the API, for display. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "common/error.h"
#include "common/job/job_fields.h"

/* What trainctl reads of a member, by its form in job_fields.h. */
#define JOB_MEMBER_id(use, name)        use##_none(name)
#define JOB_MEMBER_string(use, name)    use##_text(name)
#define JOB_MEMBER_string_if(use, name) use##_text(name)
#define JOB_MEMBER_state(use, name)     use##_text(name)
#define JOB_MEMBER_label(use, name)     use##_text(name)
#define JOB_MEMBER_integer(use, name)   use##_number(name)
#define JOB_MEMBER_positive(use, name)  use##_number(name)
#define JOB_MEMBER_known(use, name)     use##_number(name)
#define JOB_MEMBER_real(use, name)      use##_number(name)
#define JOB_MEMBER_time(use, name)      use##_number(name)
#define JOB_MEMBER_rounded(use, name)   use##_number(name)
#define JOB_MEMBER_raw(use, name)       use##_none(name)
#define JOB_MEMBER_raw_if(use, name)    use##_none(name)
#define JOB_MEMBER_band(use, name)      use##_none(name)
#define JOB_MEMBER_hidden(use, name)    use##_none(name)
#define JOB_DECLARE_text(name)          const char *name;
#define JOB_DECLARE_number(name)        double name;
#define JOB_DECLARE_none(name)
#define JOB_DECLARE(name, storage, column, form, notice) JOB_MEMBER_##form(JOB_DECLARE, name)

/* The strings and numbers of job_fields.h. Strings are borrowed from the JSON, "" if missing;
 * missing numbers are NAN. */
struct job {
    long id; /* 0: a run of trainctl itself */
    JOB_FIELDS(JOB_DECLARE)
    double checkpoint_step;
    double left, left_low,
        left_high;  /* the daemon's estimate of the seconds to the end of an active job */
    double read_at; /* Unix time */
};

void job_read(const json_t *json, struct job *job);

/* Updates step, speed and accuracy from an event of the stream, but not the state, for which the
 * job is read again. Returns whether anything changed. */
bool job_take_event(struct job *job, const char *type, const json_t *body);

/* Returns "baseline, paper". The caller frees it. */
char *job_tags_words(const json_t *json);
char *job_note_words(const json_t *json); /* its note on one line; the caller frees it */

/* json is set to a new reference, from which *job borrows. */
int job_fetch(long id, json_t **json, struct job *job, struct error *e);

bool job_ended(const struct job *job);

/* Returns the exit code of `trainctl wait`: 0 succeeded, 1 failed, 130 cancelled; -1: not ended. */
int job_outcome(const struct job *job);

/* Seconds to the end; each may be NAN. From the daemon's estimate less the time since, or from the
 * remaining steps at the current speed. */
struct job_left {
    double value, low, high;
};
struct job_left job_time_left(const struct job *job, double now);
#define JOB_LEFT_BYTES 160
char *job_left_words(char *text, size_t bytes, struct job_left left); /* "3 min (2 min to 5 min)" */

/* Returns the progress, 0 to 1, by steps, or by images in an evaluation job. */
double job_progress(const struct job *job);

bool job_evaluates_only(const struct job *job);

/* Returns what ttt_seconds measures: "time to train" or "time to evaluate". */
const char *job_time_label(const struct job *job);

/* Formats as "step 3 of 10" or "20,000 of 50,000 images". */
char *job_done_words(char *text, size_t bytes, const struct job *job);
#define JOB_DONE_BYTES 96

/* Returns libsmartcols' name for the colour of a state ("green"); NULL: none. */
const char *job_state_color(const char *state);

void job_print_outcome(const struct job *job);
