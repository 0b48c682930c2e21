#!/usr/bin/env bash
# A Slurm that does not answer: its words stand in the job's reason and, once, in the log; what never started can be cancelled at once
# and removed, also behind a restart of traind, and what Slurm took meanwhile is cancelled there.
# shellcheck source=tests/api/runs.sh.inc
. "${top_srcdir:?run it by make check}/tests/api/runs.sh.inc"

# ------------------------------------------------------------------ commands that say what they say without a controller

mkdir -p "$work/bin"
away() {
    for command in sbatch squeue scancel sinfo; do
        write_script "$work/bin/$command" <<END
#!/bin/sh
echo "$command: error: Unable to contact slurm controller (connect failure)" >&2
exit 1
END
    done
}
away
export PATH=$work/bin:$PATH
slurm_job() {
    submit "$1" '{"launcher": "slurm", "nodes": 2, "workers_per_node": 1, "threads_per_worker": 1}'
}
logged() { # WORDS: how often
    grep -c -- "$1" "$work/daemon.log"
}
reason_says() { # ID WORDS
    [[ $(job "$1" reason) == *"$2"* ]]
}

start_runs "slurm.poll_seconds = 1"
slurm_job first
want 201 "a job is taken while Slurm is away"
words='Unable to contact slurm controller (connect failure)'
ok "its reason has sbatch's words" eventually reason_says "$id" "does not answer: sbatch: error: $words"
ok "the log has squeue's" eventually grep -qF "Slurm does not answer; its jobs are assumed to be running: squeue: error: $words" "$work/daemon.log"
call -X POST "/v1/jobs/$id/cancel"
like "$status" '^20[02]$' "it can be cancelled" # 200: it has ended already
ok "and ends" wait_state "$id" cancelled
like "$(job "$id" reason)" '^cancelled on request' "with that as the reason"
call -X DELETE "/v1/jobs/$id"
want 200 "it can be removed"

# ------------------------------------------------------------------ behind a restart

slurm_job second
ok "another one waits" eventually reason_says "$id" "does not answer"
kill_daemon
restart_runs
ok "as it does behind a restart" in_state "$id" queued
call -X POST "/v1/jobs/$id/cancel"
ok "where it can be cancelled as well" wait_state "$id" cancelled
slurm_job third
ok "a third one waits" eventually reason_says "$id" "does not answer"
kill_daemon
: >"$state/jobs/$id/attempt-1/cancel-requested"
restart_runs
ok "a cancelling that a killed daemon had begun ends it" wait_state "$id" cancelled

# ------------------------------------------------------------------ the log

slurm_job fourth
before=$(logged "error: Unable to contact")
ok "a fourth one waits" eventually reason_says "$id" "does not answer"
sleep 5 # several looks: not waited for, but counted
ok "what Slurm says is not repeated in the log" test $(($(logged "error: Unable to contact") - before)) -le 2

# ------------------------------------------------------------------ Slurm is back

# A queue of one job: what sbatch was given, from then on.
back() { # [slowly]: sbatch waits for a file
    local wait=:
    [ -z "${1-}" ] || wait="until [ -e '$work/go' ]; do sleep 0.1; done"
    write_script "$work/bin/squeue" <<END
#!/bin/sh
name=\$(cat "$work/queued" 2>/dev/null) && echo '{"jobs": [{"job_id": 77, "name": "'"\$name"'", "job_state": "PENDING", "state_reason": "Priority",
    "partition": "p"}]}' || echo '{"jobs": []}'
END
    write_script "$work/bin/scancel" <<END
#!/bin/sh
echo "\$1" >>"$work/cancelled"
rm -f "$work/queued"
END
    # last: traind submits as soon as it answers
    write_script "$work/bin/sbatch" <<END
#!/bin/sh
touch "$work/submitting"
$wait
sed -n 's/^#SBATCH --job-name=//p' "\$2" >"$work/queued"
echo 77
END
}
back
ok "it is submitted once Slurm answers" eventually test -s "$work/queued"
ok "which the job says" eventually reason_says "$id" "in Slurm's queue as job 77"
is "$(logged 'Slurm answers again')" 1 "and the log"
call -X POST "/v1/jobs/$id/cancel"
ok "cancelled it ends" wait_state "$id" cancelled
is "$(sort -u "$work/cancelled")" 77 "in Slurm too"

rm -f "$work/submitting" "$work/cancelled"
back slowly
slurm_job fifth
ok "a submission takes long" eventually test -e "$work/submitting"
call -X POST "/v1/jobs/$id/cancel"
ok "the job is cancelled meanwhile" wait_state "$id" cancelled
ok "before it is over" test ! -e "$work/queued"
touch "$work/go"
ok "what Slurm got of it is cancelled there" eventually test -s "$work/cancelled"
is "$(sort -u "$work/cancelled")" 77 "by its number"

rm -f "$work/submitting" "$work/cancelled"
back
slurm_job sixth
ok "a job waits in Slurm's queue" eventually reason_says "$id" "in Slurm's queue as job 77"
away
call -X POST "/v1/jobs/$id/cancel"
ok "cancelled while Slurm is away it ends" wait_state "$id" cancelled
run=$(sed -n "s/^run=//p" "$state/jobs/$id/attempt-1/sbatch")
is "$run" "$state/jobs/$id" "the script knows its folder"
is "$(SLURM_JOB_ID=77 sh "$state/jobs/$id/attempt-1/sbatch" 2>&1; echo $?; ls "$state/jobs/$id/attempt-1")" \
    "0
$(ls "$state/jobs/$id/attempt-1")" "should Slurm start it all the same, it ends without having done anything"
back
ok "and Slurm is told when it is back" eventually test -s "$work/cancelled"

# ------------------------------------------------------------------ a sweep, whose points wait until sinfo tells the cores of a node

# TELL: the command that tells of the nodes
sinfo_is() {
    write_script "$work/bin/sinfo" <<END
#!/bin/sh
$1
END
}
points() { sql "select group_concat(state, ' ') from (select state from sweep_trial order by number)"; }
points_are() { [[ $(points) =~ ^($1)$ ]]; }
sinfo_is "echo 'n1|2|24|96|190000|skylake|big*'"
call -d '{"metric": "loss", "concurrency": 1, "parameters": {"lr.base": [0.1, 0.2]}, "base": {"data": {"train": "synthetic", "train_images": 64},
    "model": {"image_size": 32, "classes": 10}, "batch_per_worker": 4, "steps": 4, "restart": {"max": 0}, "cluster": {"launcher": "slurm"}}}' /v1/sweeps
want 201 "a sweep of jobs in Slurm"
ok "its first point is submitted" eventually points_are "submitted waiting"
sinfo_is "echo 'sinfo: error: $words' >&2; exit 1"
call -X POST "/v1/jobs/$(sql "select max(id) from job")/cancel"
ok "the second one meets a Slurm that is away" eventually grep -q "sweep 1: the number of cores of a node is unknown: .*$words" "$work/daemon.log"
like "$(points)" '^cancelled waiting$' "and waits"
sinfo_is "echo 'n1|2|24|96|190000|skylake|big*'"
ok "until it is back" eventually points_are "cancelled submitted"
call -X POST /v1/sweeps/1/cancel
ok "cancelled, it ends" eventually points_are "cancelled cancelled"

ok "the daemon stops" stop_daemon
done_testing
