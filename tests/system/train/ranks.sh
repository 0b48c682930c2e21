#!/usr/bin/env bash
# Many more ranks than cores: 16 (and 66 in the nightly run) train what one rank trains that adds up as many batches, with the same
# losses but for rounding.
# runs alone
# shellcheck source=tests/system/lib.sh
. "${top_srcdir:?run it by make check}/tests/system/lib.sh"
small_data
jq -n --arg data "$work/data" '{data: {train: ($data + "/train"), augment: false}, batch_per_worker: 1, steps: 2,
    model: {arch: "resnet18", stem: "small", width: 0.0625, image_size: 32, classes: 10}, cluster: {threads_per_worker: 1},
    lr: {warmup_epochs: 0, base: 0.01}, checkpoint: {disable: true}}' >"$work/small.json"
export OMPI_MCA_mpi_yield_when_idle=1
losses() { jq -c 'select(.type == "step") | .loss' "$1/attempt-1/events.jsonl" | tr '\n' ' '; }

counts=16
if [ "${TRAIND_TEST_LONG-}" = yes ] && [ "$(awk '/MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo)" -ge 16 ]; then counts="16 66"; fi
for ranks in $counts; do
    # Each rank holds a network: a small one if there are many.
    [ "$ranks" -le 16 ] && model=. || model='.model = {arch: "cnn", image_size: 28, classes: 10}'
    job "$work/many.json" "$model | .cluster.workers_per_node = $ranks"
    job "$work/one.json" "$model | .cluster.workers_per_node = 1 | .accumulate_steps = $ranks"
    worker "$ranks" "$work/many.json" "$work/many$ranks"
    is $? 0 "$ranks ranks train"
    worker 1 "$work/one.json" "$work/one$ranks"
    is $? 0 "one rank trains with $ranks batches a step"
    same=$(jq -n --argjson a "[$(losses "$work/many$ranks" | sed 's/ *$//; s/ /,/g')]" --argjson b "[$(losses "$work/one$ranks" | sed 's/ *$//; s/ /,/g')]" \
        '($a | length) == 2 and ($b | length) == 2 and ([range(2) | ($a[.] - $b[.]) / $b[.] | fabs] | max) < 1e-4')
    is "$same" true "$ranks: the same losses within 1e-4: $(losses "$work/many$ranks")and $(losses "$work/one$ranks")"
    is "$(jq -c 'select(.type == "run_start") | [.world_size, (.binding | length)]' "$work/many$ranks/attempt-1/events.jsonl")" \
        "[$ranks,$((ranks < 64 ? ranks : 64))]" "every rank is in run_start, of 64"
    is "$(jq -c 'select(.type == "step") | [(.rank_busy_ms | length), .slowest_hosts, (.slowest_hosts_ms | length), ((.median_host_ms // 0) - (.slowest_hosts_ms[0] // 0) | fabs) < 0.01]' \
        "$work/many$ranks/attempt-1/events.jsonl" | sort -u)" \
        "$([ "$ranks" -le 64 ] && echo "[$ranks,null,0,true]" || echo "[0,[\"$(hostname)\"],1,true]")" "a step has the time of each rank, of more than 64 that of hosts"
done
done_testing
