#!/usr/bin/env bash
# What trainctl prints fits terminals of 60, 80 and 120 columns, with long names, reasons, addresses and paths; what is no terminal
# gets all of it. Prints TAP.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../runs.sh.inc"
trainctl=$(realpath "$top_builddir/trainctl")
unset TRAINCTL_TOKEN
export NO_COLOR=1 LC_ALL=C.UTF-8 HOME=$work

start_runs "node_check_seconds = 0"
export TRAINCTL_SERVER=unix:$socket
one='{"workers_per_node": 1, "threads_per_worker": 1}'
long="resnet50-imagenet-large-batch-warm-up-experiment-of-november"
submit "$long-a eval=1" "$one" '{"tags": ["paper", "baseline-of-the-second-table"], "optimizer": {"name": "lars"},
    "note": "the run with the longer warm-up, as we agreed on Tuesday\nand a second line that is quite a bit longer than eighty columns are wide"}'
submit "$long-b eval=1" "$one"
submit "$long-c fail=1 rank=0 at=2" "$one"
for id in 1 2; do ok "job $id ends" wait_state "$id" succeeded; done
ok "job 3 fails" wait_state 3 failed
reason="the worker of rank 3 on node042 was killed by signal 9 at step 1200: out of memory, says the kernel of node042"
sql "update job set reason = '$reason', attempt = 1 where id = 3"
token=continuous-integration-of-the-vision-group@example.org
"$trainctl" token create $token >"$work/token" 2>&1
target=http://127.0.0.1:9/hooks/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX
"$trainctl" notify test $target >"$work/notice" 2>&1
node=rack12-node042.cluster.example.org
call --unix-socket "$socket" -d "$(jq -nc --argjson now "$(date +%s)" '{kind: "EPYC", cores: 4, phase: "prolog", outcome: "data", t: $now, gflops: 1000,
    reason: "the shards of /scratch/imagenet/train are not all there: 17 of 1024 are missing, the first is train-00017-of-01024",
    memory_gb_per_sec: 200, clock_ghz: 3}')" "/v1/nodes/$node/report"
want 200 "a node reports"
jq '{name: "rates and momenta of the whole family of networks of this year, and those of the last",
    base: del(.name), parameters: {"lr.base": [0.05, 0.1], "optimizer.momentum": [0.9], "optimizer.weight_decay": [0.0001]}, metric: "loss"}' "$work/job.json" >"$work/sweep.json"
"$trainctl" sweep "$work/sweep.json" >"$work/out" 2>&1
timeout 600 "$trainctl" sweep wait 1 >"$work/out" 2>&1
is $? 0 "a sweep ends"
jq '.lr = {"warmup_epochs": 0.5}' "$work/job.json" >"$work/another-document-with-a-name-that-is-long.json"

# One by the real worker, whose provenance is known.
ok "the daemon stops" stop_daemon
sed -i "s#^worker = .*#worker = $top_builddir/tests/bin/train-worker#" "$work/traind.conf"
restart_runs
call -d '{"name": "real", "data": {"train": "synthetic", "train_images": 64}, "batch_per_worker": 4, "steps": 2, "model": {"arch": "cnn", "image_size": 28, "classes": 10},
    "cluster": {"workers_per_node": 1, "threads_per_worker": 1}, "checkpoint": {"every_steps": 1}, "restart": {"max": 0}}' /v1/jobs
real=$(jq -r '.id // 0' <<<"$body")
ok "a training ends" wait_state "$real" succeeded

on() { # COLUMNS ARGUMENT...: on a terminal
    python3 "$top_srcdir/tests/api/client/terminal.py" "$1" "$trainctl" "${@:2}" >"$work/out" 2>&1
}
fits() { # COLUMNS ARGUMENT...
    on "$@"
    report "$(($(wc -L <"$work/out") > $1 || $(wc -l <"$work/out") < 1))" "trainctl ${*:2} on $1 columns" "$(cat "$work/out")"
}
while read -r -a words; do
    for columns in 60 80 120; do fits $columns "${words[@]}"; done
done <<END
list
list --group tag
list --group model.arch
show 1
show 3
compare 1 2 3
metrics 1
metrics --plot 1
provenance 1
provenance $real
checkpoints $real
sweep list
sweep show 1
sweep plan $work/sweep.json
nodes
nodes $node
failures
forecasts
usage
token list
notify list
audit
presets
predict --target 75.9 --node-speed 100
plan $work/job.json
plan --diff $work/job.json $work/another-document-with-a-name-that-is-long.json
predict --node-speed 100 $work/job.json
END
fits 80 predict --node-speed 100 --node-watts 300 --deadline 1s "$work/job.json"
fits 80 compare 1 2 3 "$real"
fits 80 doctor --slurm

# ------------------------------------------------------------------ what gives way

shows() { # REGEX NAME
    grep -qE -- "$1" "$work/out"
    report $? "$2" "expected: /$1/" "$(cat "$work/out")"
}
on 80 audit
shows '^ID +WHEN +WHO +WHAT +ON +DETAIL$' "a column that says something stays"
shows '^ +resnet50|^ +[^ ]+ experiment|^ {20,}[^ ]' "a long detail goes on below"
on 80 list
shows "^ 3 +resnet50-[^ ]*… +failed .* the worker of ran[^ ]*…$" "names and reasons share what is left"
on 60 list
shows '^ID +NAME +STATE +DONE' "with few columns"
ok "a reason of few words goes" eval "! grep -q REASON '$work/out'"
on 80 token list
shows 'continuous-integration-of-[^ ]*… +submit' "a token's name is cut"
on 80 list --columns reason,name,id
shows "^$reason +$long-c" "columns that were asked for are whole"
on 80 show 3
shows '^reason +the worker' "show breaks lines"
is "$(grep -A1 '^reason' "$work/out" | sed 's/^reason//' | tr -s ' \n' ' ')" " $reason " "between words"

# ------------------------------------------------------------------ locales without UTF-8

in_locale() { # ARGUMENT...
    env LOCPATH="$work" LC_ALL=$locale python3 "$top_srcdir/tests/api/client/terminal.py" 80 "$trainctl" "$@" >"$work/out" 2>&1
}
locales=C
localedef -i en_US -f ISO-8859-1 "$work/en_US.ISO-8859-1" 2>"$work/localedef" && locales="C en_US.ISO-8859-1"
for locale in $locales; do
    for words in list "list --group model.arch" "compare 1 2" "metrics --plot 1" "token list"; do
        # shellcheck disable=SC2086 # several words
        in_locale $words
        report "$(($(wc -l <"$work/out") < 1 || $(LC_ALL=C grep -c '[^ -~]' "$work/out")))" "trainctl $words in the locale $locale is ASCII" "$(cat "$work/out")"
    done
    is "$(in_locale list && LC_ALL=C grep -c '~  failed' "$work/out")" 1 "what is cut ends with ~"
done
# ------------------------------------------------------------------ no terminal

whole() { # TEXT ARGUMENT...
    "$trainctl" "${@:2}" >"$work/out" 2>&1
    grep -qF -- "$1" "$work/out"
    report $? "trainctl ${*:2} to a file has all of it" "expected: $1" "$(cat "$work/out")"
}
COLUMNS=60
export COLUMNS
whole "$long-c fail=1 rank=0 at=2" list
whole "$reason" list
whole "$reason" show 3
whole "$long-a eval=1" compare 1 2
whole "$target" notify list
whole "$target" audit
whole $token token list
whole 'all there: 17 of 1024 are missing, the first is train-00017-of-01024' nodes
whole 'lr.base=0.05 optimizer.momentum=0.9 optimizer.weight_decay=0.0001' sweep show 1
whole 'remove require_token = no from traind.conf and restart traind: access is then granted by the unix socket and by tokens' doctor
done_testing
