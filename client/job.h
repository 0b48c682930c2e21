/* A job as the API tells it, read for showing. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "common/error.h"
#include "common/job/job_fields.h"

/* By the form of job_fields.h: what trainctl reads of a member. */
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

/* The texts and numbers of job_fields.h. Texts are borrowed from the JSON, "" where there is none;
 * numbers then are NAN. */
struct job {
    long id; /* 0: no daemon's, known by its name */
    JOB_FIELDS(JOB_DECLARE)
    double checkpoint_step;
    double left, left_low, left_high; /* seconds to the end of an active job, by the daemon */
    double read_at;                   /* when, Unix seconds */
};

void job_read(const json_t *json, struct job *job);

/* What an event of the live stream says of it: step, speed, accuracy. Not the state: whoever sees
 * it change asks for the job. True: something changed. */
bool job_take_event(struct job *job, const char *type, const json_t *body);

/* "baseline, paper": the tags in the API's JSON of a job; the caller frees it. */
char *job_tags_words(const json_t *json);
char *job_note_words(const json_t *json); /* likewise, its note in one line */

/* GET /v1/jobs/ID. *json is a new reference that the strings of *job borrow from. */
int job_fetch(long id, json_t **json, struct job *job, struct error *e);

bool job_ended(const struct job *job);

/* What trainctl wait exits with: 0 succeeded, 1 failed, 130 cancelled; -1 before its end. */
int job_outcome(const struct job *job);

/* Seconds to its end now, with a low and a high that may be NAN (all may): what the daemon said,
 * less what has passed, or else the training that is left at its speed. */
struct job_left {
    double value, low, high;
};
struct job_left job_time_left(const struct job *job, double now);
#define JOB_LEFT_BYTES 160
char *job_left_words(char *text, size_t bytes, struct job_left left); /* "3 min (2 min to 5 min)" */

/* 0 to 1, by steps, or by images of a job that evaluates only. */
double job_progress(const struct job *job);

bool job_evaluates_only(const struct job *job);

/* What ttt_seconds are of it: "time to train", "time to evaluate". */
const char *job_time_label(const struct job *job);

/* "step 3 of 10", "20,000 of 50,000 images" */
char *job_done_words(char *text, size_t bytes, const struct job *job);
#define JOB_DONE_BYTES 96

/* "green", "red"...: the colour a state is shown in, as libsmartcols names it; NULL: none. */
const char *job_state_color(const char *state);

/* One line on how it ended: "job 3 succeeded: top-1 86.31 %, time to train 4 min 52 s". */
void job_print_outcome(const struct job *job);
