#!/usr/bin/env bash
# Named pipes and folders where files are expected: refused by name at once, never waited for.
# shellcheck source=tests/system/lib.sh
. "${top_srcdir:?run it by make check}/tests/system/lib.sh"
small_job '.name = "pipes" | .model.stem = "small" | .cluster.workers_per_node = 1 | .steps = 1'
mkfifo "$work/pipe"

# ends WORDS NAME COMMAND...: fails with these words
ends() {
    local words=$1 name=$2 status
    shift 2
    timeout 600 "$@" >"$work/out" 2>&1
    status=$?
    is "$((status > 0 && status < 124))" 1 "$name: it ends with an error"
    like "$(cat "$work/out")" "$words" "$name: in words"
}

# fails WORDS NAME RUN
fails() {
    ends "$1" "$2" mpirun --oversubscribe --bind-to none -np 1 "$top_builddir/tests/bin/train-worker" --job "$work/changed.json" --run-dir "$work/$3"
}

ends 'pipe is a named pipe, not a regular file' "train-worker --job PIPE" \
    mpirun -np 1 "$top_builddir/tests/bin/train-worker" --job "$work/pipe" --run-dir "$work/r0"
job "$work/changed.json" ".model.init = \"$work/pipe\""
fails 'pipe is a named pipe, not a regular file' "model.init" r1
job "$work/changed.json" ".model.init = \"/dev/zero\""
fails '/dev/zero is a device, not a regular file' "model.init of a device" r2
cp -r "$work/data" "$work/piped"
rm "$work/piped/train/train-00001-of-00002"
mkfifo "$work/piped/train/train-00001-of-00002"
job "$work/changed.json" ".data.train = \"$work/piped/train\""
fails 'train-00001-of-00002 is a named pipe, not a regular file' "a shard" r3
mkdir -p "$work/classes/a"
mkfifo "$work/classes/a/1.jpg"
job "$work/changed.json" ".data.train = \"$work/classes\""
fails 'a/1.jpg is a named pipe, not a regular file' "a picture" r4

# What only helps is passed over: the index and the manifest are made again, or done without.
rm -f "$work"/data/train/.traind-index* "$work/data/manifest.json.was"
mkfifo "$work/data/train/.traind-index-train"
job "$work/changed.json" .
is "$(HOME=$work timeout 600 mpirun --oversubscribe --bind-to none -np 1 "$top_builddir/tests/bin/train-worker" --job "$work/changed.json" \
    --run-dir "$work/r5" >"$work/out" 2>&1; echo $?)" 0 "an index that is a pipe is no index"

ends 'train-00001-of-00002 is a named pipe, not a regular file' "train-prep stage" \
    "$top_builddir/tests/bin/train-prep" stage --from "$work/piped" --to "$work/scratch"
ends 'train-00001-of-00002 is a named pipe, not a regular file' "train-prep audit" "$top_builddir/tests/bin/train-prep" audit "$work/piped"
cp -r "$work/data" "$work/nomanifest"
rm "$work/nomanifest/manifest.json"
mkfifo "$work/nomanifest/manifest.json"
ends 'manifest.json is a named pipe, not a regular file' "a manifest" \
    "$top_builddir/tests/bin/train-prep" stage --from "$work/nomanifest" --to "$work/scratch"
ends 'is a named pipe, not a regular file' "trainctl plan PIPE" "$top_builddir/trainctl" plan "$work/pipe"
mkdir -p "$work/state"
mkfifo "$work/state/traind.db"
ends 'traind.db is a named pipe, not a database' "the database" "$top_builddir/traind" --state "$work/state" --listen 127.0.0.1:0

# What a shell hands over is read.
is "$(timeout 600 "$top_builddir/trainctl" plan --json <(cat "$work/changed.json") | jq .train_steps)" 1 "a document from <(command)"
done_testing
