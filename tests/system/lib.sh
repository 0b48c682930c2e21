# For tests of the programs without a daemon: tests/tap.sh, a private folder $work, a small real data set, runs of train-worker under
# mpirun.
# shellcheck shell=bash disable=SC2034
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"
private_folder
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1

# shellcheck source=tests/system/idx.sh.inc
. "$top_srcdir/tests/system/idx.sh.inc"

# worker RANKS JOB RUN [OPTION...]: the exit status is mpirun's; sets $output
worker() {
    local ranks=$1 job=$2 run=$3
    shift 3
    output=$(mpirun --oversubscribe --bind-to none -np "$ranks" "$top_builddir/tests/bin/train-worker" \
        --job "$job" --run-dir "$run" "$@" 2>&1)
}

# small_job [JQ-EXPRESSION]: writes $work/small.json, a job of two ranks on the images of small_data ($data), with changes
small_job() {
    small_data
    jq -n --arg data "$work/data" '{model: {arch: "resnet18", width: 0.0625, classes: 10, image_size: 32}, data: {train: "\($data)/train"},
        cluster: {workers_per_node: 2, threads_per_worker: 1}, batch_per_worker: 8, steps: 4, lr: {warmup_epochs: 0}} |
        '"${1:-.}" >"$work/small.json"
}

# job FILE JQ-EXPRESSION: writes the small job with changes
job() {
    jq "$2" "$work/small.json" >"$1"
}

# trial RANKS NAME JQ-EXPRESSION [OPTION...]: runs the small job with changes, $work/NAME.json, in $work/NAME
trial() {
    job "$work/$2.json" "$3"
    worker "$1" "$work/$2.json" "$work/$2" "${@:4}"
}

# fails_with STATUS NAME: passes if the exit status is not 0
fails_with() {
    report $(($1 == 0)) "$2" "exit status $1"
}

# failed_event RUN: of its first attempt
failed_event() {
    jq -c 'select(.type == "failed")' "$1/attempt-1/events.jsonl"
}
