#!/usr/bin/env bash
# doc/imagenet.md with all that it needs but ImageNet: tars of its shape (make_imagenet), of which an Nth (SCALE) is made, and each of
# the page's commands as it stands. The shards of two Slurm nodes are on a disk of each; the job is longer than its allocations, and a
# node dies under it. Prints a table of what each part took, and leaves it in REHEARSAL_DIR as rehearsal.txt and rehearsal.json.
#
#   SCALE          200; make rehearsal: 1, that is 1,281,167 + 50,000 images
#   REHEARSAL_DIR  where all is made and kept, so that the next run goes on (default: a folder that is removed). Of a full rehearsal with
#                  the default SIDE 25 GB
#   SIDE           short side of the pictures, pixels (default: 32, from SCALE 20 on upwards 96)
#   JOB            a jq filter over the job, such as '.epochs = 4'
#   TIME_LIMIT     the job's cluster.time_limit (default: a minute, more on a busy machine; or an hour)
# shellcheck source=tests/system/slurm/slurm.sh.inc
. "${top_srcdir:?is set by make check}/tests/system/slurm/slurm.sh.inc"
# shellcheck source=tests/system/slurm/pages.sh.inc
. "$top_srcdir/tests/system/slurm/pages.sh.inc"
# shellcheck source=tests/rehearsal/font.sh.inc
. "$top_srcdir/tests/rehearsal/font.sh.inc"

scale=${SCALE:-200}
small=yes
[ "$scale" -ge 20 ] || small=
side=${SIDE:-$([ $small ] && echo 32 || echo 96)}
# What the page trains takes days here: a smaller network, for some epochs.
if [ $small ]; then
    network='{arch: "resnet18", image_size: 32, width: 0.0625}' training='{batch_per_worker: 32, epochs: 2}'
else
    network='{arch: "resnet18", image_size: 64, width: 0.5}' training='{batch_per_worker: 128, epochs: 4}'
fi
if [ -n "${REHEARSAL_DIR:-}" ]; then
    mkdir -p "$REHEARSAL_DIR" || exit 1
    at=$(cd "$REHEARSAL_DIR" && pwd -P)
else
    at=$work/rehearsal
fi
mkdir -p "$at"/{figures,shared,scratch/n1,scratch/n2}

# ------------------------------------------------------------------ figures

# step NAME COMMAND...: what it took goes to figures/NAME.json, its output beside it
step() {
    local name=$1
    shift
    /usr/bin/python3 "$top_srcdir/tests/rehearsal/measured.py" "$at/figures/$name.json" "$@" >"$at/figures/$name.out" 2> >(tee "$at/figures/$name.err" >&2)
}
# An earlier run in REHEARSAL_DIR has done it, and its figures are there.
done_before() { # NAME FILE
    [ -e "$2" ] && [ "$(jq .status "$at/figures/$1.json" 2>/dev/null)" = 0 ]
}
within() { # SECONDS COMMAND...
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        tap_sleep 0.5
    done
}
# Long enough for all that is not trained for; a training gets days.
soon=300
long=$([ $small ] && echo 3600 || echo 400000)

# ------------------------------------------------------------------ the tars, the cluster

done_before make "$at/tars/ILSVRC2012_img_train.tar" ||
    ok "tars of ImageNet's shape are made, 1:$scale" step make "$maker" "${font[@]}" --scale "$scale" --side "$side" "$at/tars"
train_images=$(jq 'select(.file | test("train")) | .images' "$at/figures/make.out")
eval_images=$(jq 'select(.file | test("val")) | .images' "$at/figures/make.out")
is "$train_images $eval_images" "$(((1281167 + scale / 2) / scale)) $((50000 / scale))" "they hold as many images"

# The allocation must last until the job has trained, however busy the machine is: the time of the tars shows how busy.
slow=$(jq '.seconds / .processor_seconds / 2 | round | [., 1] | max' "$at/figures/make.json")
limit=${TIME_LIMIT:-$([ $small ] && echo "$slow:00" || echo 1:00:00)}
soon=$((soon + 120 * slow))

mkdir -p "$work/bin" "$work/home" "$work/here"
for program in trainctl train-prep; do
    printf '#!/bin/sh\nexec %s "$@"\n' "$top_builddir/$program" >"$work/bin/$program"
done
chmod +x "$work"/bin/*
export PATH=$work/bin:$PATH HOME=$work/home OMP_NUM_THREADS=1
echo SlurmdTimeout=25 >"$work/slurm.conf" # a dead node is noticed so soon
export SLURM_CLUSTER_SCRATCH=$at/scratch
SLURM_CLUSTER_CONF=$work/slurm.conf start_cluster 2
start_slurm_daemon "slurm.options = --no-requeue"
export TRAINCTL_SERVER=unix:$socket
unset TRAINCTL_TOKEN
cd "$work/here" || exit 1

# ------------------------------------------------------------------ what the commands of the page become

# All ranks at once, as at the start of a job: the first time, each node makes its index.
open_everywhere() { # NAME
    local node role part pids=() pid status=0
    for node in 0 1; do
        for role in train validation; do
            part=()
            [ $role = validation ] || part=("$node" 2)
            on_node n$((node + 1)) "$top_builddir/tests/rehearsal/open_data" "$at/scratch/imagenet" $role \
                "${part[@]}" >"$at/figures/$1-$node-$role.json" &
            pids+=($!)
        done
    done
    for pid in "${pids[@]}"; do wait "$pid" || status=1; done
    return $status
}
copies_are_settled() {
    [ -z "$(find "$at"/scratch/n[12]/imagenet -newermt '-4 seconds' -print -quit)" ]
}
opened() { # NAME JQ: over what open_everywhere has written
    jq -s "$2" "$at"/figures/"$1"-?-train.json "$at"/figures/"$1"-?-validation.json
}

convert_data() { # COMMAND...
    done_before convert "$at/shared/imagenet/manifest.json" || step convert "$@" --json
}
stage_data() { # COMMAND...: on each node
    local node
    for node in 0 1; do
        step "stage-$node" nsenter --mount --target "$(node_process n$((node + 1)))" "${@//NODE/$node}" --json || return
    done
}

submit_job() { # COMMAND...
    "$@" >"$work/submitted" 2>&1 || { cat "$work/submitted" && return 1; }
    id=1
    [ "$(job 1 state)" != null ]
}

# ------------------------------------------------------------------ accidents

attempt_is() { [ "$(sql "select attempt from job where id = $id")" -ge "$1" ]; }
steps_in() { # ATTEMPT: that the daemon knows of
    sql "select count(*) from job_event where job_id = $id and attempt = $1 and type = 'step'"
}
has_steps() { [ "$(steps_in "$1")" -ge "$2" ]; }
has_checkpoint() { [ -n "$(sql "select 1 from job_event where job_id = $id and attempt = $1 and type = 'checkpoint' limit 1")" ]; }
time_is_over() { [ -e "$state/jobs/$id/attempt-1/time-limit-reached" ]; }
# The most memory that a rank has had.
rank_memory() {
    local process most=0 now
    for process in $(rank_process "$id" '[0-9]*'); do
        now=$(awk '/^VmHWM:/ { print 1024 * $2 }' "/proc/$process/status" 2>/dev/null)
        [ "${now:-0}" -le "$most" ] || most=$now
    done
    echo "$most" >"$at/figures/rank-memory"
}

# The allocation ends before the job does. In small the job would be done first: its ranks wait until the time is over.
outlive_allocation() {
    local process
    ok "it trains" within $long has_steps 1 1
    is "$(slurm "$id" nodes)" "n[1-2]" "on both nodes"
    ok "it writes a checkpoint" within $long has_checkpoint 1
    rank_memory
    if [ $small ]; then
        for process in $(rank_process "$id" '[0-9]*'); do kill -STOP "$process"; done
        ok "the time of its allocation passes" within $soon time_is_over
        for process in $(rank_process "$id" '[0-9]*'); do kill -CONT "$process"; done
    fi
    ok "it goes on in another allocation" within $long attempt_is 2
    like "$(sql "select json_extract(body, '\$.reason') from job_event where job_id = $id and type = 'state' and json_extract(body, '\$.state') = 'queued'")" \
        "^Slurm's job [0-9]+ reached its time limit after step [0-9]+; continues in another allocation" "and gives the reason"
    is "$(job "$id" restarts)" 0 "which is no restart"
}
# While the job trains, in whatever attempt that is by now.
attempt() { sql "select attempt from job where id = $id"; }
trains() { has_steps "$(attempt)" "$1"; }
lose_node() {
    local lost
    ok "it trains in the second" within $long trains 3
    lost=$(attempt)
    cluster kill n2
    ok "a node dies, and the attempt ends" within $soon has_restarted
    cluster revive n2
    ok "when the node is back the job goes on" within $long goes_on "$lost"
    like "$(jq -r 'select(.type == "run_start") | .resumed_step // 0' "$state/jobs/$id/attempt-$((lost + 1))/events.jsonl")" "^[1-9]" \
        "from a checkpoint"
}
has_restarted() { [ "$(sql "select restarts from job where id = $id")" -ge 1 ]; }
goes_on() { # LOST
    attempt_is $(($1 + 1)) && trains 1
}

# ------------------------------------------------------------------ the page

run() { # LINE COMMAND [WHAT IT PRINTS]: tests/system/slurm/imagenet.sh sees to those that neither read the data nor train with them
    local words status=0
    read -r -a words <<<"$2"
    case $2 in
    'train-prep convert '*)
        ok "$page:$1: $2" convert_data "${words[@]}"
        is "$(jq -r '"\(.train.images) \(.train.shards | length) \(.validation.images) \(.validation.shards | length) \(.classes | length)"' "$at/shared/imagenet/manifest.json")" \
            "$train_images 1024 $eval_images 128 1000" "all images are in the shards"
        # A page of memory for each header of a tar would be 5 GB at 1:1.
        ok "in less than 1 GB of memory" [ "$(jq .peak_bytes "$at/figures/convert.json")" -lt 1000000000 ]
        ;;
    'train-prep audit '*)
        ok "$page:$1: $2" step audit "${words[@]}" --json
        # Of 50 images a class for validation, a hundredth is less than one.
        is "$(jq -c '[.checks[] | select(.status != "ok") | .check]' "$at/figures/audit.out")" \
            "$([ "$eval_images" -ge 1000 ] && echo '[]' || echo '["classes (validation)"]')" "nothing is wrong with them"
        ;;
    'train-prep stage '*)
        ok "$page:$1: $2" stage_data "${words[@]}"
        on_node n1 find "$at/scratch/imagenet" -name '.traind-index-*' -delete
        on_node n2 find "$at/scratch/imagenet" -name '.traind-index-*' -delete
        ok "the copies are old enough for an index of them to be kept" within $soon copies_are_settled
        ok "both nodes open what they have" open_everywhere first
        is "$(opened first '[.[].had_index] | any')" false "without an index"
        ok "and again" open_everywhere again
        is "$(opened again '[.[].had_index] | all')" true "with the index"
        is "$(opened again "[.[:2][].images] | add")" "$train_images" "together they have all training images"
        is "$(opened again "[.[2:][].images] == [$eval_images, $eval_images]")" true "and each all for validation"
        ;;
    'trainctl submit scaled.json'*)
        ok "$page:$1: $2" submit_job "${words[@]}"
        outlive_allocation
        lose_node
        ok "it succeeds" within $long in_state "$id" 'succeeded|failed|cancelled'
        ;;
    'trainctl watch '*)
        trainctl watch 1 >"$work/watched" 2>&1 || status=$?
        report $status "$page:$1: $2" "$(tail -n 20 "$work/watched")"
        ;;
    esac
}
page=imagenet.md
sed -n '/^    \$ cat job.json/,/^    \$ trainctl/p' "$top_srcdir/doc/imagenet.md" | sed '1d;$d;s/^    //' >job.json
jq --arg at "$at/scratch/imagenet" --arg limit "$limit" --argjson train "$train_images" --argjson eval "$eval_images" \
    '.cluster += {nodes: 2, workers_per_node: 1, threads_per_worker: 1, time_limit: $limit} |
     .data += {train: "\($at)/train", eval: "\($at)/validation", train_images: $train, eval_images: $eval} |
     .model = '"$network | . + $training"' | .lr = {warmup_epochs: 0.5, base: 0.1, start: 0.01} | .eval = {every_epochs: 1, batch: 50} |
     .checkpoint = {every_steps: '"$([ $small ] && echo 5 || echo 500)"'} | '"${JOB:-.}" job.json >scaled.json
sed -e "s|DOWNLOADS|$at/tars|; s|/shared/imagenet|$at/shared/imagenet|g" \
    -e "s|--to /scratch/imagenet --node I --nodes 256|--to $at/scratch/imagenet --node NODE --nodes 2|" \
    -e "s|^    trainctl submit job.json|    trainctl submit scaled.json|" "$top_srcdir/doc/imagenet.md" >"$work/imagenet.md"
walk "$work/imagenet.md"
is "$walked" 10 "$page: ten commands"

is "$(job 1 state)" succeeded "the job of the page has trained"
is "$(job 1 restarts)" 1 "with one restart, for the node"
wanted=$(jq '.epochs' scaled.json)
is "$(sql "select count(*) from eval where job_id = 1")" "$wanted" "it was evaluated after each epoch"
is "$(sql "select distinct json_extract(body, '\$.images') from job_event where job_id = 1 and type = 'eval'")" "$eval_images" \
    "on all images"
steps=$(sql "select train_steps from job where id = 1")
is "$(sql "select count(distinct json_extract(body, '\$.step')) from job_event where job_id = 1 and type = 'step'")" "$steps" \
    "all its steps were done"
# shellcheck source=tests/rehearsal/table.sh.inc
. "$top_srcdir/tests/rehearsal/table.sh.inc"
ok "the figures are written" write_figures
ok "and shown" show_figures
ok "the daemon stops" stop_daemon
done_testing
