#!/usr/bin/env bash
# Jobs on a real Slurm cluster of two nodes: submitted by curl, trained on real images to the end, started by mpirun and by srun;
# refused with Slurm's message; with hostile names.
# shellcheck source=tests/system/slurm/slurm.sh.inc
. "${top_srcdir:?run it by make check}/tests/system/slurm/slurm.sh.inc"
start_cluster 2
start_slurm_daemon "mpi_prefixes = /usr"
real_images

# Each rank's OpenMP prints what it reads from the environment.
env='.cluster.env = {OMP_DISPLAY_ENV: "true", OMP_WAIT_POLICY: "passive", OMP_PROC_BIND: "spread", KMP_AFFINITY: "granularity=fine verbose"}'
told() { # ID WORDS, that are written at once, as another rank's may follow: how many ranks
    grep -oE "$2" "$state/jobs/$1/attempt-1/stdout.log" | wc -l
}
slurm_job "real" 6 "$env"' | .cluster.mpi_prefix = "/usr"'
want 201 "a job for Slurm is taken"
real=$id
ok "it succeeds" ends "$real" succeeded
is "$(job "$real" slots)" 0 "it takes no slots of this machine"
is "$(slurm "$real" 'state')" COMPLETED "the answer has Slurm's state"
is "$(slurm "$real" nodes)" "n[1-2]" "and on which nodes"
is "$(sql "select count(*) from job_event where job_id = $real and type = 'step'")" 6 "its steps are stored"
# The run may report before Slurm knows its nodes.
like "$(sql "select group_concat(reason, '; ') from (select json_extract(body, '\$.reason') as reason from job_event
    where job_id = $real and type = 'state') where reason like '%Slurm%'")" \
    "^is handed to Slurm: 4 workers on 2 nodes; Slurm has started its job $(slurm "$real" job_id) on (n\[1-2\]|its nodes)$" "events tell of its way through Slurm"
like "$(jq -c 'select(.type == "run_start")' "$state/jobs/$real/attempt-1/events.jsonl")" '"world_size": ?4|"ranks": ?4' "four ranks"

is "$(told "$real" "OMP_WAIT_POLICY *= *'PASSIVE'") $(told "$real" SPREAD)" "4 4" "all with the job's variables"

like "$("$top_builddir/trainctl" --server "unix:$socket" reproduce "$real" 2>&1 | tail -n 1)" "^job [0-9]+ reproduces job $real bit by bit$" \
    "it is repeated to the bit"

# The script can be submitted by hand: it is what Slurm ran.
script=$state/jobs/$real/attempt-1/sbatch
like "$(cat "$script")" "^#SBATCH --nodes=2 --ntasks-per-node=2 --cpus-per-task=1$" "its batch script is in the run directory"
like "$(cat "$script")" "mpirun --prefix /usr -np 4 " "with the prefix of Open MPI"
is "$(sbatch --parsable --test-only "$script" 2>&1 | grep -c 'to start at')" 1 "sbatch takes it from a person"
is "$(sbatch --parsable "$script" >"$work/again" && eventually grep -qs 'has been started by Slurm' "$state/jobs/$real/attempt-1/slurm.log" && wc -l <"$state/jobs/$real/attempt-1/events.jsonl")" \
    "$(wc -l <"$state/jobs/$real/attempt-1/events.jsonl")" "run a second time it leaves the attempt alone"

# ---------------------------------------------------------------- what is refused
slurm_job "nowhere" 4 '.cluster.partition = "nowhere"'
ok "a job for a partition that is not there fails" ends "$id" failed
is "$(job "$id" reason)" "Slurm rejected the job: sbatch: error: invalid partition specified: nowhere;sbatch: error: Batch job submission failed: Invalid partition name specified" "with Slurm's words"
slurm_job "lines" 4 '.cluster.partition = "a\n#SBATCH --wrap=x" | .cluster.account = "x\ny"'
refused 422 invalid '/cluster/partition' "a line break in a partition's name"

# ---------------------------------------------------------------- names
slurm_job "$(printf 'two\n#SBATCH --wrap=id')" 2 '.cluster.mpi_args = ["-x", "A=\nid"]'
refused 422 invalid '/name' "a line break in a name"
name="a \"name\" with 'quotes' \$(touch $work/harm) \`id>$work/harm\` \\ #SBATCH --wrap=\"id>$work/harm\""
jq -n --arg name "$name" '{name: $name, data: {train: "synthetic", train_images: 64}, steps: 2, batch_per_worker: 2,
    cluster: {launcher: "slurm", workers_per_node: 1, threads_per_worker: 1, mpi_args: ["-x", "GREETING=good day"]},
    model: {arch: "resnet18", width: 0.0625, image_size: 32, classes: 10, stem: "small"}}' >"$work/job.json"
call --unix-socket "$socket" -H 'Content-Type: application/json' --data-binary "@$work/job.json" /v1/jobs # root may give any argument
id=$(jq -r '.id // 0' <<<"$body")
ok "a job with quotes and \$(...) in its name and a space in its arguments succeeds" ends "$id" succeeded
is "$(job "$id" name)" "$name" "its name is as it was"
ok "and did no harm" test ! -e "$work/harm"

# ---------------------------------------------------------------- by hand
mkdir "$work/hand"
"$top_builddir/trainctl" --server "$url" submit --print-sbatch "$work/job.json" >"$work/hand/script"
is $? 0 "trainctl prints a batch script of it"
(cd "$work/hand" && env -u OMPI_ALLOW_RUN_AS_ROOT -u OMPI_ALLOW_RUN_AS_ROOT_CONFIRM sbatch --quiet script)
by_hand() { [ "$(jq -r .status "$work/hand/traind-run/result.json" 2>/dev/null)" = success ]; }
ok "submitted by a person it trains" eventually by_hand
ok "and does no harm" test ! -e "$work/harm"
like "$("$top_builddir/trainctl" --server "$url" submit --print-sbatch - <<<'{"data": {"train": "synthetic"}}' 2>&1)" 'launcher": "slurm"' \
    "a job that is not for Slurm has none"
is "$("$top_builddir/trainctl" --server "$url" show "$real" | sed -n "s/^Slurm's job *//p")" "$(slurm "$real" job_id) COMPLETED on n[1-2]" \
    "trainctl show has Slurm's state"

# ---------------------------------------------------------------- srun
stop_daemon
start_slurm_daemon "slurm.start = srun" "mpi_prefixes = /usr"
slurm_job "by srun" 6 "$env"
by_srun=$id
ok "ranks are started by srun" ends "$by_srun" succeeded
is "$(told "$by_srun" "OMP_WAIT_POLICY *= *'PASSIVE'") $(told "$by_srun" SPREAD)" "4 4" "with the job's variables"
like "$(cat "$state/jobs/$by_srun/attempt-1/sbatch")" "^srun --mpi=pmix --export=ALL --nodes=2 --ntasks=4 --ntasks-per-node=2 " \
    "as its script says"
is "$(weights "$by_srun" 6)" "$(weights "$real" 6)" "and give the weights of those started by mpirun, bit by bit"
slurm_job "prefix" 2 '.cluster.mpi_prefix = "/usr"'
refused 422 invalid 'is for mpirun' "a prefix of mpirun where srun starts the ranks"
slurm_job "arguments" 2 '.cluster.mpi_args = ["--tag-output"]'
refused 422 invalid 'are for mpirun' "arguments of mpirun where srun starts the ranks"
ok "the daemon stops" stop_daemon
done_testing
