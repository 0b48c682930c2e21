#!/usr/bin/env bash
# train-worker --self-check: its findings about the machine, its scratch and data sets, and what it blames.
# shellcheck source=tests/system/lib.sh
. "${top_srcdir:?run it by make check}/tests/system/lib.sh"

check() { # ARGUMENT...: sets $output, $code
    code=0
    output=$("$top_builddir/tests/bin/train-worker" --self-check "$@" 2>"$work/err") || code=$?
}
has() { # JQ EXPECTED NAME
    is "$(jq -cr "$1" <<<"$output" 2>&1)" "$2" "$3"
}

small_data
cores=$(env -u OMP_NUM_THREADS nproc)

# ------------------------------------------------------------------ this machine

check --json --scratch "$work" --data "$work/data"
is "$code" 0 "a fit machine"
has .outcome fine "a message says so"
has '[.gflops, .memory_gb_per_sec, .clock_ghz, .cores, .memory_bytes, .memory_free_bytes, .seconds, .t, .core_types[].gflops, .scratch.path] | all(. != null and . != 0)' true \
    "speeds, memory and time are measured"
has '[.core_types[].cores] | add' "$cores" "each core is of one type"
has .cores "$cores" "all of them are used"
has .kind "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)" "the processor is named"
has .mpi "$(sed -n 's/.*(Open MPI) \(.*\)/Open MPI v\1/p' <<<"$(mpirun --version)")" "so is the MPI library, without starting it"
has '.version' "$("$top_builddir/tests/bin/train-worker" --version | cut -d' ' -f2)" "and the version of the worker"
like "$(jq -r '.data[0].manifest' <<<"$output")" '^[0-9a-f]{32}$' "the digest of the data set's manifest"
manifest=$(jq -r '.data[0].manifest' <<<"$output")
has '[.data[0].shards, .data[0].images, .data[0].ok]' '[2,96,true]' "its shards and images"
has '[.checks[].check]' '["GEMM","bandwidth","frequency","load","versions","BLAS","memory","clock","scratch","data"]' "a line each"
has '[.checks[] | select(.ok | not)] | length' 0 "nothing is wrong"

check --data synthetic --data "$work/data/train"
is "$code" 0 "without --json, two data sets"
like "$output" '^ok +GEMM +[0-9.]+ GFLOP/s on [0-9]+ cores?; one alone [0-9.]+' "GEMM as a sentence"
like "$output" '^ok +data +synthetic' "synthetic data need no look"
like "$output" "^ok +data +$work/data/train: 2 shards, 96 images, manifest $manifest" "a role's folder has the manifest above it"

OMP_NUM_THREADS='' taskset -c 0 "$top_builddir/tests/bin/train-worker" --self-check --json >"$work/one"
is "$(jq .cores "$work/one")" 1 "on one core where no more is allowed"
taskset -c 0 sh -c 'while :; do :; done' &
busy=$!
taskset -c 0 "$top_builddir/tests/bin/train-worker" --self-check --json >"$work/one"
taskset -c 0 "$top_builddir/tests/bin/train-worker" --self-check >"$work/lines"
kill $busy
is "$(jq '.load > 0' "$work/one")" true "others that compute there are noticed"
like "$(cat "$work/lines")" "^warn +load +[0-9]+ other threads? computed meanwhile" "and warned of"

# ------------------------------------------------------------------ staged data

"$top_builddir/tests/bin/train-prep" stage --from "$work/data" --to "$work/staged" --node 1 --nodes 2 >/dev/null
check --json --data "$work/staged"
is "$code" 0 "a node's part of a data set"
has '[.data[0].shards, .data[0].images]' '[1,48]' "is known as such"

# ------------------------------------------------------------------ what is wrong, and whose fault

check --json --data "$work/none"
is "$code" 6 "data that are not there"
has '[.outcome, .data[0].ok]' '["data",false]' "are the data's fault"
like "$(jq -r '.checks[] | select(.ok | not) | .found, .advice' <<<"$output")" "no data set at $work/none" "the folder is named"
like "$(jq -r '.checks[] | select(.ok | not) | .advice' <<<"$output")" 'mounted' "with advice"
cp -r "$work/data" "$work/damaged"
echo x >>"$work/damaged/train/train-00001-of-00002"
check --data "$work/damaged"
is "$code" 6 "a shard of another size than the manifest's"
like "$output" "^BAD +data +the shards in $work/damaged/train do not have the names and sizes" "a message says so"
: >"$work/damaged/train/train-00000-of-00002"
rm "$work/damaged/manifest.json"
check --data "$work/damaged"
is "$code" 0 "a shard of 0 bytes, as writers leave it that had no records for it, is fine"
: >"$work/damaged/train/train-00001-of-00002"
check --data "$work/damaged"
is "$code" 6 "shards of 0 bytes alone"
like "$output" 'train-0000[01]-of-00002 is empty' "are named"
check --scratch "$work/none" --data "$work/data"
is "$code" 7 "scratch that is not there"
like "$output" "^BAD +scratch +cannot write in $work/none: No such file" "is named"
check --json --scratch "$work/none" --data "$work/none"
is "$code" 7 "scratch goes before data"
has .outcome scratch "in the outcome too"
if mkdir "$work/full" && mount -t tmpfs -o size=64k tmpfs "$work/full" 2>/dev/null; then
    head -c 1M /dev/zero >"$work/full/x" 2>/dev/null
    check --scratch "$work/full"
    umount "$work/full"
    is "$code" 7 "a full scratch"
    like "$output" "^BAD +scratch +(cannot write in $work/full: No space|0\.0 GB free)" "a message says so"
else
    skip "a full scratch" "mount is not allowed"
fi

# ------------------------------------------------------------------ data that another has looked at

lines=$("$top_builddir/tests/bin/train-worker" --self-check --lines --data "$work/data" --data "$work/none" --data synthetic)
is "$?" 6 "--lines: data that are not there"
is "$lines" "ok 2 0 96 $manifest
bad there is no data set at $work/none
ok 0 0 0 -" "a line each"
check --json --found - --data "$work/here" --data "$work/there" --data synthetic <<<"$lines"
is "$code" 6 "--found takes them"
has '[.data[] | [.path, .ok, .shards, .manifest]]' \
    "[[\"$work/here\",true,2,\"$manifest\"],[\"$work/there\",false,0,null],[\"synthetic\",true,0,null]]" "for the paths that are asked for"
for line in 'ok 1 2 3' 'ok 1 2 3 x' 'ok -1 2 3 -' 'fine' 'ok 1 2 3 - ' ''; do
    check --json --found - --data "$work/here" <<<"$line"
    has '[.outcome, .data[0].ok, .gflops > 0]' '["data",false,true]' "'$line' is no answer"
done

# ------------------------------------------------------------------ usage

for wrong in '--lines --data x' '--self-check --lines --json' '--self-check --found' '--json' '--data x' '--scratch x' '--self-check x' '--self-check --data' \
    '--self-check --data a --data b --data c --data d --data e'; do
    "$top_builddir/tests/bin/train-worker" $wrong >"$work/out" 2>&1
    is "$?" 2 "train-worker $wrong is refused"
done

done_testing
