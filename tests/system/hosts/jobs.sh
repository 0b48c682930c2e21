#!/usr/bin/env bash
# Jobs on several hosts, which are network namespaces with an sshd each: what is refused, and a training on 2 hosts x 2 workers
# on real images by the real daemon.
# shellcheck source=tests/system/hosts/hosts.sh.inc
. "$(dirname "$0")/hosts.sh.inc"
hosts_up 2
small_data
start_hosts "slots = 4"

train '{"nodes": 2}'
want 422 "two nodes without names are refused"
like "$body" 'name them in cluster.hosts' "with the remedy"
train '{"nodes": 2, "hosts": ["a", "a:4"]}'
want 422 "a host that is named twice is refused"
like "$body" '/cluster/hosts/1.*a second time' "by its pointer"

for wrong in "hosts[1]=nowhere|host nowhere does not answer: .*[Cc]ould not resolve" \
    "hosts[1]=10.87.0.99|host 10.87.0.99 does not answer: " \
    "hosts[1]=10.87.0.1|host 10.87.0.1 is the same machine as host $h1" \
    "interface=eth7|host $h1 has no network interface eth7" \
    "hosts=[\"$h2\"] | .nodes = 1 | .threads_per_worker = 1024|host $h2 has [0-9]+ cores, too few for 2 workers of 1024 threads"; do
    key=${wrong%%=*} rest=${wrong#*=}
    value=${rest%|*}
    [[ $value == [\[]* ]] || value="\"$value\""
    train "$(jq -c ".$key = $value" <<<"$two")" '{"restart": {"max": 0}}'
    ok "$key $value fails the job" wait_state "$id" failed
    like "$(job "$id" reason)" "${rest##*|}" "... with a readable message"
done

# Each rank's OpenMP prints what it reads from the environment.
env='{OMP_DISPLAY_ENV: "true", OMP_WAIT_POLICY: "passive", UCX_TLS: "tcp,self"}'
told_policy() { # ID
    grep -cE "OMP_WAIT_POLICY *= *'PASSIVE'" "$state/jobs/$1/attempt-1/stdout.log"
}
train "$(jq -c ".env = $env" <<<"$two")"
want 201 "a job on two hosts is taken"
ok "it succeeds" wait_state "$id" succeeded
run=$state/jobs/$id
is "$(cat "$run/attempt-1/hostfile")" "$h1 slots=2"$'\n'"$h2 slots=2" "on both"
like "$(cat "$run/attempt-1/command")" '--mca btl_tcp_if_include eth0' "over the interface that was named"
is "$(told_policy "$id")" 4 "with the job's variables in all ranks"
is "$(jq -r .world_size "$run/plan.json") $(job "$id" step)" "4 6" "four ranks, all steps"
far=$(weights "$id")
id_two=$id
train "$(jq -nc "{workers_per_node: 4, env: $env}")"
ok "four workers on one host succeed too" wait_state "$id" succeeded
is "$(told_policy "$id")" 4 "all with the job's variables"
is "$(weights "$id")" "$far" "with the same weights, bit by bit"
is "$("$top_builddir/trainctl" --server "unix:$socket" reproduce "$id_two" 2>&1 | tail -n 1)" "job $((id + 1)) reproduces job $id_two bit by bit" \
    "and trainctl reproduce repeats the run of two hosts"
only_sshd() { [ "$("$net" pids "$lab" "$h2" | wc -l)" = 1 ]; }
ok "nothing but its sshd is left on the other host" eventually only_sshd

# ---- bytes between the hosts: each sends and gets every gradient once, however many ranks it has
traffic() { # sets $summed, and $sent by the hosts
    local h before=0 after=0
    for h in $h1 $h2; do before=$((before + $(sent_by "$h"))); done
    summed=$("$net" run "$lab" "$h1" mpirun --allow-run-as-root --mca plm_rsh_agent "$lab/ssh" --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 \
        --mca mpi_yield_when_idle 1 --bind-to none --oversubscribe --host "$h1:4,$h2:4" \
        "$top_builddir/tests/mpi/gradients_many" 24000000)
    for h in $h1 $h2; do after=$((after + $(sent_by "$h"))); done
    sent=$(((after - before) / 2))
}
sent_by() {
    "$net" run "$lab" "$1" cat /sys/class/net/eth0/statistics/tx_bytes
}
traffic
ok "two hosts of four ranks send each gradient once" test $((sent * 10)) -lt $((summed * 12))
is "$((summed / 24000000))" 1 "of as many as are summed ($summed bytes, $sent sent by a host)"

# ---- sshd on another port
elsewhere=$(jq -c '.ssh_port = 2222' <<<"$two")
train "$elsewhere" '{"restart": {"max": 0}}'
ok "a job whose hosts have no sshd on its port fails" wait_state "$id" failed
like "$(job "$id" reason)" "host $h2 does not answer: .*port 2222: Connection refused" "with a readable message"
"$net" run "$lab" "$h2" /usr/sbin/sshd -f "$lab/sshd_config" -p 2222
train "$elsewhere"
ok "with one it succeeds" wait_state "$id" succeeded
like "$(cat "$state/jobs/$id/attempt-1/command")" "--mca plm_rsh_agent '$lab/ssh -p 2222'" "as its command says"
ok "the daemon stops in order" stop_daemon

# ---- Open MPI in a folder that the administrator has listed: its daemon (orted, of Open MPI 5 prted) tells that it was called
orted=$(basename "$(command -v prted || command -v orted)")
mkdir -p "$work/mpi/bin"
ln -s "$(dirname "$(ldconfig -p | sed -n 's/.*libmpi\.so.* => //p' | head -n 1)")" "$work/mpi/lib"
printf '#!/bin/sh\necho "$0 $(hostname)" >>%q\nexec %q "$@"\n' "$work/orted.log" "$(command -v "$orted")" >"$work/mpi/bin/$orted"
chmod +x "$work/mpi/bin/$orted"
start_hosts "slots = 4"
train "$(jq -c ".mpi_prefix = \"$work/mpi\"" <<<"$two")"
want 422 "an MPI prefix that is not listed is refused"
like "$body" "$work/mpi is not an allowed folder .*mpi_prefixes" "by name"
ok "the daemon stops" stop_daemon
worker=tests/paced/train-worker
start_hosts "slots = 4" "mpi_prefixes = /opt/mpi:$work/mpi"
train "$(jq -c ".mpi_prefix = \"$work/mpi\" | .ssh_port = 2222" <<<"$two")" '{"steps": 1000000}'
ok "with one that is a job runs" wait_state "$id" running
is "$(cat "$work/orted.log")" "$work/mpi/bin/$orted $h2" "its daemon is started on the other host"
has_libraries() {
    tr '\0' '\n' <"/proc/$(worker_on "$h2" 2)/environ" 2>/dev/null | grep -qE "^LD_LIBRARY_PATH=(.*:)?$work/mpi/lib"
}
ok "and the ranks there have its libraries" eventually has_libraries
call -X POST "/v1/jobs/$id/cancel"
ok "the job ends" wait_state "$id" cancelled
ok "the daemon stops in order again" stop_daemon

# ---- data_roots binds the ranks of all hosts: weights that become a link out of it while the job waits
mkdir -p "$work/secret"
cp "$(find "$run/checkpoints" -name model.safetensors | tail -n 1)" "$work/secret/"
cp "$work/secret/model.safetensors" "$work/data/init.safetensors"
start_hosts "slots = 4" "data_roots = $work/data"
train "$two" '{"steps": 1000000}'
busy=$id
ok "a job takes all cores" wait_state "$busy" running
train "$two" "{\"model\": {\"arch\": \"resnet18\", \"width\": 0.0625, \"image_size\": 32, \"classes\": 10, \"init\": \"$work/data/init.safetensors\"}, \"restart\": {\"max\": 0}}"
is "$status $(job "$id" state)" "201 queued" "the next one waits"
ln -sf "$work/secret/model.safetensors" "$work/data/init.safetensors"
call -X POST "/v1/jobs/$busy/cancel"
ok "it fails" wait_state "$id" failed
like "$(job "$id" reason)" 'init.safetensors is not in a folder that jobs may use' "because of the link"
like "$(cat "$state/jobs/$id/attempt-1/command")" "--data-roots $work/data" "whose roots the command of all ranks names"
ok "the daemon stops" stop_daemon
done_testing
