#!/usr/bin/env bash
# trainctl run: a job without a daemon. What it prints, the folder that it makes, resuming, Ctrl-C, what it refuses.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"
trainctl=$(realpath "$top_builddir/trainctl") terminal=$(realpath "$top_srcdir/tests/api/client/terminal.py")
private_folder
cd "$work" || exit 1
# as a user who knows nothing of Open MPI's variables, also as root
unset OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM TRAINCTL_SERVER TRAINCTL_CONTEXT TRAIND_STATE
export HOME=$work XDG_CONFIG_HOME=$work/config XDG_CACHE_HOME=$work/cache NO_COLOR=1

run() { # ARGUMENT...: what it prints in $out, its errors in $err, its exit code in $code
    "$trainctl" run "$@" >"$work/out" 2>"$work/err"
    code=$?
    out=$(<"$work/out") err=$(<"$work/err")
}
exits() { # CODE NAME ARGUMENT...
    local want=$1 name=$2
    shift 2
    run "$@"
    is "$code" "$want" "$name"
    [ "$code" = "$want" ] || sed 's/^/# /' "$work/out" "$work/err"
}
document() { # FILE [JQ]: a short training
    jq "${2-.}" >"$1" <<'END'
{"name": "first", "model": {"arch": "resnet18", "width": 0.0625, "classes": 10, "image_size": 32},
 "data": {"train": "synthetic", "eval": "synthetic", "train_images": 64},
 "cluster": {"workers_per_node": 2, "threads_per_worker": 1},
 "batch_per_worker": 8, "steps": 6, "lr": {"start": 0.001}, "eval": {"batch": 8}}
END
}

# ---------------------------------------------------------------- to the end

document job.json
exits 0 "a job" job.json
like "$out" '^first (running|evaluating) ' "its progress"
is "$(grep -cE '^first success' <<<"$out")" 0 "in the words of watch"
like "$out" '^state +succeeded$' "its outcome"
like "$out" '^speed +[0-9.]+ images/s$' "its speed"
like "$out" '^top-1 +[0-9.]+ %$' "its accuracy"
like "$out" '^time to train +[0-9.]+ s$' "its time"
like "$out" "^run directory +$work/first$" "its folder has its name"
is "$(jq -r .status first/result.json) $(ls first/checkpoints | tail -n 1)" "success step-00000006" "which holds its result and its weights"
exits 1 "once more" job.json
like "$err" "first contains a run of this job: .*--resume, .*--run-dir" "is refused with a remedy"
exits 1 "another job in its folder" --set seed=2 job.json
like "$err" "first contains a run of another job, .* --run-dir" "is refused"
mkdir other && touch other/file
exits 1 "a folder with other files" --run-dir other job.json
like "$err" "other is not an empty folder" "is refused"
exits 3 "nothing to resume" --resume --run-dir none job.json
run --json --set seed=2 --run-dir second - <job.json
is "$code $(jq -c '[.state, .step, .train_steps, .attempt, .run_dir, (.top1 | type), (.ttt_seconds | type)]' <<<"$out")" \
    "0 [\"succeeded\",6,6,1,\"$work/second\",\"number\",\"number\"]" "--json prints the result alone"
document unnamed.json 'del(.name)'
exits 0 "a job without a name" unnamed.json
ok "is in a folder named after its file" test -f unnamed/result.json
python3 "$terminal" 80 env TERM=xterm LC_ALL=C.UTF-8 "$trainctl" run --run-dir third job.json >screen
is "$?" 0 "on a terminal"
ok "the view of trainctl watch is shown" grep -aq '▕' screen
like "$(tr -d '\r' <screen)" '^time to train +[0-9.]+ s$' "and then the result"

# ---------------------------------------------------------------- stopping and going on

document long.json '.name = "long" | .steps = 4000 | .data.train_images = 6400'
training() { grep -qs '"type": "step"' "$1/attempt-$2/events.jsonl"; }
"$trainctl" run long.json >said 2>words &
pid=$!
ok "a long one trains" eventually training long 1
exits 1 "a second one in its folder" --resume long.json
like "$err" "the run in $work/long is still in progress, as process [0-9]+" "is refused"
kill -INT $pid
wait $pid
is "$?" 130 "SIGINT stops it"
like "$(<said)" '^state +cancelled$' "its state"
like "$(<words)" "with --resume continues in $work/long, from the checkpoint of step [0-9]+" "it names the kept files and how to continue"
is "$(pgrep -fc -- "--run-dir $work/long")" 0 "no worker is left"
kept=$(jq -s '[.[] | select(.type == "checkpoint")][-1].step' long/attempt-1/events.jsonl)
exits 1 "without --resume" long.json
like "$err" "contains a run of this job: continue from its newest checkpoint with --resume" "it is not begun again"
"$trainctl" run --resume long.json >said 2>words &
pid=$!
ok "--resume goes on" eventually training long 2
is "$(jq 'select(.type == "run_start") | .resumed_step' long/attempt-2/events.jsonl)" "$kept" "from the checkpoint"
kill -TERM $pid
sleep 0.3
kill -TERM $pid 2>/dev/null
wait $pid
is "$?" 130 "SIGTERM stops it, twice at once"
is "$(pgrep -fc -- "--run-dir $work/long")" 0 "no worker is left then"

# ---------------------------------------------------------------- failures

document fails.json '.name = "fails" | .steps = 4000 | .data.train_images = 6400'
"$trainctl" run fails.json >said 2>words &
pid=$!
eventually training fails 1
pkill -KILL -f -- "train-worker .*--run-dir $work/fails"
wait $pid
is "$?" 1 "a worker that is killed fails the run"
like "$(<said)" '^state +failed$' "its state"
like "$(<words)" "the end of $work/fails/attempt-1/stdout.log" "the end of the log is shown"
document slurm.json '.name = "slurm" | .cluster.launcher = "slurm" | .cluster.nodes = 2'
exits 2 "a job for Slurm" slurm.json
like "$err" 'cluster.launcher is slurm: .*submit' "names what to use instead"
ok "and makes no folder" test ! -e slurm
exits 2 "a wrong key" --set lr.bse=1 job.json
like "$err" 'did you mean lr.base' "the nearest is named"
document bad.json '.name = "bad" | .data.train = "/none"'
exits 1 "data that are not there" bad.json
like "$err" "trainctl: there is no data set at /none$" "a message says so"
done_testing
