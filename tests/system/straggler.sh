#!/usr/bin/env bash
# A rank that is held up is named in an event: one of two real ranks gets only a part of its core. Prints TAP.
# shellcheck disable=SC2317
set -u
# shellcheck source=tests/tap.sh
. "${top_srcdir:?is set by make check}/tests/tap.sh"
work=$(mktemp -d)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1
events=$work/run/attempt-1/events.jsonl
run="" brake="" slow=""

leave() {
    [ -z "$brake" ] || kill "$brake" 2>/dev/null
    [ -z "$slow" ] || kill -CONT "$slow" 2>/dev/null
    [ -z "$run" ] || { kill "$run" 2>/dev/null && wait "$run"; }
    rm -rf "$work"
}
trap leave EXIT

# within SECONDS COMMAND...
within() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.2
    done
}
has() { # TYPE: an event of this type is there
    grep -qs "\"type\": \"$1\"" "$events"
}
rank_one() { # its process id
    local environment
    for environment in /proc/[0-9]*/environ; do
        tr '\0' '\n' <"$environment" 2>/dev/null | grep -qx 'OMPI_COMM_WORLD_RANK=1' &&
            tr '\0' ' ' <"${environment%environ}cmdline" 2>/dev/null | grep -q -- "^[^ ]*train-worker .*$work/run" &&
            basename "${environment%/environ}"
    done
}

cat >"$work/job.json" <<END
{"model": {"classes": 10, "image_size": 64}, "data": {"train": "synthetic", "train_images": 16000},
 "cluster": {"workers_per_node": 2, "threads_per_worker": 1}, "batch_per_worker": 8, "steps": 1000,
 "lr": {"warmup_epochs": 0}, "checkpoint": {"disable": true}}
END
mpirun --oversubscribe --bind-to none -np 2 "${top_builddir:?is set by make check}/train-worker" --job "$work/job.json" \
    --run-dir "$work/run" >"$work/log" 2>&1 &
run=$!
ok "two ranks train" within 60 has step
is "$(jq -c 'select(.type == "step") | .rank_busy_ms | length == 2 and all(. > 0)' "$events" | sort -u)" true \
    "a step says how long each rank worked"
slow=$(rank_one)
like "$slow" '^[0-9]+$' "rank 1 is found"
# It may run a quarter of the time, in turns much shorter than a step.
perl -e '$SIG{TERM} = sub { kill "CONT", $ARGV[0]; exit }; while (kill 0, $ARGV[0]) {
    kill "STOP", $ARGV[0]; select undef, undef, undef, 0.045; kill "CONT", $ARGV[0]; select undef, undef, undef, 0.015 }' "$slow" &
brake=$!
ok "held up, it becomes a straggler" within 90 grep -qs '"type": "straggler".*"rank": 1,' "$events"
kill "$brake"
wait "$brake" 2>/dev/null
brake=""
event=$(jq -c 'select(.type == "straggler" and .rank == 1)' "$events" | head -n 1)
is "$(jq -c '[.rank, .host]' <<<"$event")" "[1,\"$(hostname)\"]" "by rank and host"
like "$(jq -r .phase <<<"$event")" '^(forward|backward)$' "with the phase that was slow"
is "$(jq '.busy_ms > 1.5 * .median_ms and .step >= .steps' <<<"$event")" true "and how slow it was"
like "$(cat "$work/log")" 'rank 1 on .* holds up the others: ' "the log says so to people"
kill -USR1 "$run"
wait "$run"
run=""
is "$(jq -r 'select(.type == "run_stop") | .status' "$events")" cancelled "the run is none the worse for it"

done_testing
