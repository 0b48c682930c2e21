#!/usr/bin/env bash
# The real train-worker: a rank is killed in the middle of a run, the job restarts by itself and ends with the weights of an
# undisturbed run, bit by bit; a cancelled one is resumed, also on one worker.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../runs.sh.inc"
printf '%s\n' "worker = $top_builddir/tests/bin/train-worker" "slots = 2" "restart_delay_seconds = 1" "cancel_grace_seconds = 60" >"$work/traind.conf"
restart_runs

train() { # STEPS CHECKPOINT_EVERY: sets $id
    jq -n --argjson steps "$1" --argjson every "$2" '{name: "real", cluster: {workers_per_node: 2, threads_per_worker: 1},
        data: {train: "synthetic", train_images: 64}, batch_per_worker: 4, steps: $steps,
        checkpoint: {every_steps: $every, every_epochs: 0},
        model: {arch: "resnet18", width: 0.0625, image_size: 32, classes: 10}}' >"$work/job.json"
    call -H 'Content-Type: application/json' --data-binary "@$work/job.json" /v1/jobs
    id=$(jq -r '.id // 0' <<<"$body")
}
wait_long() { # ID: it succeeds, however busy the machine is
    timeout 600 "$top_builddir/trainctl" --server "$url" wait "$1"
}
weights() { # ID
    (cd "$state/jobs/$1/checkpoints/step-$(printf %08d "$2")" && sha256sum model.safetensors optimizer.safetensors)
}

# right_speed ID IMAGES NAME: images of all its steps over their time, of each step the newest; and the worker's result says the same
right_speed() {
    is "$(sql "select abs(images_per_sec / (select $2 * 1e3 / sum(ms) from (select json_extract(body, '\$.step_ms') as ms, max(id) from job_event
        where job_id = $1 and type = 'step' group by json_extract(body, '\$.step'))) - 1) < 1e-6 from job where id = $1")" 1 "$3"
    is "$(jq '.images_per_sec * 1e3 | round' "$state/jobs/$1/result.json")" "$(job "$1" 'images_per_sec * 1e3 | round')" "as the worker says"
}

train 24 4
whole=$id
ok "a job succeeds undisturbed" wait_long "$whole"

# Of so few steps a run may be over before it is disturbed: then another is.
undisturbed() { [ "$(job "$id" '| "\(.state) \(.attempt)"')" = "succeeded 1" ]; }
has_checkpoint() { [ -d "$state/jobs/$1/checkpoints/step-00000008" ]; }
for _ in 1 2 3 4 5; do
    train 24 4
    hit=$id
    ok "another one has a checkpoint" eventually has_checkpoint "$hit"
    kill -KILL "$(rank_process "$hit" 1)"
    wait_long "$hit"
    undisturbed || break
done
ok "with a rank killed it restarts and succeeds" in_state "$hit" succeeded
is "$(job "$hit" attempt)" 2 "in its second attempt"
like "$(job "$hit" 'failure.reason')" "^rank [01] on $(hostname) was ended by signal 9 \(SIGKILL, Killed\) in phase train.*; the last step was [0-9]+" "the first failure's cause is kept"
like "$(sql "select json_extract(body, '\$.resumed_step') from job_event where job_id = $hit and attempt = 2 and type = 'run_start'")" "^[1-9]" "it went on from a checkpoint"
is "$(weights "$hit" 24)" "$(weights "$whole" 24)" "its weights and momenta are bit-identical to the undisturbed run's"
is "$(sql "select group_concat(quote(loss)) from (select loss from step_metric where job_id = $hit order by step)")" \
    "$(sql "select group_concat(quote(loss)) from (select loss from step_metric where job_id = $whole order by step)")" "and so is every loss"
right_speed "$hit" $((24 * 8)) "its images/s are those of all steps"

# A worker that pauses behind each step: a cancellation comes before the last, however busy the machine is.
stop_daemon
sed -i "s|^worker.*|worker = $top_builddir/tests/paced/train-worker|" "$work/traind.conf"
restart_runs
cancelled() { # STEPS CHECKPOINT_EVERY: a job, while it runs; sets $id
    train "$1" "$2"
    ok "another one runs" eventually has_events "$id" 5
    call -X POST "/v1/jobs/$id/cancel"
    ok "it is cancelled" wait_state "$id" cancelled
}
cancelled 24 1000
cut=$id
step=$(job "$cut" checkpoint_step)
like "$(job "$cut" reason)" "^cancelled on request after step $step$" "with a checkpoint of its last step"
call -X POST "/v1/jobs/$cut/resume"
want 202 "it is resumed"
ok "and succeeds" wait_long "$cut"
# The running statistics are averaged over the ranks at each checkpoint, of which the cancelled run wrote one more.
is "$(weights "$cut" 24 | grep optimizer)" "$(weights "$whole" 24 | grep optimizer)" "with the momenta of the undisturbed run"

cancelled 24 4
fewer=$id
call -d '{"cluster": {"workers_per_node": 1}}' "/v1/jobs/$fewer/resume"
want 202 "it is resumed with one worker"
json '.resume | "\(.before.global_batch) \(.after.global_batch)"' "8 4" "the global batch is halved"
left=$(jq .resume.steps_left <<<"$body") step=$(jq .resume.step <<<"$body")
ok "and succeeds" wait_long "$fewer"
is "$(job "$fewer" step)" "$((step + left))" "after as many steps as the answer said"
is "$(job "$fewer" train_steps)" "$((step + left))" "which is what its progress counts to"
right_speed "$fewer" $((step * 8 + left * 4)) "its images/s are those of all steps, each with its own batch"
like "$(sql "select body from job_event where job_id = $fewer and attempt = 2 and type = 'warning'")" \
    "resumed on 1 worker instead of 2: a global batch of 4 images" "the worker tells the new numbers, too"
ok "the daemon stops in order" stop_daemon
done_testing
