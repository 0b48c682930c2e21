#!/usr/bin/env bash
# What each rank got is in run_start and in the log, and wrong bindings made on purpose are warned of with the remedy.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"
private_folder
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
unset OMP_NUM_THREADS OMP_PLACES OMP_PROC_BIND
[ "$(nproc)" -ge 2 ] || skip_all "needs two cores"

pinned=()
# run THREADS RANKS OPTION...: $steps (1) under mpirun with these options; sets $start, $log and $warnings
run() {
    local threads=$1 ranks=$2
    shift 2
    rm -rf "$work/run"
    cat >"$work/job.json" <<END
{"model": {"arch": "resnet18", "width": 0.0625, "classes": 10, "image_size": 32}, "data": {"train": "synthetic", "train_images": 64},
 "cluster": {"workers_per_node": $ranks, "threads_per_worker": $threads${cluster:+, $cluster}}, "batch_per_worker": 2, "steps": ${steps:-1}, "comm": ${comm:-{\}},
 "lr": {"warmup_epochs": 0}, "checkpoint": {"disable": true}}
END
    log=$("${pinned[@]}" mpirun -np "$ranks" "$@" "$top_builddir/tests/bin/train-worker" --job "$work/job.json" --run-dir "$work/run" 2>&1)
    ok "$threads threads, $ranks ranks, $*" test $? = 0
    start=$(jq -c 'select(.type == "run_start") | .binding' "$work/run/attempt-1/events.jsonl")
    warnings=$(jq -r 'select(.type == "warning") | .message' "$work/run/attempt-1/events.jsonl")
}

run 1 2 --map-by slot:PE=1 --bind-to core -x OMP_NUM_THREADS=1
is "$(jq -c '[.[] | [.rank, .threads, .omp_num_threads]]' <<<"$start")" '[[0,1,"1"],[1,1,"1"]]' "run_start has each rank"
is "$(jq -r '.[0].cpus != .[1].cpus and (.[0].numa_nodes | length) == 1' <<<"$start")" true "on its own core"
is "$warnings" "" "a right binding is not warned of"
like "$log" "^ +1  $(hostname) +[0-9]+ +1  1 " "the log has a table"

run 2 1 --bind-to core
like "$warnings" "^rank 0 on $(hostname) computes with 2 threads, but has only core [0-9]+: start with mpirun --map-by slot:PE=2 --bind-to core, or in Slurm srun --cpus-per-task=2" \
    "a rank with fewer cores than threads"
pinned=(taskset --cpu-list 0)
run 1 2 --map-by slot:OVERSUBSCRIBE --bind-to none
pinned=()
is "$(jq -c '[.[].cpus]' <<<"$start")" '["0","0"]' "two ranks are on core 0"
like "$warnings" "^ranks 0 and 1 on $(hostname) share core 0: start with mpirun --map-by slot:PE=1 --bind-to core.*without --cpu-set" \
    "two ranks on one core"
run 2 1 --bind-to none -x OMP_PLACES='{0}' -x OMP_PROC_BIND=true
like "$warnings" "all 2 threads of rank 0 on $(hostname) run on core 0 of its [0-9]+: unset OMP_PLACES|computes with 2 threads, but has only core 0" \
    "all threads on one core"
run 1 $(($(nproc) + 1)) --oversubscribe --bind-to none
like "$warnings" "^the $(($(nproc) + 1)) ranks on $(hostname) compute with $(($(nproc) + 1)) threads in total on $(nproc) cores: fewer" \
    "more ranks than cores"

# ---- a CPU for the thread that sums gradients between machines, of which each rank is one here
as_machines=(--map-by slot:OVERSUBSCRIBE --bind-to none -x TRAINCOMM_HOST_RANKS=1)
sum() { jq -r "select(.type == \"gradients\") | $1" "$work/run/attempt-1/events.jsonl"; }
comm='{"core": 0}' steps=11 run 1 2 "${as_machines[@]}"
is "$(jq -c '[.[].comm_cpu]' <<<"$start")" '[0,0]' "comm.core 0"
is "$(jq -r 'select(.type == "run_start") | .machines' "$work/run/attempt-1/events.jsonl")" 2 "run_start counts machines"
is "$(sum '"\(.step) \(.machines) \(.leaders) \(.exchanges)"')" "10 2 1 2" "what the first steps decide is an event"
like "$(sum .drive)" '^(after|calls|thread)$' "it names what moves gradients"
like "$(sum .message)" '^gradients of 2 ranks are summed between 2 machines .*: a step takes .* s \(' \
    "and the duration of a step in a sentence"
is "$(sum .message | grep -oE 'after backward|by calls|by a thread' | sort | tr '\n' ' ')" "after backward by a thread by calls " \
    "in each of the ways"
ok "the log has the same" grep -qF "The $(sum .message)" <<<"$log"
steps=11 run 1 2 "${as_machines[@]}"
is "$(jq -c '[.[].comm_cpu > 0] | unique' <<<"$start")" '[true]' "auto: the last CPU, of which threads leave one free"
run 1 2 "${as_machines[@]}" -x OMP_PROC_BIND=close -x OMP_PLACES=cores
is "$(jq -c '[.[].comm_cpu > 0] | unique' <<<"$start")" '[true]' "also where OpenMP binds the threads"
run 1 4 --oversubscribe --bind-to none -x TRAINCOMM_HOST_RANKS=2
is "$(jq -c 'map(.comm_cpu) | .[0:2] == .[2:4] and (.[0] != .[1] or .[0] == null)' <<<"$start")" true \
    "two ranks of a machine do not get the same"
pinned=(taskset --cpu-list 0)
steps=8 run 1 2 "${as_machines[@]}"
is "$(jq -c '[.[].comm_cpu]' <<<"$start") $(sum .message | grep -c thread)" '[null,null] 0' "no core is free: no thread"
last=$(taskset --cpu-list --pid $$ | grep -oE '[0-9]+$')
comm="{\"core\": $last}" run 1 2 "${as_machines[@]}"
pinned=()
is "$(jq -c '[.[] | [.cpus, .comm_cpu]] | unique' <<<"$start")" "[[\"0\",$last]]" "a CPU that no rank is bound to"
comm='{"core": "none"}' run 1 2 "${as_machines[@]}"
is "$(jq -c '[.[].comm_cpu]' <<<"$start")" '[null,null]' "none"
comm='{"core": 0, "overlap": false}' run 1 2 "${as_machines[@]}"
is "$(jq -c '[.[].comm_cpu]' <<<"$start") $(sum '"\(.step) \(.drive)"')" '[null,null] 1 after' "without comm.overlap"
comm='{"core": 0}' run 1 2 --map-by slot:PE=1 --bind-to core
is "$(jq -c '[.[].comm_cpu]' <<<"$start") $(sum .step)" '[null,null] ' "on one machine"
jq '.comm.core = 1023' "$work/job.json" >"$work/far.json"
rm -rf "$work/run"
log=$(mpirun -np 2 "${as_machines[@]}" "$top_builddir/tests/bin/train-worker" --job "$work/far.json" --run-dir "$work/run" 2>&1)
is "$? $(jq -r 'select(.type == "failed") | .reason' "$work/run/attempt-1/events.jsonl")" \
    "2 comm.core 1023: $(hostname) has no CPU 1023 that this job may use; \"auto\" selects a free one" "a CPU that is not there"

# ---- OpenMP binds the thread that starts the others to its first place; those that help may run on any
step_done() { grep -q '"type": *"step"' "$work/run/attempt-1/events.jsonl" 2>/dev/null; }
# cpus_of NAME: the cpus of each rank's thread of that name
cpus_of() {
    local rank task
    for rank in $(pgrep -P $mpirun train-worker); do
        for task in /proc/"$rank"/task/*; do
            [ "$(cat "$task/comm")" != "$1" ] || sed -n 's/^Cpus_allowed:[[:space:]]*//p' "$task/status"
        done
    done
}
rm -rf "$work/run"
jq '.steps = 1000000 | .cluster = {workers_per_node: 2, threads_per_worker: 1}' "$work/job.json" >"$work/long.json"
mpirun -np 2 --bind-to none -x OMP_PLACES=cores -x OMP_PROC_BIND=close "$top_builddir/tests/bin/train-worker" --job "$work/long.json" \
    --run-dir "$work/run" >"$work/long.log" 2>&1 &
mpirun=$!
for _ in $(seq 600); do
    step_done || ! kill -0 $mpirun && break
    tap_sleep 0.2
done
all=$(sed -n 's/^Cpus_allowed:[[:space:]]*//p' /proc/self/status)
is "$(cpus_of stall | tr '\n' ' ')" "$all $all " "each rank's thread that watches for stalls may run on all of its cpus"
kill $mpirun
wait $mpirun

# The job asks for one binding, mpirun for another
cluster='"bind": "core"' run 1 2 --bind-to none
like "$warnings" "^rank 0 on $(hostname) is bound to more cores than it has threads, or not at all \\(cores [0-9,-]+\\), but cluster.bind is .core.: " \
    "a binding that is undone"
cluster='"bind": "none"' run 1 2 --map-by slot:PE=1 --bind-to core
like "$warnings" "^rank 0 on $(hostname) is bound \\(cores [0-9]+\\), but cluster.bind is .none.: " "a binding that was not requested"
cluster='"bind": "core", "smt": true' run 1 2 --map-by slot:PE=1 --bind-to hwthread --use-hwthread-cpus
is "$warnings" "" "hardware threads that were asked for are not warned of"
done_testing
