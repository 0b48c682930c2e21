#!/usr/bin/env bash
# A rank that is held up is named in an event: one of two real ranks gets only a part of its core. Prints TAP.
# runs alone
set -u
# shellcheck source=tests/tap.sh
. "${top_srcdir:?is set by make check}/tests/tap.sh"
# shellcheck source=tests/system/train/held_up.sh.inc
. "$top_srcdir/tests/system/train/held_up.sh.inc"

start_run --stall-seconds 300
is "$(jq -c 'select(.type == "step") | .rank_busy_ms | length == 2 and all(. > 0)' "$events" | sort -u)" true \
    "a step says how long each rank worked"
# It may run a quarter of the time, in turns much shorter than a step; less and less where a busy machine leaves the other no more.
perl -e '$SIG{TERM} = sub { kill "CONT", $ARGV[0]; exit }; $stop = 0.045; while (kill 0, $ARGV[0]) {
    $stop *= 1.3 if ++$n % 200 == 0 && $stop < 2;
    kill "STOP", $ARGV[0]; select undef, undef, undef, $stop; kill "CONT", $ARGV[0]; select undef, undef, undef, 0.015 }' "$slow" &
brake=$!
ok "held up, it becomes a straggler" eventually grep -qs '"type": "straggler".*"rank": 1,' "$events"
kill "$brake"
wait "$brake" 2>/dev/null
brake=""
event=$(jq -c 'select(.type == "straggler" and .rank == 1)' "$events" | head -n 1)
is "$(jq -c '[.rank, .host]' <<<"$event")" "[1,\"$(hostname)\"]" "by rank and host"
like "$(jq -r .phase <<<"$event")" '^(forward|backward)$' "with the phase that was slow"
is "$(jq '.busy_ms > 1.5 * .median_ms and .step >= .steps' <<<"$event")" true "and how slow it was"
ok "the log says so to people" eventually says 'rank 1 on .* holds up the others: '
end_run

done_testing
