#!/usr/bin/env bash
# trainctl scale over two hosts, which are network namespaces with an sshd each: it measures the network between them, for predictions.
# shellcheck source=tests/system/hosts/hosts.sh.inc
. "$(dirname "$0")/hosts.sh.inc"
hosts_up 2
mkdir -p "$work/bin" "$work/shared"
write_script "$work/bin/ssh" <<END
#!/bin/sh
PATH=/usr/local/bin:/usr/bin:/bin exec "$lab/ssh" "\$@"
END
jq -n --argjson cluster "$two" '{cluster: ($cluster + {workers_per_node: 1, threads_per_worker: 1, mpi_args: ["--mca", "mpi_yield_when_idle", "1"]}),
    model: {arch: "resnet18", width: 0.25, image_size: 32, classes: 10}, data: {train: "/nowhere"}, batch_per_worker: 8}' >"$work/scale.json"
scale() {
    output=$("$net" run "$lab" "$h1" env PATH="$work/bin:$PATH" TMPDIR="$work/shared" XDG_CACHE_HOME="$work/cache" TRAINCTL_SERVER="unix:$work/no-daemon" \
        "$top_builddir/trainctl" scale --weak --steps 2 --json "$@" "$work/scale.json" 2>&1)
}
scale --nodes 2
like "$output" '--nodes must begin with 1' "machines are compared with one"
scale --nodes 1,3
like "$output" 'the document names 2 hosts in cluster.hosts, not 3' "and are no more than the document names"
"$net" rate "$lab" "$h2" 100mbit
scale --nodes 1,2
is $? 0 "one and two machines are measured"
echo "# $(jq -c '.network, .weak' <<<"$output")"
is "$(jq -c '[.weak[].workers]' <<<"$output")" "[1,2]" "with the document's workers each"
is "$(jq '.network.bytes_per_second | . > 1e5 and . < 1.3 * 12.5e6' <<<"$output")" true "a sum reaches no more than their 100 Mbit/s"
is "$(jq '.weak[1] | .images_per_sec < 10 * .predicted.value and .predicted.value < 10 * .images_per_sec' <<<"$output")" true \
    "which the second is predicted from"
is "$(XDG_CACHE_HOME=$work/cache "$top_builddir/trainctl" predict --json --nodes 2 --node-speed 100 --train-images 1000 "$work/scale.json" | jq '.network.bytes_per_second | round')" \
    "$(jq '.network.bytes_per_second | round' <<<"$output")" "and trainctl predict, over the same interface"
is "$(XDG_CACHE_HOME=$work/cache "$top_builddir/trainctl" predict --json --set cluster.interface=ib0 --nodes 2 --node-speed 100 --train-images 1000 "$work/scale.json" |
    jq '.network.bytes_per_second / 1e9')" 7.5 "but not over another"
is "$(ls -A "$work/shared")" "" "nothing is left"
done_testing
