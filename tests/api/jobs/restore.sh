#!/usr/bin/env bash
# Whose a run directory is: a backup restored as traind(8) says, a database lost, a state folder moved, copied or of an
# older version. No job gets the id, the checkpoints or the events of another.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../runs.sh.inc"
export OMP_NUM_THREADS=1
trainctl=$top_builddir/trainctl
one='{"workers_per_node": 1, "threads_per_worker": 1}'

train() { # SEED: sets $id
    jq -n --argjson seed "$1" '{name: "small", cluster: {workers_per_node: 1, threads_per_worker: 1}, seed: $seed,
        data: {train: "synthetic", train_images: 64}, batch_per_worker: 4, steps: 4, restart: {max: 0},
        model: {arch: "resnet18", width: 0.0625, image_size: 32, classes: 10}, checkpoint: {every_steps: 2, keep: 2}, lr: {warmup_epochs: 0}}' >"$work/job.json"
    call -d "@$work/job.json" /v1/jobs
    id=$(jq -r '.id // 0' <<<"$body")
}

files_of() { # ID: names, times and sizes
    (cd "$state/jobs/$1" && find . -printf '%p %T@ %s\n' | sort)
}

take_backup() { "$trainctl" --server "unix:$state/traind.sock" backup --force "$work/backup.db" >/dev/null; }

restore() {
    mkdir -p "$work/away"
    mv "$state"/traind.db* "$work/away"
    cp "$work/backup.db" "$state/traind.db"
}

log_since_start() { tail -n +"$log_lines" "$work/daemon.log"; }
restart() { log_lines=$(($(wc -l <"$work/daemon.log") + 1)); restart_runs; }

# ------------------------------------------------------------------ a real training, a real backup

printf '%s\n' "worker = $top_builddir/tests/bin/train-worker" "slots = 2" >"$work/traind.conf"
start_daemon --config "$work/traind.conf"
train 1
ok "a training succeeds" wait_state 1 succeeded
is "$(jq -c '[.job, (.store | length), (.created_at * 1e3 | floor)]' "$state/jobs/1/owner.json")" "[1,32,$(job 1 "created_at * 1e3 | floor")]" "its run directory names its job"
ok "a backup is made" take_backup
train 2
ok "another training, after the backup, succeeds" wait_state 2 succeeded
stop_daemon
before=$(files_of 2) # mllog.txt and tensorboard/ follow the final state
restore
restart
like "$(log_since_start)" "has run directories that the database has no job for: 2. They are left alone; new jobs get ids above 2" \
    "the restored database does not know the second, and the log says so"
call /v1/jobs/2
want 404 "its row is gone"
train 3
is "$id" 3 "a new job does not get its id"
ok "it succeeds" wait_state 3 succeeded
steps_are_complete 3 4 "the new job"
is "$(jq '[.checkpoints[].step] | tojson' <(get "/v1/jobs/3/checkpoints"))" '"[4,2]"' "with checkpoints of its own"
is "$(files_of 2)" "$before" "the other one's run directory is as it was"
call /v1/jobs/1/checkpoints/4
want 200 "what the backup knows is there"

# A directory that comes while the daemon runs.
cp -a "$state/jobs/2" "$state/jobs/4"
before=$(files_of 4)
train 4
is "$id" 4 "a job whose directory is another's"
ok "fails" wait_state 4 failed
like "$(job 4 reason)" "the run directory $state/jobs/4 belongs to another job 2, submitted 20[0-9: -]* UTC, which this database does not know" \
    "and says whose it is"
call /v1/jobs/4/checkpoints
refused 409 conflict 'belongs to another job 2' "the checkpoints there are not given out as its own"
call -X POST -d '{}' /v1/jobs/4/resume
refused 409 conflict 'belongs to another job 2' "nor is it resumed from them"
is "$(job 4 checkpoint_step)" null "nor shown"
call -X DELETE /v1/jobs/4
want 200 "the job can be removed"
is "$(files_of 4)" "$before" "the directory stays as it was"
stop_daemon

# No database any more.
rm "$state"/traind.db*
restart
like "$(log_since_start)" "has no job for: 1, 2, 3, 4. " "with a new database all are without a job"
train 5
is "$id" 5 "ids go on above them"
ok "it succeeds" wait_state 5 succeeded
stop_daemon

# A file that cannot be read, or tells nothing.
echo '{"job": 5' >"$state/jobs/5/owner.json"
restart
call /v1/jobs/5/log
refused 422 corrupt "cannot determine the owner of the run directory $state/jobs/5: .*owner.json" "a damaged owner.json"
stop_daemon
rm "$state/jobs/5/owner.json"
restart
call /v1/jobs/5/log
refused 409 conflict "was not made for job 5 \(it has no owner.json\)" "no owner.json"

# ------------------------------------------------------------------ the database behind the run directory

stop_daemon
rm -rf "$state"
start_runs
submit "steps=100000 step_ms=20 every=10"
ok "a job runs" eventually has_events "$id" 3
submit "steps=40 step_ms=1 every=10"
take_backup
call -X POST /v1/jobs/1/cancel
ok "it is cancelled" wait_state 1 cancelled
ok "the one that was queued in the backup succeeds" wait_state 2 succeeded
stop_daemon
restore
restart
ok "what ran in the backup is judged by its run directory" wait_state 1 cancelled
ok "what was queued runs again" wait_state 2 succeeded
is "$(job 2 attempt)" 2 "as another attempt than the one the database does not know"
steps_are_complete 2 40 "it"
ok "the checkpoints of the other attempt are put aside" test -s "$state/jobs/2/checkpoints-to-attempt-1/step-00000040/state.json"
like "$(get "/v1/jobs/2/events?limit=1000" | jq -r '.events[] | select(.type == "warning").message')" "held checkpoints of attempts that the database does not know" "the job says so"

# An owner.json that cannot be read, of a job that runs.
submit "steps=100000 step_ms=20 every=10"
ok "a job runs" eventually has_events "$id" 3
kill_daemon
: >"$state/jobs/$id/owner.json"
restart
ok "it is followed again, by what its processes say" eventually grep -q "job $id: still running, following it again" "$work/daemon.log"
is "$(jq .job "$state/jobs/$id/owner.json")" "$id" "with a new owner.json"
call -X POST "/v1/jobs/$id/cancel"
ok "it can be cancelled" wait_state "$id" cancelled

submit "steps=100000 step_ms=20 every=10"
first=$id
ok "a job runs" eventually has_events "$first" 3
submit "steps=100000 step_ms=20 every=10"
take_backup
call -X POST "/v1/jobs/$first/cancel"
ok "the next one, queued in the backup, runs" eventually has_events "$id" 3
stop_daemon
restore
restart
ok "it still runs, unknown to the restored database: it is not started beside itself" wait_state "$id" failed
like "$(job "$id" reason)" "attempt 1 of job $id, which the database does not know .*, is still running as process [0-9]+: end it" "the reason names the process"
ok "which is left alone" test "$(processes "$id")" -gt 0
end_runs
none_left() { [ "$(processes "$id")" = 0 ]; }
ok "it ends" eventually none_left
call -X POST -d '{}' "/v1/jobs/$id/resume"
want 202 "then the job is resumed"
ok "as attempt 2" eventually grep -qs -- '--attempt 2' "$state/jobs/$id/attempt-2/command"
call -X POST "/v1/jobs/$id/cancel"
ok "it is cancelled" wait_state "$id" cancelled

# ------------------------------------------------------------------ a state folder copied and moved

submit "steps=100000 step_ms=20 every=10"
running=$id
ok "a job runs" eventually has_events "$running" 3
kill -STOP "$daemon" # or the database's files are of different moments
cp -a "$state" "$work/copy"
kill -CONT "$daemon"
original=$state original_daemon=$daemon
state=$work/copy
restart
ok "a copy of the state folder calls the job failed" wait_state "$running" failed
ok "which goes on in the original" test "$(state=$original processes "$running")" -gt 0
is "$(job 2 run_dir)" "$work/copy/jobs/2" "the copy has run directories of its own"
stop_daemon
state=$original daemon=$original_daemon url=$(cat "$original/listen")
ok "the original's job runs on" in_state "$running" running
call -X POST "/v1/jobs/$running/cancel"
ok "until it is cancelled" wait_state "$running" cancelled
stop_daemon
rm -rf "$work/copy"
mv "$state" "$work/moved"
state=$work/moved
restart
is "$(job 2 run_dir)" "$state/jobs/2" "a moved state folder: the job's new run directory"
call /v1/jobs/2/log
want 200 "its log"
like "$body" "rank 0 is process" "... is there"
is "$(job 2 checkpoint_step)" 40 "so are its checkpoints"
call -X POST -d '{}' "/v1/jobs/$running/resume"
want 202 "a job can be resumed"
ok "and runs there" eventually grep -qs -- "--run-dir $state/jobs/$running " "$state/jobs/$running/attempt-2/command"
call -X POST "/v1/jobs/$running/cancel"
ok "until it is cancelled" wait_state "$running" cancelled
stop_daemon

# ------------------------------------------------------------------ a backup with the runs, restored in another place

restart
submit "steps=100000 step_ms=20 every=10"
ok "a job runs" eventually has_events "$id" 3
ok "a backup is made meanwhile" "$trainctl" --server "unix:$state/traind.sock" backup "$work/all.db"
"$trainctl" --server "unix:$state/traind.sock" backup "$work/all.db" >"$work/out" 2>&1
like "$? $(cat "$work/out")" "^1 .*all.db already exists; --force replaces it" "another of the same name is refused"
is "$(stat -c %a "$work/all.db")" 600 "only its owner can read it"
tar -C "$state" --exclude='.removed-*' --warning=no-file-changed -czf "$work/jobs.tar.gz" jobs
like "$?" '^[01]$' "and the runs are copied behind it"
call -X POST "/v1/jobs/$id/cancel"
ok "the job is cancelled" wait_state "$id" cancelled
stop_daemon
moved=$state state=$work/elsewhere
mkdir -m 700 "$state"
cp "$work/all.db" "$state/traind.db"
tar -C "$state" -xf "$work/jobs.tar.gz"
restart
ok "the restored daemon starts, the job that ran is not running there" wait_state "$id" failed
is "$(curl -sS "$url/v1/jobs/2/log")" "$(cat "$moved/jobs/2/attempt-2/stdout.log")" "a log is what it was"
is "$(job 2 checkpoint_step)" 40 "its checkpoints are there"
is "$(cd "$state/jobs" && find . -type f -exec md5sum {} + | grep -v "^[^ ]*  ./$id/" | sort)" \
    "$(cd "$moved/jobs" && find . -type f -exec md5sum {} + | grep -v "^[^ ]*  ./$id/" | sort)" "all files of the runs that had ended are the same"
stop_daemon
rm -rf "$state"
state=$moved
mv "$state/jobs/2" "$work/lost"
restart
like "$(log_since_start)" "run directories of these jobs are missing in $state/jobs: 2. Their logs and checkpoints are not available" "a missing run directory is told at the start"
for route in log checkpoints checkpoints/40 trace; do
    call "/v1/jobs/2/$route"
    refused 404 not-found "the run directory of job 2 is missing: $state/jobs/2" "and by $route"
done
"$trainctl" --server "$url" logs 2 >"$work/out" 2>&1
is $? 3 "trainctl logs"
like "$(cat "$work/out")" "is missing: $state/jobs/2" "says so too"
mv "$work/lost" "$state/jobs/2"

# ------------------------------------------------------------------ of a version before owner.json

stop_daemon
mv "$state/traind.db" "$work/new.db"
version=0
for migration in "$top_srcdir"/schema/migrations/*.sql; do
    [[ $migration != *_identity.sql ]] || break
    sqlite3 "$state/traind.db" <"$migration"
    version=$((version + 1))
done
columns=$(sqlite3 "$state/traind.db" "select group_concat(name) from pragma_table_info('job')")
sqlite3 "$state/traind.db" "pragma application_id = $(sqlite3 "$work/new.db" 'pragma application_id'); pragma user_version = $version;
    attach '$work/new.db' as new; insert into job ($columns) select $columns from new.job; update job set run_dir = '/somewhere/else/jobs/' || id"
rm "$state"/jobs/*/owner.json
restart
is "$(sql 'select run_dir from job where id = 2')" jobs/2 "an older database: run directories are told from the state folder on"
is "$(job 2 checkpoint_step)" 40 "those without an owner belong to the jobs that it knows"
call -X POST -d '{}' "/v1/jobs/$running/resume"
want 202 "which can go on"
ok "and run" eventually test -e "$state/jobs/$running/attempt-3"
is "$(jq .job "$state/jobs/$running/owner.json")" "$running" "and get an owner then"
call -X POST "/v1/jobs/$running/cancel"
ok "it is cancelled" wait_state "$running" cancelled
submit "steps=2" "$one"
ok "a new job succeeds" wait_state "$id" succeeded
is "$(jq .job "$state/jobs/$id/owner.json")" "$id" "with an owner"
ok "the daemon stops in order" stop_daemon
done_testing
