#!/usr/bin/env bash
# What Slurm's nodes run (etc/slurm), behind a site's own prolog, on a real cluster: a fit node passes and reports, others' jobs pass
# at once, data are staged, a wrong data path ends the job and drains nobody, traind may be away, leftovers are ended, a full scratch
# and a slow node are drained with the reason.
# shellcheck source=tests/system/slurm/slurm.sh.inc
. "${top_srcdir:?run it by make check}/tests/system/slurm/slurm.sh.inc"
trainctl=$top_builddir/trainctl
export TRAIND_PRESETS=$top_srcdir/etc/presets
full=""
trap '! mountpoint -q "$work/full" 2>/dev/null || umount "$work/full"; end_cluster; end_runs; clean_up' EXIT

# ------------------------------------------------------------------ set-up, as an administrator does it

mkdir -p "$work/slurm" "$work/bin" "$work/scratch" "$work/spool" "$work/full"
chmod 755 "$work"
# The check measures one core and reports that nothing else computed, however busy this machine is.
core=$(taskset -cp $$ | sed "s/.*: //; s/[,-].*//")
write_script "$work/bin/train-worker" <<END
#!/bin/sh
if [ "\$1" = --self-check ]; then
    said=\$(taskset -c "$core" "$top_builddir/tests/bin/train-worker" "\$@")
    code=\$?
    printf '%s\n' "\$said" | sed 's/"load":[0-9]*/"load":0/'
    exit \$code
fi
exec "$top_builddir/tests/bin/train-worker" "\$@"
END
ln -s "$top_builddir/tests/bin/train-prep" "$work/bin/train-prep"
# Their limits are for machines that are not as busy as this one may be.
longer='s/"\$work\/report" 5/"$work\/report" 60/; s/"\$kept" 2/"$kept" 60/; s/connect-timeout 2/connect-timeout 30/
    s/timeout 10 /timeout 60 /; s/exec timeout 2 /exec timeout 60 /; s/limit 10 /limit 60 /'
for script in prolog epilog task-prolog drain-node node.sh; do
    sed -e "s|@pkgdatadir@/slurm|$work/slurm|; s|@bindir@|$work/bin|; s|@sysconfdir@|$work|; $longer" \
        "$top_srcdir/etc/slurm/$script.in" >"$work/slurm/$script"
    chmod +x "$work/slurm/$script"
done
is "$(cat "$work"/slurm/* | grep -cE '"\$work/report" 60|"\$kept" 60|connect-timeout 30|timeout 60 |limit 60 ')" 9 \
    "limits are set for this test"
for script in prolog epilog task-prolog; do # the site's own, which goes on to traind's
    write_script "$work/site-$script" <<END
#!/bin/sh
[ $script = task-prolog ] || echo "$script \$SLURMD_NODENAME \$SLURM_JOB_ID" >>"$work/site.log" || exit 1
export TRAIND_NODE_CONF="$work/node-\$SLURMD_NODENAME.conf"
exec "$work/slurm/$script"
END
done
node_conf() { # NODE [KEY=VALUE...]
    # shellcheck source=etc/slurm/traind-node.conf
    {
        cat "$top_srcdir/etc/slurm/traind-node.conf"
        printf '%s\n' "runs=$state/jobs" "url=$url" "token_file=$work/token" "scratch=$work/scratch" "spool=$work/spool/$1" \
            "state=$work/run-$1" check_seconds=300 "bin=$work/bin" "${@:2}"
    } >"$work/node-$1.conf.new"
    mv "$work/node-$1.conf.new" "$work/node-$1.conf" # nobody reads half of it
}
# before the nodes have mounts of their own
mount -t tmpfs -o size=64k tmpfs "$work/full" 2>/dev/null && full=$work/full && head -c 1M /dev/zero >"$work/full/x" 2>/dev/null
printf '%s\n' BatchStartTimeout=1800 SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2,nohold_on_prolog_fail >"$work/slurm.conf"
SLURM_CLUSTER_CONF=$work/slurm.conf SLURM_CLUSTER_PROLOG=$work/site-prolog SLURM_CLUSTER_EPILOG=$work/site-epilog \
    SLURM_CLUSTER_TASK_PROLOG=$work/site-task-prolog start_cluster 2
# how fast this machine is at the moment must not decide but where that is tested
settings=("node_check_seconds = 0" "node_slow_percent = 100" "node_drain_percent = 0" "node_drain_command = $work/slurm/drain-node")
start_slurm_daemon "${settings[@]}"
"$trainctl" --server "unix:$socket" token create --role node nodes >"$work/token" 2>/dev/null
chmod 600 "$work/token"
node_conf n1
node_conf n2
real_images

node() { # NAME JQ
    get "/v1/nodes/$1" | jq -cr "$2"
}
state_of() {
    sinfo -h -n "$1" -o '%t'
}
reason_of() {
    sinfo -h -R -n "$1" -o '%300E' | sed 's/ *$//'
}
has_phase() { # NODE PHASE COUNT
    [ "$(node "$1" "[.history[]? | select(.phase == \"$2\")] | length")" -ge "$3" ] 2>/dev/null
}
# by_hand ID BODY [SBATCH OPTION...]: a job in a run directory, as the launcher makes it, without the daemon
by_hand() {
    mkdir -p "$state/jobs/$1/attempt-1"
    jq -n '{data: {train: "synthetic", train_images: 64}, cluster: {launcher: "slurm", threads_per_worker: 3}}' >"$state/jobs/$1/job.json"
    printf '#!/bin/sh\n%s\n' "$2" >"$work/batch"
    sbatch --parsable "${@:3}" --chdir="$state/jobs/$1/attempt-1" --output=slurm.log "$work/batch"
}
# Slurm puts a job back whose prolog fails, cancelled or not.
cancelled() {
    scancel "$1" 2>/dev/null
    gone "$1"
}
gone() { # not where Slurm does not answer
    local s
    s=$(squeue -h -t all -o %T -j "$1" 2>&1)
    [[ $s =~ ^(COMPLETED|CANCELLED|FAILED|TIMEOUT|NODE_FAIL)$ || $s == *"Invalid job id"* ]]
}

# ------------------------------------------------------------------ a fit node

slurm_job "fit" 2
ok "a job on two nodes succeeds after the prolog" ends "$id" succeeded
for n in n1 n2; do
    ok "$n has sent its epilog's report" eventually has_phase $n epilog 1
    is "$(node $n '[.history[] | select(.phase == "epilog")] | .[-1].reason')" null "and nothing was left on $n to end"
    is "$(node $n '[.verdict, .partition, .history[-1].job, .history[-1].phase]')" "[\"fine\",\"test\",$id,\"prolog\"]" \
        "$n has reported, with job and partition"
    is "$(node $n '.history[-1] | .gflops > 0 and .memory_gb_per_sec > 0')" true "and figures"
done
ok "the epilogs report" eventually has_phase n1 epilog 1
like "$(cat "$work/site.log")" '^prolog n1' "the site's own prolog ran first"

# ------------------------------------------------------------------ the administrator's check

doctor() { # CHECK: its verdict and words
    jq -r --arg c "$1" '.[] | select(.check == $c) | "\(.ok) \(.found) \(.advice)"' "$work/doctor"
}
TRAIND_NODE_CONF=$work/node-n1.conf "$trainctl" --server "$url" doctor --slurm --json >"$work/doctor" 2>&1
is "$(doctor Prolog)" "true $work/site-prolog null" "doctor --slurm follows the site's prolog to traind's"
like "$(doctor PrologFlags)" '^false .*PrologFlags=Alloc' "and names what is missing in slurm.conf"
like "$(doctor SchedulerParameters) $(doctor runs) $(doctor token) $(doctor reports)" \
    "^true .*nohold.* true $state/jobs null true $work/token has mode 600 null true 2 nodes have reported, and Slurm lists 2" "the rest is right"
TRAIND_NODE_CONF=$work/none "$trainctl" --server "$url" doctor --slurm --json >"$work/doctor" 2>&1
like "$(doctor node.conf)" '^false .*without it jobs start unchecked' "it misses traind-node.conf"

# ------------------------------------------------------------------ jobs of others

before=$(node n1 '.history | length')
is "$(srun --nodes=1 --nodelist=n1 --chdir="$work" sh -c 'echo $OMP_PROC_BIND-passed')" "-passed" \
    "another's job passes, its environment as it was"
is "$(node n1 '.history | length')" "$before" "without a report"
ok "and leaves nothing" test -z "$(ls -A "$work/spool/n1")"

# ------------------------------------------------------------------ threads and MPI settings

jid=$(by_hand 900 'srun --mpi=none sh -c '\''echo "$OMP_NUM_THREADS $OMP_PROC_BIND $OPENBLAS_NUM_THREADS $OMPI_MCA_oob_tcp_keepalive_time $OMPI_MCA_opal_abort_delay"'\''
    OMP_PROC_BIND=spread srun --mpi=none sh -c '\''echo "$OMP_PROC_BIND"'\' --nodelist=n1)
ok "a job by hand ends" eventually gone "$jid"
is "$(cat "$state/jobs/900/attempt-1/slurm.log")" "3 close 1 5 5"$'\n'spread \
    "task-prolog gives tasks the plan's threads and MPI's settings, but leaves the job's own"

# ------------------------------------------------------------------ staging

for n in n1 n2; do node_conf $n "stage=\"$work/data=$work/scratch/set\""; done
slurm_job "staged" 2 ".cluster.nodes = 1 | .data = {train: \"$work/scratch/set/train\", train_images: 96}"
want 201 "a job whose data are to be staged is taken"
ok "a job whose data are to be staged succeeds" ends "$id" succeeded
at=$(slurm "$id" nodes)
is "$(find "$work/scratch/set/train" -name 'train-*' | wc -l)" 2 "its shards are on the node's disk"
is "$(jq -r .type "$state/jobs/$id/stage-$at.jsonl" | sort -u | tr '\n' ' ')" "copied done start " "its progress is in the run directory"
ended() { [ "$(node "$at" "[.history[] | select(.job == $1 and .phase == \"epilog\")] | length")" = 1 ]; }
ok "the epilog ends" eventually ended "$id"
ok "and keeps them" grep -qsx "0 0 $work/scratch/set" "$work/spool/$at/staged"
node_conf "$at" "stage=\"$work/data=$work/scratch/set\"" keep_days=0
jid=$(by_hand 901 true --nodelist="$at")
ok "once no job has used them for keep_days" eventually ended 901
ok "they go" test ! -e "$work/scratch/set"
is "$(node "$at" .reason)" "removed $work/scratch/set, which no job used for 0 days" "which the epilog reports"

# both sets are on the nodes' disks alone, a part of the shards on each: here every node has its own scratch
for n in n1 n2; do
    rm -rf "$work/scratch/$n"
    mkdir -p "$work/scratch/$n"
done
own_scratch() { # NODE: a mount that only it sees
    nsenter --mount --target "$(pgrep -P "$(cut -d' ' -f1 "$work/cluster/pids/$1")" | head -1)" mount --bind "$work/scratch/$1" "$work/scratch/own"
}
mkdir "$work/scratch/own"
echo PrologFlags=Alloc >>"$SLURM_CONF" # else a step's prolog sees the step's nodes alone
scontrol reconfigure
takes_effect() { scontrol show config | grep -qE '^PrologFlags.*Alloc'; }
ok "PrologFlags=Alloc takes effect" eventually takes_effect
if own_scratch n1 && own_scratch n2; then
    for n in n1 n2; do node_conf $n "stage=\"$work/data=$work/scratch/own/set\"" "scratch=$work/scratch/own"; done
    both='.data = {train: "'$work'/scratch/own/set/train", eval: "'$work'/scratch/own/set/validation", locality: "node"}'
    slurm_job "uncounted" 2 "$both"
    want 422 "data that only the nodes have cannot be counted here"
    jq "$both" "$work/job.json" >"$work/both.json"
    "$trainctl" --server "$url" submit --print-sbatch --train-images 96 --eval-images 50 "$work/both.json" >"$work/both.sh" 2>&1
    is "$?" 0 "submit --print-sbatch takes their numbers"
    like "$(cat "$work/both.sh")" '"eval_images": ?50' "which its document has"
    slurm_job "parts" 4 "$both"' | .data += {train_images: 96, eval_images: 50}'
    want 201 "with both numbers it is taken"
    ok "a job whose nodes have a part each succeeds" ends "$id" succeeded
    ok "nothing was ever on this machine's own disk" test ! -e "$work/scratch/own/set"
    is "$(cd "$work/scratch" && find n1 n2 -name '*-of-*' | sort | tr '\n' ' ')" \
        "n1/set/train/train-00000-of-00002 n1/set/validation/validation-00000-of-00001 n2/set/train/train-00001-of-00002 n2/set/validation/validation-00000-of-00001 " \
        "a shard for training on each, and the validation on both"
    is "$(jq .eval_images "$state/jobs/$id/result.json")" 50 "all evaluation images were seen"
else
    skip "data that only the nodes have" "mount is not allowed"
fi
node_conf n1
node_conf n2

# ------------------------------------------------------------------ threads that the document leaves open

call --data-binary '{"data": {"train": "synthetic", "train_images": 64}, "batch_per_worker": 4,
    "cluster": {"launcher": "slurm", "nodes": 2, "workers_per_node": 1}}' /v1/plan
json '.explain.threads_per_worker | [.value, .source]' '[2,"sinfo: the fewest of the 2 nodes of the default partition"]' \
    "sinfo has the cores of a node"

# ------------------------------------------------------------------ a wrong data path

slurm_job "lost" 2 '.cluster.nodes = 1 | .data = {train: "/nowhere/imagenet", train_images: 96} | .restart = {max: 0}'
ok "a job with a wrong data path fails" ends "$id" failed
like "$(cat "$state/jobs/$id/attempt-1/slurm.log")" "traind: job $id cannot run: there is no data set at /nowhere/imagenet" \
    "with the reason in its log"
like "$(get "/v1/jobs/$id/events" | jq -r '.events[] | select(.type == "warning") | .message')" "job $id was rejected; data: there is no data set" \
    "and in its events"
is "$(reason_of n1)$(reason_of n2)" "" "no node is drained for it"

# ------------------------------------------------------------------ traind is away; leftovers

ok "traind stops" stop_daemon
node_conf n1 url=http://127.0.0.1:1
jid=$(by_hand 902 '(setsid sleep 987 >/dev/null 2>&1 &) ; sleep 0.3; echo ran' --nodelist=n1)
ok "a job without traind ends" eventually gone "$jid"
is "$(cat "$state/jobs/902/attempt-1/slurm.log")" ran "it has run"
kept() { [ "$(find "$work/spool/n1" -name '[0-9]*.json' | wc -l)" = "$1" ]; }
ok "both reports are kept" eventually kept 2
is "$(jq -r 'select(.phase == "epilog") | .reason' "$work"/spool/n1/*.json)" "ended 1 process(es) that the job had left" \
    "the epilog has ended what the job had left"
ok "it is gone" test -z "$(grep -lzx "SLURM_JOB_ID=$jid" /proc/[0-9]*/environ 2>/dev/null)"
restart_runs
node_conf n1
jid=$(by_hand 993 true --nodelist=n1)
ok "the next job's reports bring them" eventually kept 0
ended() { [ "$(node n1 "[.history[] | select(.job == $1 and .phase == \"epilog\")] | length")" = 1 ]; }
ok "to the history" eventually ended 902
is "$(node n1 '[.history[] | select(.job == 902) | .phase] | sort')" '["epilog","prolog"]' "with their job"
is "$(reason_of n1)" "" "and nothing was drained"

# ------------------------------------------------------------------ a node that is not fit

drained() { [[ $(state_of "$1") =~ ^(drain|drng) ]]; }
if [ -n "$full" ]; then
    node_conf n2 "scratch=$work/full"
    jid=$(by_hand 994 true --nodelist=n2)
    ok "a node whose scratch is full is drained" eventually drained n2
    like "$(reason_of n2)" "^traind: scratch: (cannot write in $work/full|0\.0 GB)" "with a reason for the administrator"
    is "$(node n2 .verdict)" drain "traind knows it too"
    ok "its job waits, and is cancelled" eventually cancelled "$jid"
    scontrol update nodename=n2 state=resume
    slurm_job "refused" 2
    put_back() { sql "select json_extract(body, '\$.reason') from job_event where job_id = $id and type = 'state' and body like '%put its job%'" | grep .; }
    ok "a job of traind that has it is put back" eventually put_back
    like "$(put_back | head -n 1)" "^Slurm put its job [0-9]+ back into the queue, as its prolog drained node n2: .*scratch.*; (starts in another allocation, from the beginning, as it has no checkpoint|restart 1 of [0-9]+)$" \
        "and names who requeued it, and why"
    call -X POST "/v1/jobs/$id/cancel"
    ok "it is cancelled" ends "$id" cancelled
    node_conf n2
    scontrol update nodename=n2 state=resume
    jid=$(by_hand 995 true --nodelist=n2)
    ok "repaired and resumed it works again" eventually gone "$jid"
    is "$(node n2 .verdict)" fine "and is fine"
else
    skip "a full scratch" "mount is not allowed"
fi

# ------------------------------------------------------------------ a node whose files hang

# other_worker NAME BODY: node n2 has $work/NAME/train-worker, a script, for train-worker
other_worker() {
    mkdir "$work/$1"
    printf '#!/bin/sh\n%s\n' "$2" >"$work/$1/train-worker"
    chmod +x "$work/$1/train-worker"
    node_conf n2 "bin=$work/$1" check_seconds=1200
}
# The usual limit here, as the test waits for it; the server never answers.
sed -i '/--job-settings/s/limit 60 /limit 10 /' "$work/slurm/prolog"
other_worker hanging 'exec sleep 600'
jid=$(by_hand 997 true --nodelist=n2)
ok "a node that cannot read the job in time is drained" eventually drained n2
like "$(reason_of n2)" "^traind: .*/train-worker did not read $state/jobs/997/job.json within 10 s" "with the reason"
ok "its job is cancelled" eventually cancelled "$jid"
sed -i 's/limit 10 /limit 60 /' "$work/slurm/prolog"
node_conf n2
scontrol update nodename=n2 state=resume

# ------------------------------------------------------------------ a slow node

for run in 911 912 913; do # a history of its own
    jid=$(by_hand $run true --nodelist=n2)
    ok "it is checked" eventually gone "$jid"
done
sed -i 's/^node_slow_percent.*/node_slow_percent = 30/; s/^node_drain_percent.*/node_drain_percent = 40/' "$work/traind.conf"
kill -HUP "$daemon"
ok "the daemon takes the limits" eventually grep -q 'settings reloaded' "$work/daemon.log"
# A node slowed down by others is not at fault: its real check reports that they compute.
other_worker busy "[ \"\$1\" = --self-check ] || exec $work/bin/train-worker"' "$@"
'"exec taskset -c $core $top_builddir/tests/bin/train-worker"' "$@"'
taskset -c "$core" sh -c 'while :; do :; done' &
busy=$!
jid=$(by_hand 998 true --nodelist=n2)
ok "a job on a busy node runs" eventually gone "$jid"
kill $busy
is "$(node n2 '[.history[] | select(.job == 998 and .phase == "prolog")][0] | [.load > 0, .verdict]')" '[true,"unknown"]' \
    "its speed is not judged"
ok "nor is it drained" test "$(node n2 .verdict)" != drain -a -z "$(reason_of n2)"
# Its check is stopped nine tenths of the time, less exactly where the machine is busy, and multiplies by old kernels; nothing else of
# this machine is slowed down.
other_worker slow "[ \"\$1\" = --self-check ] || exec $work/bin/train-worker"' "$@"
'"OPENBLAS_CORETYPE=Prescott taskset -c $core $top_builddir/tests/bin/train-worker"' "$@" >'"$work/slow/said"' &
while kill -STOP $! 2>/dev/null; do
    sleep 0.18
    kill -CONT $!
    sleep 0.02
done
wait $!
code=$?
sed "s/\"load\":[0-9]*/\"load\":0/" '"$work/slow/said
exit "'$code'
jid=$(by_hand 996 true --nodelist=n2)
ok "a node that is slowed down is drained" eventually drained n2
like "$(reason_of n2)" '^traind: SGEMM is [0-9]+ % slower than its own median' "with the figures"
like "$(node n2 .reason)" 'SGEMM is [0-9]+ % slower than .*GFLOP/s' "which traind has too"
like "$("$trainctl" --server "$url" nodes)" '^n2 +drain' "trainctl nodes names it"
scancel "$jid"

ok "the daemon stops" stop_daemon
done_testing
