#!/usr/bin/env bash
# A rank that is held up is named in an event, with what it costs: one of two real ranks gets only a part of its core, first a
# little less than the other, then much less.
# runs alone
# shellcheck source=tests/system/train/held_up.sh.inc
. "${top_srcdir:?run it by make check}/tests/system/train/held_up.sh.inc"

batch=16 model='"arch": "cnn", "image_size": 28' # some 160 steps are soon done
start_run --stall-seconds 300
is "$(jq -c 'select(.type == "step") | .rank_busy_ms | length == 2 and all(. > 0)' "$events" | sort -u)" true \
    "a step has the working time of each rank"
# brake MS-RUN MS-STOPPED: rank 1 in turns much shorter than a step; less and less where a busy machine leaves the other no more.
brake() {
    perl -e '$SIG{TERM} = sub { kill "CONT", $ARGV[0]; exit }; ($run, $stop) = map { $_ / 1000 } @ARGV[1, 2]; while (kill 0, $ARGV[0]) {
        $stop *= 1.3 if ++$n % 250 == 0 && $stop < 2;
        kill "STOP", $ARGV[0]; select undef, undef, undef, $stop; kill "CONT", $ARGV[0]; select undef, undef, undef, $run }' "$slow" "$@" &
    brake=$!
}
release() {
    kill "$brake"
    wait "$brake" 2>/dev/null
    brake=""
}
named() { # STEPS: rank 1, by the mean of so many
    jq -ces "map(select(.type == \"straggler\" and .rank == 1 and .steps == $1)) | first // empty" "$events" >"$work/event"
}

brake 20 6
ok "a little slower, it becomes a straggler by the mean of many steps" eventually named 160
release
is "$(jq '.busy_ms > 1.03 * .median_ms and .step >= .steps and .ranks == 1' "$work/event")" true "and the event has its slowness"
is "$(jq '.wait_ms > 0 and .wait_ms < .busy_ms and .wait_share > 0 and .wait_share < 1' "$work/event")" true "what the other waits for it"
brake 15 45
ok "held up, it becomes one at once" eventually named 5
release
is "$(jq -c '[.rank, .host]' "$work/event")" "[1,\"$(hostname)\"]" "by rank and host"
like "$(jq -r .phase "$work/event")" '^(forward|backward)$' "with the phase that was slow"
is "$(jq '.busy_ms > 1.5 * .median_ms and .step >= .steps' "$work/event")" true "and how slow it was"
ok "the log has a line about it" eventually says "$(jq -r .message "$work/event" | sed 's/[().]/\\&/g')"
end_run

done_testing
