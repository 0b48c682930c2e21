#!/usr/bin/env bash
# Which convolutions go by Winograd decides the last bits: a checkpoint remembers it, so a run goes on the same on a machine
# that would choose otherwise.
# shellcheck source=tests/system/lib.sh
. "${top_srcdir:?run it by make check}/tests/system/lib.sh"
small_job '.model.width = 0.25 | .batch_per_worker = 4 | .lr += {scaling: "none", base: 0.01} |
    .checkpoint = {every_steps: 2, every_epochs: 0, keep: 9}'
job "$work/off.json" '.model.winograd = false'

# last_weights RUN: the hash of the final model and of its momentum
last_weights() {
    cat "$1"/checkpoints/step-00000004/{model,optimizer}.safetensors | sha256sum
}
# chosen RUN ATTEMPT: as its run_start says
chosen() {
    jq -r 'select(.type == "run_start") | .winograd' "$1/attempt-$2/events.jsonl"
}
# resume FROM-RUN JOB RUN CACHE: from step 2, in a copy
resume() {
    mkdir "$3"
    cp -r "$1/checkpoints" "$3/"
    XDG_CACHE_HOME=$4 worker 2 "$2" "$3" --attempt 2 --resume "$3/checkpoints/step-00000002"
}

# The 3x3 of stride 1, by size and channels: Winograd takes those whose channels fill panels of the register tile, which are 32 wide
# with AVX-512, 16 and 8 otherwise.
shapes="8x64-16 8x16-64 4x32-128 4x128-32 2x64-256 2x256-64 1x128-512 1x512-128"
case $("$top_builddir/tests/bin/train-worker" --version) in *avx512*) shapes=${shapes#*-64 } ;; esac
# What was measured here is replaced by a choice that no measurement would make for all shapes.
export XDG_CACHE_HOME=$work/cache
trial 2 one '.steps = 1 | .checkpoint = {"disable": true}'
is $? 0 "a run measures, and remembers"
is "$(find "$work/cache/traind/winograd" -type f | wc -l)" "$(wc -w <<<"$shapes")" "in a file a shape"
sed -i 's|:.*|:4/2/4|' "$work"/cache/traind/winograd/*

worker 2 "$work/small.json" "$work/on"
is $? 0 "a run with the choice that was remembered"
is "$(chosen "$work/on" 1)" "$(sed 's|[^ ]*|&:4/2/4|g' <<<"$shapes")" "takes it as it is"
resume "$work/on" "$work/small.json" "$work/elsewhere" "$work/empty"
is $? 0 "resumed where nothing is remembered, it ends well"
is "$(chosen "$work/elsewhere" 2)" "$(chosen "$work/on" 1)" "computes as in its checkpoint"
is "$(last_weights "$work/elsewhere")" "$(last_weights "$work/on")" "and comes to the same bits"
ok "nothing was measured for it" test ! -e "$work/empty/traind"

worker 2 "$work/off.json" "$work/off"
is "$? $(chosen "$work/off" 1)" "0 " "a run without Winograd"
ok "has other last bits: the choice matters here" test "$(last_weights "$work/off")" != "$(last_weights "$work/on")"
resume "$work/off" "$work/off.json" "$work/off-again" "$work/cache"
is "$? $(chosen "$work/off-again" 2)" "0 " "resumed, it has none either"
is "$(last_weights "$work/off-again")" "$(last_weights "$work/off")" "and comes to the same bits"

resume "$work/on" "$work/off.json" "$work/turned-off" "$work/cache"
is "$? $(chosen "$work/turned-off" 2)" "0 " "a job that turns Winograd off is heeded when it resumes"
like "$(jq -r 'select(.type == "warning") | .message' "$work/turned-off/attempt-2/events.jsonl")" \
    'computed with Winograd.*model\.winograd is false.*not be bit-identical' "and a warning explains the consequence"

done_testing
