/*
 * The table of a job's fields, in the order of the API's JSON: X(name, storage, column, form,
 * notice). It generates the members of struct store_job, the SELECT of the store and the reading of
 * its rows (daemon/store/job_row.c), the JSON of the API (daemon/http/handlers/job_json.c) and
 * of notices (daemon/notice/raise.c), and the parser of trainctl (client/job.c). See
 * doc/how-to-add-a-job-field.md.
 *
 * storage: the type in C, and the value for null in the database
 *   TEXT char *, NULL; INT int64_t, 0; INT_OR_NULL int64_t, JOB_FIELD_NULL; BOOL bool, false;
 *   REAL double, NAN; TIME double in Unix seconds, 0; STATE enum job_state;
 *   NONE: no member; the handler computes the value.
 * column: an SQL expression over the table job
 * form: the representation in JSON
 *   string, integer, real, time; positive: an integer, null unless above 0; known: an integer, null
 *   for JOB_FIELD_NULL; raw: JSON text; string_if, raw_if: omitted if there is no value; state:
 *   the name of the state; rounded, label, band: computed; hidden: not in JSON
 * notice: NOTICE if notices about the job contain the field, else SILENT
 */
#pragma once

#define JOB_FIELD_NULL (-1)

/* Number of images of a job that only evaluates, from its newest event. */
#define JOB_EVALUATED_COLUMN                                                                       \
    "case when train_steps <= 0 then coalesce((select json_extract(body, '$.images') from "        \
    "job_event where job_id = job.id and job_event.attempt = job.attempt and "                     \
    "type = 'eval_progress' order by job_event.id desc limit 1), 0) end"
/* Sorted JSON list, in the order of the table's key. */
#define JOB_TAGS_COLUMN                                                                            \
    "(select json_group_array(its.tag) from job_tag as its where its.job_id = job.id)"
#define JOB_WAITS_FOR_COLUMN                                                                       \
    "(select json_group_array(after_id) from job_after where job_id = job.id having count(*) > 0)"

/* clang-format off */
#define JOB_FIELDS(X) \
    X(id, INT, "id", id, SILENT) /* notices always contain it */ \
    X(name, TEXT, "name", string, NOTICE) \
    X(state, STATE, "state", state, NOTICE) \
    X(reason, TEXT, "reason", string, NOTICE) /* why it is in this state, for people */ \
    /* "user:NAME", "token:NAME" or "sweep 3"; NULL: unknown */ \
    X(submitted_by, TEXT, "submitted_by", string, NOTICE) \
    /* Current name, tags and note; those in the document may be older: job_label.h. */ \
    X(tags, TEXT, JOB_TAGS_COLUMN, raw, SILENT) \
    X(note, TEXT, "note", string, SILENT) \
    X(attempt, INT, "attempt", integer, NOTICE) /* 0: never launched; the first launch is 1 */ \
    X(priority, INT, "priority", integer, SILENT) \
    X(slots, INT, "slots", integer, SILENT) /* slots it holds on this machine while it runs; 0 with launcher slurm */ \
    X(launcher, TEXT, "launcher", hidden, SILENT) /* "local" or "slurm" */ \
    X(restarts, INT, "restarts", integer, SILENT) /* automatic restarts since it was submitted or resumed */ \
    X(resumes, BOOL, "resumes", hidden, SILENT) /* the next attempt starts from the newest checkpoint */ \
    X(wanted, TEXT, "wanted", hidden, SILENT) /* restart.grow: what to restore of its document, JSON; NULL: it has its nodes */ \
    X(grows_to, TEXT, "iif(finished_at is null, json_extract(wanted, '$.cluster.nodes'), null)", raw_if, SILENT) /* nodes */ \
    X(failure, TEXT, "failure", raw, SILENT) /* failure of the first attempt that failed, JSON */ \
    X(failure_label, TEXT, "failure_label", string, SILENT) /* assigned by the failure rules */ \
    X(queued_at, TIME, "queued_at", hidden, SILENT) /* determines its position in the queue */ \
    X(not_before, TIME, "not_before", hidden, SILENT) /* while queued: end of a restart's back-off */ \
    X(estimated_start, TIME, "iif(state = 'queued', estimated_start, null)", time, SILENT) \
    X(held_at, TIME, "held_at", time, SILENT) /* while queued; 0: not held */ \
    X(held_by, TEXT, "iif(held_at is null, null, held_by)", string_if, SILENT) /* same form as submitted_by */ \
    X(waits_for, TEXT, JOB_WAITS_FOR_COLUMN, raw_if, SILENT) /* jobs that have not succeeded yet, JSON list of ids */ \
    X(imported_from, TEXT, "imported_from", raw_if, SILENT) /* JSON: which job of which other database it is */ \
    X(created_at, TIME, "created_at", time, NOTICE) \
    X(started_at, TIME, "started_at", time, NOTICE) \
    X(attempt_started_at, TIME, "attempt_started_at", hidden, SILENT) /* start of the newest attempt */ \
    X(finished_at, TIME, "finished_at", time, NOTICE) \
    X(cancel_attempt, INT, "cancel_attempt", hidden, SILENT) /* last attempt for which a cancellation was requested */ \
    /* Progress, from the newest step event, and results, from eval and run_stop events */ \
    X(step, INT, "step", integer, NOTICE) /* completed steps */ \
    X(train_steps, INT, "train_steps", integer, NOTICE) /* from the plan; 0: the job only evaluates */ \
    X(evaluated_images, INT_OR_NULL, JOB_EVALUATED_COLUMN, known, SILENT) \
    X(eval_images, INT_OR_NULL, "iif(train_steps <= 0, eval_images, null)", known, SILENT) \
    X(images_per_eval, INT, "eval_images", hidden, SILENT) /* from the plan */ \
    X(evaluations, INT, "evaluations", hidden, SILENT) /* from the plan; 0: none, or unknown */ \
    X(global_batch, INT, "global_batch", positive, SILENT) /* images per step; 0: the plan has none */ \
    X(epoch, REAL, "epoch", real, NOTICE) \
    X(loss, REAL, "loss", real, NOTICE) \
    X(lr, REAL, "lr", real, SILENT) \
    /* Of the newest step; after an attempt, of all steps of the run, each counted once */ \
    X(images_per_sec, REAL, "images_per_sec", real, NOTICE) \
    X(ttt_seconds, REAL, "ttt_seconds", real, NOTICE) \
    X(top1, REAL, "top1", real, NOTICE) /* fraction */ \
    X(top5, REAL, "top5", real, NOTICE) \
    X(best_top1, REAL, "best_top1", real, SILENT) /* of the first evaluation with the highest top-1 */ \
    X(best_top1_step, INT_OR_NULL, "iif(best_top1 is null, null, best_top1_step)", known, SILENT) \
    X(best_top1_epoch, REAL, "best_top1_epoch", real, SILENT) \
    X(best_top1_at, TIME, "best_top1_at", time, SILENT) \
    X(time_limit_seconds, REAL, "time_limit_seconds", hidden, SILENT) /* time limit of an attempt */ \
    X(predicted_seconds, REAL, "predicted_seconds", hidden, SILENT) /* from the plan, followed by its bounds */ \
    X(predicted_low_seconds, REAL, "predicted_low_seconds", hidden, SILENT) \
    X(predicted_high_seconds, REAL, "predicted_high_seconds", hidden, SILENT) \
    X(time_left, NONE, "null", band, SILENT) \
    X(forecast, TEXT, "forecast", raw, SILENT) /* of an ended job: accuracy of its predictions, JSON */ \
    /* Of whole machines, in all attempts; a job is charged its share: daemon/job/job_cost.h */ \
    X(measured_joules, REAL, "joules", hidden, SILENT) \
    X(joules_whole, BOOL, "joules_whole", hidden, SILENT) /* all machines of all attempts were measured */ \
    X(nodes, INT, "nodes", hidden, SILENT) \
    X(node_share, REAL, "node_share", hidden, SILENT) /* fraction of each node's cores that the job uses */ \
    X(active_since, TIME, "active_since", hidden, SILENT) /* 0: not running */ \
    X(node_seconds, REAL, "node_seconds", hidden, SILENT) /* sum of whole nodes, in ended attempts */ \
    X(energy_source, NONE, "null", label, SILENT) \
    X(joules, NONE, "null", rounded, SILENT) \
    X(joules_per_image, NONE, "null", rounded, SILENT) \
    X(kwh, NONE, "null", rounded, SILENT) \
    X(node_hours, NONE, "null", rounded, SILENT) \
    X(cost, NONE, "null", rounded, SILENT) \
    X(currency, NONE, "null", label, SILENT) \
    X(slurm, TEXT, "slurm", raw_if, SILENT) /* its state in Slurm, JSON; NULL: not known yet */ \
    X(exit_code, INT_OR_NULL, "exit_code", known, SILENT) /* exit code of the launcher */ \
    X(exit_signal, INT_OR_NULL, "exit_signal", known, SILENT) \
    X(disk_bytes, INT, "disk_bytes", positive, SILENT) /* size of its run directory when last measured */ \
    X(run_dir, TEXT, "run_dir", string, SILENT) /* absolute; "jobs/ID" in the database */ \
    X(launcher_pid, INT, "launcher_pid", hidden, SILENT) /* 0: none */ \
    X(launcher_start, INT, "launcher_start", hidden, SILENT) /* field 22 of /proc/PID/stat, to detect a reused pid */

/* JSON with all defaults; loaded only where needed */
#define JOB_DOCUMENTS(X) \
    X(spec, TEXT, "spec", raw_if, SILENT) \
    X(plan, TEXT, "plan", raw_if, SILENT)
/* clang-format on */
