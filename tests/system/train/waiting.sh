#!/usr/bin/env bash
# A rank that waits for another one leaves its core to others, where Open MPI yields (worker/patient_yield.c).
# shellcheck source=tests/system/lib.sh
. "${top_srcdir:?run it by make check}/tests/system/lib.sh"
export OMPI_MCA_mpi_yield_when_idle=1

jq -n '{model: {arch: "cnn"}, data: {train: "synthetic", train_images: 1000}, cluster: {workers_per_node: 2, threads_per_worker: 1},
    batch_per_worker: 8, steps: 1000000, checkpoint: {disable: true}}' >"$work/job.json"
run=$work/run
mpirun --oversubscribe --bind-to none -np 2 "$top_builddir/tests/bin/train-worker" --job "$work/job.json" --run-dir "$run" >"$work/log" 2>&1 &
launcher=$!
trap 'kill -KILL "${ranks[@]}" $launcher 2>/dev/null; wait $launcher 2>/dev/null; rm -rf "$work"' EXIT

ranks=()
trains() {
    grep -qs '"type": "step", "step": 3,' "$run/attempt-1/events.jsonl" && mapfile -t ranks < <(pgrep -P $launcher) && [ ${#ranks[@]} = 2 ]
}
eventually trains
is ${#ranks[@]} 2 "two ranks train"

uptime_ms() {
    awk '{ printf "%.0f", 1000 * $1 }' /proc/uptime
}
kill -STOP "${ranks[1]}"
sleep 1 # the other one has come to where it waits
before=$(ticks "${ranks[0]}") began=$(uptime_ms)
sleep 3
waited=$(($(uptime_ms) - began)) # more than 3 s where this script gets no time either
used=$(($(ticks "${ranks[0]}") - before)) second=$(getconf CLK_TCK)
ok "a rank that waits $waited ms for one that is stopped uses less than a quarter of a core: $used ticks of 1/$second s" \
    test $((4000 * used)) -lt $((waited * second))
kill -CONT "${ranks[1]}"
reached=$(grep -c '"type": "step"' "$run/attempt-1/events.jsonl")
goes_on() { [ "$(grep -c '"type": "step"' "$run/attempt-1/events.jsonl")" -gt $((reached + 3)) ]; }
ok "then both go on" eventually goes_on
done_testing
