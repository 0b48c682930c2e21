#!/usr/bin/env bash
# A run without progress names the rank that is the cause: one of two real ranks is stopped for a while.
# shellcheck source=tests/system/train/held_up.sh.inc
. "${top_srcdir:?run it by make check}/tests/system/train/held_up.sh.inc"

output=$("$top_builddir/tests/bin/train-worker" --job x --run-dir y --stall-seconds soon 2>&1)
is $? 2 "a value that is not a time is a usage error"
like "$output" '--stall-seconds must be a number of seconds, or 0 for never, not soon' "and is named"

# The start, and each step of its own, may take longer than that on a loaded machine.
warnings() {
    jq -c 'select(.type == "warning" and (.message | test("^no step.* is stopped by a signal")))' "$events"
}
warned() {
    warnings | grep -q .
}
batch=1 # a rank has done its part of a step before 5 s are over, also on a loaded machine
start_run --stall-seconds 5
kill -STOP "$slow"
ok "a run without progress is reported" eventually warned
before=$(grep -c '"type": "step"' "$events")
warning=$(warnings | head -n 1)
is "$(jq -c '[.cause, .rank, .host]' <<<"$warning")" "[\"rank_stopped\",1,\"$(hostname)\"]" "with the cause: rank and host"
like "$(jq -r .message <<<"$warning")" "^no step for [0-9]+ s: rank 1 on $(hostname) is stopped by a signal$" "with a readable message"
is "$(jq '.stalled_seconds >= 5' <<<"$warning")" true "after the time that was set"
ok "the waiting rank reports where it waits" \
    eventually says 'rank 0: .*no step for [0-9]+ s; this rank is (in the all-reduce|waiting for the other ranks) for'
kill -CONT "$slow"
goes_on() { [ "$(grep -c '"type": "step"' "$events")" -gt $((before + 1)) ]; }
ok "it goes on when the rank does" eventually goes_on
is "$(warnings | grep -c .)" 1 "one stall is one warning"
end_run

done_testing
