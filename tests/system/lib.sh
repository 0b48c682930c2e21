# For tests of train-worker by itself: a private folder, a small real data set, runs under mpirun. Source it behind tap.sh.
# shellcheck shell=bash disable=SC2034
: "${top_srcdir:?}" "${top_builddir:?}"

work=$(mktemp -d)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1

fashion=/usr/share/datasets/fashion-mnist
[ -d $fashion ] || skip_all "needs the Debian package dataset-fashion-mnist"

# idx COUNT IMAGES LABELS: the first COUNT of a pair of IDX files
idx() {
    local count=$1 size
    size=$(printf '%08x' "$count")
    {
        printf '\x00\x00\x08\x03'
        printf '%b' "\\x${size:0:2}\\x${size:2:2}\\x${size:4:2}\\x${size:6:2}"
        zcat $fashion/"$2" | tail -c +9 | head -c $((8 + count * 784))
    } >"$work/idx/${2%.gz}"
    {
        printf '\x00\x00\x08\x01'
        printf '%b' "\\x${size:0:2}\\x${size:2:2}\\x${size:4:2}\\x${size:6:2}"
        zcat $fashion/"$3" | tail -c +9 | head -c "$count"
    } >"$work/idx/${3%.gz}"
}

# worker RANKS JOB RUN [OPTION...]: the exit status is mpirun's; words go to $output
worker() {
    local ranks=$1 job=$2 run=$3
    shift 3
    output=$(mpirun --oversubscribe --bind-to none -np "$ranks" "$top_builddir/train-worker" \
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

# small_data: 96 training and 50 test images of Fashion-MNIST as shards in $work/data
small_data() {
    mkdir "$work/idx"
    idx 96 train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz
    idx 50 t10k-images-idx3-ubyte.gz t10k-labels-idx1-ubyte.gz
    "$top_builddir/train-prep" convert --from idx --in "$work/idx" --out "$work/data" --shards 2 --eval-shards 1 >/dev/null 2>&1
}
