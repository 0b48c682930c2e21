#!/usr/bin/env bash
# What the evaluations of a run decide: the best checkpoints are kept, the run ends early, the rate falls on a plateau (as with
# PyTorch's ReduceLROnPlateau).
# shellcheck source=tests/system/lib.sh
. "${top_srcdir:?run it by make check}/tests/system/lib.sh"
# The rate rises until training diverges, so that the best evaluation is not the last one.
small_job '.data.eval = "\($data)/validation" | .batch_per_worker = 4 | .steps = 40 | .lr = {warmup_epochs: 20, scaling: "none", start: 0.02, base: 1.5} |
    .eval = {batch: 25, every_epochs: 0.5} | .checkpoint = {every_steps: 0, every_epochs: 1, keep: 1, keep_best: 1}'

# evals RUN FILTER [ATTEMPT]: of its evaluations
evals() {
    jq -c "select(.type == \"eval\") | $2" "$1/attempt-${3:-1}/events.jsonl"
}
# best_of RUN KEY COUNT: steps of the best evaluations by the events, the earlier of equal ones first
best_of() {
    jq -sc "[.[] | select(.type == \"eval\") | {step, v: (if \"$2\" == \"loss\" then .loss else -.top1 end)}] | sort_by([.v, .step]) | [.[:$3][].step]" \
        "$1/attempt-1/events.jsonl"
}
state() { # RUN: of its newest checkpoint
    find "$1/checkpoints" -name state.json | sort | tail -1
}
steps_in() {
    find "$1/checkpoints" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort | sed 's/step-0*//' | tr '\n' ' '
}

worker 2 "$work/small.json" "$work/top1"
is $? 0 "a run that keeps its best checkpoint"
best=$(best_of "$work/top1" top1 1 | tr -d '[]')
ok "which is not the last one" [ "$best" -lt 40 ]
is "$(steps_in "$work/top1")" "$best 40 " "it is there beside the newest one"
is "$(jq -c '[.monitor.monitor, .monitor.best]' "$(state "$work/top1")")" "[\"top1\",[$best]]" "and the newest one says which it is"
is "$(evals "$work/top1" 'select(.best) | .step' | tail -1)" "$best" "and so did the event"
of_best=$(evals "$work/top1" "select(.step == $best) | [.top1, .top5, (.loss * 10 | round)]")

trial 2 none '.checkpoint.keep_best = 0'
is "$(steps_in "$work/none")" "40 " "without keep_best it is not kept"
is "$(b2sum <"$work/none/checkpoints/step-00000040/model.safetensors")" "$(b2sum <"$work/top1/checkpoints/step-00000040/model.safetensors")" \
    "and the run comes to the same bits"

# evaluates FILE NAME: by mode eval
evaluates() {
    job "$work/eval.json" '.mode = "eval" | .model.init = "'"$1"'" | del(.checkpoint) | .eval = {"batch": 25}'
    rm -rf "$work/eval"
    worker 2 "$work/eval.json" "$work/eval"
    is "$(evals "$work/eval" '[.top1, .top5, (.loss * 10 | round)]')" "$of_best" "$2"
}
evaluates "$work/top1" "model.init of the run takes the best weights, which have the accuracy of that evaluation"
evaluates "$work/top1/checkpoints" "and so does that of its checkpoints"
cp -r "$work/top1" "$work/lost"
rm "$work/lost/checkpoints/step-$(printf %08d "$best")/state.json"
of_best=$(evals "$work/top1" 'select(.step == 40) | [.top1, .top5, (.loss * 10 | round)]')
evaluates "$work/lost" "without the best one, the newest is taken"

trial 2 loss '.eval.monitor = "loss" | .checkpoint.keep_best = 3 | .checkpoint.keep = 2 | .checkpoint.every_epochs = 0.25'
want=$(best_of "$work/loss" loss 3)
is "$(jq -c .monitor.best "$(state "$work/loss")")" "$want" "the best three by the loss, in their order"
is "$(steps_in "$work/loss")" "$(jq -r '. + [39, 40] | unique | join(" ")' <<<"$want") " "are kept beside the newest two"

trial 2 ema '.ema = {"decay": 0.8}'
best=$(best_of "$work/ema" top1 1 | tr -d '[]')
ok "with averaged weights, the best is not the last one" [ "$best" -lt 40 ]
of_best=$(evals "$work/ema" "select(.step == $best) | [.top1, .top5, (.loss * 10 | round)]")
evaluates "$work/ema/checkpoints/step-$(printf %08d "$best")/ema.safetensors" "its averaged weights have the accuracy of that evaluation"

# ---- an evaluation that a stop has put off: the checkpoint of its step is written again, now as the best
trial 2 first '.eval.every_epochs = 0 | .steps = 6 | .data.eval = null | .checkpoint.keep_best = 0'
mkdir -p "$work/late/checkpoints"
cp -r "$work/first/checkpoints/step-00000006" "$work/late/checkpoints"
trial 2 late '.steps = 12' --attempt 2 --resume latest
is $? 0 "a run that is first to evaluate"
is "$(evals "$work/late" .step 2 | head -1)" 6 "evaluates the checkpoint"
is "$(jq -c '[.evaluation.step, .monitor.best]' "$work/late/checkpoints/step-00000006/state.json")" "[6,[6]]" "and writes it again, as the best one"
like "$(steps_in "$work/late")" '12 $' "and goes on"

# ---- a best checkpoint that cannot be written, because its folder is in the way and cannot be removed
job "$work/barred.json" '.eval.monitor = "loss" | .steps = 24 | .checkpoint.every_epochs = 0'
if unshare --mount true 2>/dev/null; then
    # shellcheck disable=SC2016
    unshare --mount bash -c 'mkdir -p "$1/checkpoints/step-00000006/x" && mount -t tmpfs none "$1/checkpoints/step-00000006/x" || exit 1
        mpirun --oversubscribe --bind-to none -np 2 "$top_builddir/tests/bin/train-worker" --job "$2" --run-dir "$1"' sh "$work/barred" "$work/barred.json" >"$work/log" 2>&1
    is $? 0 "a run that cannot write its best checkpoint ends well"
    is "$(best_of "$work/barred" loss 2)" "[6,12]" "that of its first evaluation"
    like "$(jq -r 'select(.type == "warning") | .message' "$work/barred/attempt-1/events.jsonl")" '^checkpoint of step 6: ' "a warning says what happened"
    is "$(jq -c .monitor.best "$(state "$work/barred")")" "[12]" "and the best one is the best of those that are there"
    ok "which is there" [ -e "$work/barred/checkpoints/step-00000012/state.json" ]
else
    skip "a best checkpoint that cannot be written" "needs the right to mount"
fi

# ---- an early end
trial 2 early '.eval.patience = 2 | .eval.monitor = "loss" | .eval.min_delta = 0.01'
is $? 0 "a run that ends early ends well"
is "$(evals "$work/early" '[.step, .without_improvement]' | tr '\n' ' ')" "[6,0] [12,1] [18,2] " "after two evaluations without a better one"
like "$(jq -r '.status + ": " + .reason' "$work/early/result.json")" '^success: stopped early: loss has not improved on [0-9.]+ \(step 6\) in 2 evaluations \(eval.patience\)$' \
    "the result says why"
is "$(jq -r 'select(.type == "run_stop") | .reason' "$work/early/attempt-1/events.jsonl")" "$(jq -r .reason "$work/early/result.json")" "and so does the event"
is "$(steps_in "$work/early")" "6 18 " "with the best and the last weights"
is "$(jq -r .model "$work/early/result.json")" "checkpoints/step-00000018/model.safetensors" "of which the last are the result"
worker 2 "$work/early.json" "$work/early" --attempt 2 --resume latest
is "$? $(jq -r '.steps' "$work/early/result.json")" "0 18" "resumed, it stays ended"
job "$work/longer.json" '.eval.patience = 4 | .eval.monitor = "loss" | .eval.min_delta = 0.01'
worker 2 "$work/longer.json" "$work/early" --attempt 3 --resume latest
is "$? $(jq -r '.steps' "$work/early/result.json")" "0 30" "with more patience it goes on, and counts on"

# ---- a plateau, against PyTorch
# rates NAME CHANGES KEYS: trains and compares the rate of each step with that of ReduceLROnPlateau by the evaluations of the run
rates() {
    trial 2 "$1" '.steps = 72 | .checkpoint = {"disable": true} | .eval.every_epochs = 0.25 | .lr = {"warmup_epochs": 0, "scaling": "none", "base": 0.3, "decay": "plateau"} | '"$2"
    is $? 0 "$1: trained"
    /usr/bin/python3 - "$work/$1.json" "$work/$1/attempt-1/events.jsonl" <<'END'
import json, sys
import torch
job = json.load(open(sys.argv[1]))
lr, monitor = job["lr"], job["eval"].get("monitor", "top1")
optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=lr["base"])
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "min" if monitor == "loss" else "max", factor=lr.get("gamma", 0.1),
    patience=lr.get("patience", 10), threshold=lr.get("threshold", 1e-4), cooldown=lr.get("cooldown", 0), min_lr=lr.get("end", 0))
reductions, steps = 0, 0
for line in open(sys.argv[2]):
    event = json.loads(line)
    if event["type"] == "step":
        steps += 1
        want = optimizer.param_groups[0]["lr"]
        if abs(event["lr"] - want) > 1e-7 * want:
            sys.exit(f"step {event['step']}: {event['lr']} instead of {want}")
    elif event["type"] == "eval":
        before = optimizer.param_groups[0]["lr"]
        plateau.step(event[monitor])
        reductions += optimizer.param_groups[0]["lr"] < before
print(f"# {steps} steps, {reductions} reductions")
sys.exit(0 if steps == 72 and reductions >= 2 else f"only {reductions} reductions")
END
    is $? 0 "$1: the rate of each step is PyTorch's"
}
if /usr/bin/python3 -c 'import importlib.util as u, sys; sys.exit(not u.find_spec("torch"))'; then
    rates plateau-loss '.eval.monitor = "loss" | .lr.patience = 1'
    rates plateau-top1 '.lr.patience = 2 | .lr.gamma = 0.5 | .lr.threshold = 0.1'
    rates plateau-cooldown '.eval.monitor = "loss" | .lr += {"patience": 0, "gamma": 0.3, "threshold": 0.2, "cooldown": 2, "end": 0.01}'
else
    skip "a plateau as PyTorch's" "python3-torch is not installed"
fi
trial 2 warm '.steps = 24 | .checkpoint = {"disable": true} | .eval.every_epochs = 0.25 | .lr = {"warmup_epochs": 1, "start": 0.001, "base": 0.1, "scaling": "none", "decay": "plateau", "patience": 0, "threshold": 0.99}'
is "$(jq -c 'select(.type == "step" and (.step == 12 or .step == 13 or .step == 15 or .step == 16 or .step == 18 or .step == 19)) | .lr * 1e6 | round' "$work/warm/attempt-1/events.jsonl" | tr '\n' ' ')" \
    "91750 100000 100000 10000 10000 1000 " "evaluations during warm-up do not count"

# ---- documents
# refused CHANGES WORDS
refused() {
    trial 1 bad "$1"
    fails_with $? "refused: $2"
    like "$output" "$2" "with the reason"
}
refused '.data.eval = null | .eval = {}' 'keep_best.*needs data.eval, whose evaluations it follows'
refused '.eval = {"patience": 3}' 'eval.patience.*needs eval.every_epochs'
refused '.eval = {} | .lr.decay = "plateau"' 'lr.decay.*needs eval.every_epochs'
refused '.checkpoint.disable = true' 'keep_best.*must be 0 with checkpoint.disable'
refused '.eval.monitor = "top2"' 'eval.monitor.*"top1", "loss"'
done_testing
