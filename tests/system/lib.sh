# For tests of train-worker by itself: a private folder, a small real data set, runs under mpirun. Source it behind tap.sh.
# shellcheck shell=bash disable=SC2034
: "${top_srcdir:?}" "${top_builddir:?}"

work=$(mktemp -d)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1

# shellcheck source=tests/system/idx.sh.inc
. "$top_srcdir/tests/system/idx.sh.inc"

# worker RANKS JOB RUN [OPTION...]: the exit status is mpirun's; words go to $output
worker() {
    local ranks=$1 job=$2 run=$3
    shift 3
    output=$(mpirun --oversubscribe --bind-to none -np "$ranks" "$top_builddir/tests/bin/train-worker" \
        --job "$job" --run-dir "$run" "$@" 2>&1)
}

# job FILE JQ-EXPRESSION: the small job with changes
job() {
    jq "$2" "$work/small.json" >"$1"
}

# failed_event RUN: of its first attempt
failed_event() {
    jq -c 'select(.type == "failed")' "$1/attempt-1/events.jsonl"
}
