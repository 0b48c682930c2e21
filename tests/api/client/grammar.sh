#!/usr/bin/env bash
# No string of a job document reaches a shell: every shell metacharacter, control character and the like in every string key of the
# schema, by every way a document comes in, with every launcher. What is accepted is run for real: mpirun with a launch agent that hands
# its words to `sh -c` as sshd does, and Slurm's batch script by sh.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../runs.sh.inc"
# shellcheck source=tests/system/idx.sh.inc
. "$top_srcdir/tests/system/idx.sh.inc"
small_data
export OMP_NUM_THREADS=1 HOME=$work
# A short path, whatever TMPDIR is: a title has 200 characters.
canaries=$(mktemp -d /tmp/canary.XXXXXX) || exit 1
canary=$canaries/canary
trap 'end_runs; clean_up; rm -rf "$canaries"' EXIT
trainctl="$top_builddir/trainctl --server"

write_script "$work/agent" <<'END'
#!/bin/sh
# As sshd does with a command: one line to the user's shell, in the user's home.
echo "$*" >>"$HOME/agent.log"
shift
cd "$HOME" && exec sh -c "$*"
END
start() {
    printf "%s\n" "worker = $top_builddir/tests/bin/train-worker" "slots = 2" "restart_delay_seconds = 0" "requests_per_second = 0" \
        "launch_agent = $work/agent" >"$work/traind.conf"
    start_daemon --config "$work/traind.conf"
}
start

# A title of all that a shell could take amiss, and a folder of data with such a name.
odd=";touch $canary;\$(touch $canary)\`touch $canary\`|touch $canary&\"'\\<>*?[]{}()!#~ é"
mkdir "$work/odd"
folder="$work/odd/;touch canary;\$(touch canary)\`touch canary\`|touch canary&\"'\\<>*?[]{}()!#~ é"
ln -s "$work/data" "$folder"
document() { # CLUSTER
    jq -n --arg name "$odd" --arg data "$folder" --argjson cluster "$1" '{name: $name, steps: 1, batch_per_worker: 4,
        cluster: ({workers_per_node: 1, threads_per_worker: 1} + $cluster), data: {train: ($data + "/train")},
        model: {arch: "resnet18", width: 0.0625, stem: "small", image_size: 32, classes: 10}, lr: {warmup_epochs: 0}, checkpoint: {disable: true},
        restart: {max: 0}}'
}
variables='"env": {"UCX_TLS": "tcp,self", "KMP_AFFINITY": "granularity=fine compact @%:^", "OMPI_MCA_btl_tcp_links": "1", "OMP_DISPLAY_ENV": "true"}'
far='{"nodes": 1, "hosts": ["far1"], '"$variables"', "mpi_args": ["--mca", "btl_tcp_if_include", "127.0.0.0/8", "--mca", "btl", "self,tcp"]}'
slurm='{"launcher": "slurm", '"$variables"', "partition": "debug,long", "account": "a.b@c", "constraint": "(ib*2&gpu:1)|[rack1|rack2]", "time_limit": "1-02:03:04",
    "hosts": ["n1"], "interface": "eth0", "mpi_args": ["--mca", "btl_tcp_if_include", "10.0.0.0/24"]}'
ended() { # ID
    local _
    for _ in 1 2 3 4; do
        wait_state "$1" 'succeeded|failed|cancelled' && break
    done
    in_state "$1" succeeded || curl -sS "$url/v1/jobs/$1/log" | tail -n 5 | sed 's/^/# /'
    is "$(job "$1" state)" succeeded "$2"
}

# ------------------------------------------------------------------ all strings in all keys, by all routes

document "$slurm" >"$work/base.json"
for caller in "anyone $url" "an administrator unix:$socket"; do # over the unix socket the daemon's user is one
    python3 "$top_srcdir/tests/api/client/grammar.py" "${caller##* }" "$work/base.json" "$canary" name,note,data.train,data.eval,model.init \
        "$work/accepted" >"$work/out" 2>"$work/err"
    is "$?:$(cat "$work/out")" "0:" "${caller% *}: all that a shell could take amiss is refused by every route"
    sed 's/^/# /' "$work/err"
    ok "${caller% *}: what is harmless is not" test "$(wc -l <"$work/accepted")" -gt 20
done
is "$(sql 'select count(*) from job')" 0 "no job came of it"

# ------------------------------------------------------------------ what is accepted runs, and a shell sees none of it

document '{}' >"$work/job.json"
call -d "@$work/job.json" /v1/jobs
want 201 "a job with a strange title and folder"
ended "$(jq .id <<<"$body")" "runs on this machine"
document "$far" >"$work/job.json"
call -d "@$work/job.json" /v1/jobs
want 201 "a job on another host"
id=$(jq .id <<<"$body")
ended "$id" "runs through a launch agent that calls a shell"
like "$(cat "$work/agent.log")" 'orted.*"127.0.0.0/8"|prted.*prte_hnp_uri "prterun-.*"' "whose line has mpirun's arguments, quoted as Open MPI does"

document "$slurm" >"$work/job.json"
$trainctl "$url" submit --print-sbatch "$work/job.json" >"$work/script"
is $? 0 "Slurm's script"
mkdir "$work/hand"
sed -i 's|^/[^ ]*mpirun|echo|' "$work/script" # its arguments are what this is about: no Slurm is here to give it nodes
(cd "$work/hand" && SLURM_JOB_ID=1 timeout 60 sh "$work/script")
is "$?" 0 "runs in a shell"
like "$(cat "$work/hand/traind-run/attempt-1/stdout.log")" '-x KMP_AFFINITY=granularity=fine compact @%:\^ ' "and gives mpirun the job's variables"
like "$(cat "$work/hand/traind-run/attempt-1/stdout.log")" 'btl_tcp_if_include 10.0.0.0/24.*--job' "and gives mpirun its arguments"
is "$(jq -r .name "$work/hand/traind-run/job.json")" "$odd" "and the worker the document, title and all"
is "$(grep -c '^#SBATCH' "$work/script")" "$(grep -c '^#SBATCH --[a-z-]*[= ]\|^#SBATCH --requeue$' "$work/script")" "its directives are lines of their own"

# ------------------------------------------------------------------ other ways in

evil=$(jq -n --arg x "10.0.0.0/24\" ; touch $canary ; \"" '["--mca", "btl_tcp_if_include", $x]')
call -d "{\"cluster\": {\"mpi_args\": $evil}}" "/v1/jobs/$id/resume"
want 422 "a resume with other arguments is refused"
$trainctl "unix:$socket" resume --set "cluster.interface=\"eth0\$(touch $canary)\"" "$id" >"$work/out" 2>&1
like "$?:$(cat "$work/out")" '^[1-9][0-9]*:.*must be one interface' "so it is for administrators"
$trainctl "$url" clone --set "cluster.env={\"OMP_X\": \"\$(touch $canary)\"}" --submit "$id" >"$work/out" 2>&1
like "$?:$(cat "$work/out")" '^[1-9][0-9]*:.*cluster.env: must be a value of' "a clone with such a variable is refused"
$trainctl "$url" clone --set "cluster.mpi_args=$evil" --submit "$id" >"$work/out" 2>&1
like "$?:$(cat "$work/out")" '^[1-9][0-9]*:.*cluster.mpi_args: must be an argument' "a clone is refused"
jq --argjson evil "$evil" '.cluster = {mpi_args: $evil, workers_per_node: 1, threads_per_worker: 1} | .data.train = "synthetic"' "$work/job.json" >"$work/bench.json"
"$top_builddir/trainctl" scale --workers 1 --steps 1 "$work/bench.json" >"$work/out" 2>&1
like "$?:$(cat "$work/out")" '^[1-9][0-9]*:.*cluster\.mpi_args\[2\]: must be an argument' "trainctl scale, which starts mpirun itself, refuses it"
"$top_builddir/trainctl" bench --arch "\$(touch $canary)" >"$work/out" 2>&1
like "$?" '^[1-9]' "so does trainctl bench"
# One that an older version let in.
stop_daemon
sql "update job set state = 'queued', spec = json_set(spec, '$.cluster.mpi_args', json('$(jq -c . <<<"${evil//\'/}")')) where id = $id"
start
ok "a stored document with such arguments is not run" wait_state "$id" failed
like "$(job "$id" reason)" 'stored job document is not valid.*cluster\.mpi_args\[2\]' "and says why"

is "$(find "$work" "$canaries" -mindepth 1 -name 'canary*')" "" "no shell has run anything"
ok "the daemon stops in order" stop_daemon
done_testing
