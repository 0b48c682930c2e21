#!/usr/bin/env bash
# Energy of a run: counters of a simulated powercap folder that wrap around while two ranks train.
# shellcheck source=tests/system/lib.sh
. "${top_srcdir:?run it by make check}/tests/system/lib.sh"

cat >"$work/small.json" <<END
{"model": {"arch": "cnn", "classes": 10, "image_size": 28}, "data": {"train": "synthetic", "train_images": 64},
 "cluster": {"workers_per_node": 2, "threads_per_worker": 1}, "batch_per_worker": 4, "steps": 6,
 "lr": {"warmup_epochs": 0}, "checkpoint": {"disable": true}}
END

zone() { # ZONE NAME
    mkdir -p "$cap/$1"
    echo "$2" >"$cap/$1/name"
    echo 262143328850 >"$cap/$1/max_energy_range_uj"
    echo "$3" >"$cap/$1/energy_uj"
}
cap=$work/powercap
zone intel-rapl:0 package-0 262143000000
zone intel-rapl:0:0 dram 5000000
zone intel-rapl:1 psys 0
energy() { jq -c "select(.type == \"energy\") | $2" "$1/attempt-1/events.jsonl"; }

# The counters move after the first event: 0.32885 J up to the range, 41.67115 J after the wrap, and 8 J of memory. Then the run
# is asked to end after its step.
told() { grep -q '"type":"energy"\|"type": "energy"' "$work/run/attempt-1/events.jsonl" 2>/dev/null; }
jq '.steps = 100000000' "$work/small.json" >"$work/long.json"
TRAIN_POWERCAP=$cap mpirun --oversubscribe --bind-to none -np 2 "$top_builddir/tests/bin/train-worker" --job "$work/long.json" --run-dir "$work/run" >"$work/out" 2>&1 &
launcher=$!
for _ in $(seq 600); do
    told && break
    tap_sleep 0.1
done
ok "a run with counters reports them at its first step" told
echo 41671150 >"$cap/intel-rapl:0/energy_uj"
echo 13000000 >"$cap/intel-rapl:0:0/energy_uj"
echo 99000000 >"$cap/intel-rapl:1/energy_uj"
kill -USR1 $launcher
wait $launcher
is $? 130 "and ends when it is asked to"
is "$(energy "$work/run" '[.hosts, .hosts_measured]' | sort -u)" "[1,1]" "two ranks are one machine, and it is read"
is "$(energy "$work/run" .joules | head -n 1)" 0 "it counts from the start of the run"
ok "a package after its wrap-around and the memory, once, without the platform" \
    jq -e '(. - 49.99998) | fabs < 0.001' <<<"$(energy "$work/run" .joules | tail -n 1)"
is "$(energy "$work/run" .step | tail -n 1)" "$(jq "select(.type == \"run_stop\").step" "$work/run/attempt-1/events.jsonl")" \
    "the last event is of the end"
is "$(jq -r .type "$work/run/attempt-1/events.jsonl" | tail -n 1)" run_stop "before run_stop"

TRAIN_POWERCAP=$work/none worker 2 "$work/small.json" "$work/without"
is $? 0 "a run without counters ends well"
is "$(energy "$work/without" .joules)" "" "and reports no energy"
is "$(grep -c energy <<<"$output")" 0 "nor has it words on it"
chmod 000 "$cap/intel-rapl:0/energy_uj"
if [ "$(id -u)" = 0 ]; then
    skip "root may read all" "a counter that may not be read is named"
else
    TRAIN_POWERCAP=$cap worker 2 "$work/small.json" "$work/forbidden"
    like "$output" "cannot measure energy: $cap/intel-rapl:0/energy_uj may not be read" "a counter that may not be read is named"
fi
done_testing
