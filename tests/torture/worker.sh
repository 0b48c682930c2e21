#!/usr/bin/env bash
# train-worker when any one call fails: it prints an error, leaves no partial result, and the run resumes from its checkpoints to
# the same weights.
# shellcheck source=tests/system/lib.sh
. "${top_srcdir:?run it by make check}/tests/system/lib.sh"
not_for_coverage "gcov's own calls would fail, and end the program"
# shellcheck source=tests/torture/lib.sh.inc
. "$top_srcdir/tests/torture/lib.sh.inc"
small_data
worker=$(program train-worker)
torture_strace=() # files are its first thread's; MPI has others

cat >"$work/job.json" <<END
{"model": {"arch": "cnn", "width": 0.0625, "winograd": false}, "data": {"train": "$work/data/train", "eval": "$work/data/validation"},
 "cluster": {"workers_per_node": 1, "threads_per_worker": 1}, "batch_per_worker": 4, "steps": 4, "eval": {"batch": 25},
 "lr": {"warmup_epochs": 0, "scaling": "none", "base": 0.01}, "checkpoint": {"every_steps": 2, "every_epochs": 0, "keep": 100}}
END

train() { # RUN COMMAND...
    local run=$1
    shift
    "$@" "$worker" --job "$work/job.json" --run-dir "$run"
}
go_on() {
    timeout 1200 "$worker" --job "$work/job.json" --run-dir "$work/run" --attempt 2 --resume latest
}
weights() { # RUN: "" if they are not there
    cat "$1"/checkpoints/step-00000004/{model,optimizer}.safetensors 2>/dev/null | b2sum
}
result() {
    jq -c '[.top1, .top5, .steps]' "$1/result.json" 2>/dev/null
}

train "$work/whole" timeout 1200 >"$work/words" 2>&1
is $? 0 "the job trains"
whole_weights=$(weights "$work/whole") whole_result=$(result "$work/whole")

scenario() {
    rm -rf "$work/run"
    train "$work/run" failing >"$work/words" 2>&1
    status=$?
    if [ "$status" = 0 ] && ! { [ "$(weights "$work/run")" = "$whole_weights" ] && [ "$(result "$work/run")" = "$whole_result" ]; }; then
        finding "says that all is well, but weights or result differ"
    fi
    if [ "$status" != 0 ] && [ -e "$work/run/result.json" ] && [ "$(result "$work/run")" != "$whole_result" ]; then
        finding "failed, and left a result"
    fi
    [ "$status" != 0 ] || return
    ls "$work"/run/checkpoints/step-* >/dev/null 2>&1 || return
    if ! go_on >"$work/again" 2>&1; then
        finding "does not go on: $(tail -n 1 "$work/again")"
    elif [ "$(weights "$work/run")" != "$whole_weights" ]; then
        finding "goes on to other weights"
    fi
}
# Failures in MPI_Init are not ours: it prints nothing, or waits forever.
echo '{}' >"$work/empty.json"
torture_begin=("$worker" --job "$work/empty.json" --run-dir "$work/refused")
for call in ${TORTURE_CALLS:-own-memory fsync,fdatasync:EIO openat:ENFILE rename,renameat,renameat2:EACCES mkdir:ENOSPC}; do
    torture train-worker train-worker "$call"
done
done_testing
