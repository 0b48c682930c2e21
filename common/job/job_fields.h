/*
 * The table of a job's fields: X(name, storage, column, form, notice), in the order of the API's
 * JSON. From it come the members of struct store_job, what the store selects and reads
 * (daemon/store/job_row.c), the JSON of the API (daemon/http/handlers/handle_jobs.c), a notice's
 * job (daemon/notice/raise.c) and what trainctl reads (client/job.c). doc/how-to-add-a-job-field.md
 *
 * storage, in C and for null in the database:
 *   TEXT char *, NULL; INT int64_t, 0; INT_OR_NULL int64_t, JOB_FIELD_NULL; BOOL bool, false;
 *   REAL double, NAN; TIME double in Unix seconds, 0; STATE enum job_state;
 *   NONE: no member; the handler computes it.
 * column: an expression in SQL over the table job.
 * form, in JSON:
 *   string, integer, real, time; positive: an integer, null unless above 0; known: an integer, null
 *   for JOB_FIELD_NULL; raw: JSON text; string_if, raw_if: no member where there is none; state,
 *   its name; rounded, label, band: computed; hidden: not in JSON.
 * notice: NOTICE if the field is also in the job of a notice, else SILENT.
 */
#pragma once

#define JOB_FIELD_NULL (-1)

/* Of a job that evaluates only, as its newest event says. */
#define JOB_EVALUATED_COLUMN                                                                       \
    "case when train_steps <= 0 then coalesce((select json_extract(body, '$.images') from "        \
    "job_event where job_id = job.id and job_event.attempt = job.attempt and "                     \
    "type = 'eval_progress' order by job_event.id desc limit 1), 0) end"
/* A JSON list, sorted, as it is read from the table's key. */
#define JOB_TAGS_COLUMN                                                                            \
    "(select json_group_array(its.tag) from job_tag as its where its.job_id = job.id)"

/* clang-format off */
#define JOB_FIELDS(X) \
    X(id, INT, "id", id, SILENT) /* in notices anyway */ \
    X(name, TEXT, "name", string, NOTICE) \
    X(state, STATE, "state", state, NOTICE) \
    X(reason, TEXT, "reason", string, NOTICE) /* of the state, for a person */ \
    /* "user:NAME", "token:NAME", "sweep 3"; NULL: nobody was named */ \
    X(submitted_by, TEXT, "submitted_by", string, NOTICE) \
    /* Name, tags and note as they are now; the document may have those of an earlier time: job_label.h. */ \
    X(tags, TEXT, JOB_TAGS_COLUMN, raw, SILENT) \
    X(note, TEXT, "note", string, SILENT) \
    X(attempt, INT, "attempt", integer, NOTICE) /* 0: never launched; the first launch is 1 */ \
    X(priority, INT, "priority", integer, SILENT) \
    X(slots, INT, "slots", integer, SILENT) /* local ones, while it runs; 0 with launcher slurm */ \
    X(launcher, TEXT, "launcher", hidden, SILENT) /* "local", "slurm" */ \
    X(restarts, INT, "restarts", integer, SILENT) /* automatic, since it was submitted or resumed */ \
    X(resumes, BOOL, "resumes", hidden, SILENT) /* the next attempt starts from the newest checkpoint */ \
    X(failure, TEXT, "failure", raw, SILENT) /* of the first attempt that failed, JSON */ \
    X(failure_label, TEXT, "failure_label", string, SILENT) /* by the failure rules */ \
    X(queued_at, TIME, "queued_at", hidden, SILENT) /* its place in the queue */ \
    X(not_before, TIME, "not_before", hidden, SILENT) /* of a queued job: end of a restart's back-off */ \
    X(estimated_start, TIME, "iif(state = 'queued', estimated_start, null)", time, SILENT) \
    X(held_at, TIME, "held_at", time, SILENT) /* of a queued job; 0: not held */ \
    X(held_by, TEXT, "iif(held_at is null, null, held_by)", string_if, SILENT) /* as submitted_by */ \
    X(imported_from, TEXT, "imported_from", raw_if, SILENT) /* the job of another database that it is, JSON */ \
    X(created_at, TIME, "created_at", time, NOTICE) \
    X(started_at, TIME, "started_at", time, NOTICE) \
    X(attempt_started_at, TIME, "attempt_started_at", hidden, SILENT) /* the newest attempt */ \
    X(finished_at, TIME, "finished_at", time, NOTICE) \
    X(cancel_attempt, INT, "cancel_attempt", hidden, SILENT) /* the last attempt that was to be cancelled */ \
    /* Progress, from the newest step event, and results, from eval and run_stop. */ \
    X(step, INT, "step", integer, NOTICE) /* completed */ \
    X(train_steps, INT, "train_steps", integer, NOTICE) /* of the plan; 0: it evaluates only */ \
    X(evaluated_images, INT_OR_NULL, JOB_EVALUATED_COLUMN, known, SILENT) \
    X(eval_images, INT_OR_NULL, "iif(train_steps <= 0, eval_images, null)", known, SILENT) \
    X(images_per_eval, INT, "eval_images", hidden, SILENT) /* of the plan */ \
    X(evaluations, INT, "evaluations", hidden, SILENT) /* of the plan; 0: none, or not known */ \
    X(global_batch, INT, "global_batch", positive, SILENT) /* images per step; 0: the plan has none */ \
    X(epoch, REAL, "epoch", real, NOTICE) \
    X(loss, REAL, "loss", real, NOTICE) \
    X(lr, REAL, "lr", real, SILENT) \
    /* Of the newest step; once an attempt has ended, of all steps of the run, each counted once. */ \
    X(images_per_sec, REAL, "images_per_sec", real, NOTICE) \
    X(ttt_seconds, REAL, "ttt_seconds", real, NOTICE) \
    X(top1, REAL, "top1", real, NOTICE) /* as a fraction */ \
    X(top5, REAL, "top5", real, NOTICE) \
    X(best_top1, REAL, "best_top1", real, SILENT) /* of the first evaluation with the highest top-1 */ \
    X(best_top1_step, INT_OR_NULL, "iif(best_top1 is null, null, best_top1_step)", known, SILENT) \
    X(best_top1_epoch, REAL, "best_top1_epoch", real, SILENT) \
    X(best_top1_at, TIME, "best_top1_at", time, SILENT) \
    X(time_limit_seconds, REAL, "time_limit_seconds", hidden, SILENT) /* of an attempt */ \
    X(predicted_seconds, REAL, "predicted_seconds", hidden, SILENT) /* of the plan, with its bounds: */ \
    X(predicted_low_seconds, REAL, "predicted_low_seconds", hidden, SILENT) \
    X(predicted_high_seconds, REAL, "predicted_high_seconds", hidden, SILENT) \
    X(time_left, NONE, "null", band, SILENT) \
    X(forecast, TEXT, "forecast", raw, SILENT) /* of an ended job: how good its predictions were, JSON */ \
    /* Of whole machines, in all attempts; a job is charged its share: daemon/job/job_cost.h. */ \
    X(measured_joules, REAL, "joules", hidden, SILENT) \
    X(joules_whole, BOOL, "joules_whole", hidden, SILENT) /* all machines of all attempts were measured */ \
    X(nodes, INT, "nodes", hidden, SILENT) \
    X(node_share, REAL, "node_share", hidden, SILENT) /* of the cores of each node that are the job's */ \
    X(active_since, TIME, "active_since", hidden, SILENT) /* 0: it does not run */ \
    X(node_seconds, REAL, "node_seconds", hidden, SILENT) /* of ended attempts and whole nodes */ \
    X(energy_source, NONE, "null", label, SILENT) \
    X(joules, NONE, "null", rounded, SILENT) \
    X(joules_per_image, NONE, "null", rounded, SILENT) \
    X(kwh, NONE, "null", rounded, SILENT) \
    X(node_hours, NONE, "null", rounded, SILENT) \
    X(cost, NONE, "null", rounded, SILENT) \
    X(currency, NONE, "null", label, SILENT) \
    X(slurm, TEXT, "slurm", raw_if, SILENT) /* Slurm's state of it, JSON; NULL: (to be) handed to it */ \
    X(exit_code, INT_OR_NULL, "exit_code", known, SILENT) /* of the launcher */ \
    X(exit_signal, INT_OR_NULL, "exit_signal", known, SILENT) \
    X(disk_bytes, INT, "disk_bytes", positive, SILENT) /* of its run directory, as last measured */ \
    X(run_dir, TEXT, "run_dir", string, SILENT) /* absolute; "jobs/ID" in the database */ \
    X(launcher_pid, INT, "launcher_pid", hidden, SILENT) /* 0: none */ \
    X(launcher_start, INT, "launcher_start", hidden, SILENT) /* field 22 of /proc/PID/stat: no reused pid */

/* JSON with every default, loaded where they are asked for. */
#define JOB_DOCUMENTS(X) \
    X(spec, TEXT, "spec", raw_if, SILENT) \
    X(plan, TEXT, "plan", raw_if, SILENT)
/* clang-format on */
