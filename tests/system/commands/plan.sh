#!/bin/bash
# trainctl plan: answers, exit codes, and messages about bad documents.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"
trainctl=$top_builddir/trainctl
TRAIND_PRESETS=${top_srcdir:?is set by make check}/etc/presets
export TRAIND_PRESETS NO_COLOR=1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

verdict() { # verdict STATUS WORDS
    report "$1" "$2" "$(cat "$tmp/out" "$tmp/err")"
}

# plan EXIT-CODE WORDS DOCUMENT PATTERN... : each pattern is found in the output, on either stream
plan() {
    local code=$1 words=$2 document=$3 status=0 pattern
    shift 3
    printf '%s' "$document" | "$trainctl" plan "${options[@]}" - > "$tmp/out" 2> "$tmp/err"
    [ $? = "$code" ] || status=1
    # as printed, and with wrapped lines joined
    { cat "$tmp/out" "$tmp/err"; cat "$tmp/out" "$tmp/err" | tr -s ' \n' ' '; } >"$tmp/all"
    for pattern; do
        grep -qE -- "$pattern" "$tmp/all" || status=1
    done
    verdict $status "$words"
}

surfsara='{"preset": "surfsara-24k", "data": {"train": "/not/here"}}'

options=(--train-images 1280000)
plan 0 "the 24K recipe as a table" "$surfsara" '^global_batch +24576' '^steps_per_epoch +52' \
    '^warmup_steps +260' '^train_steps +4680' '^start_lr +0.1 ' '^peak_lr +4.8 ' 'warning: .*half of the linearly scaled'
options=(--json --train-images 1280000)
plan 0 "the 24K recipe as JSON" "$surfsara" '"global_batch": 24576' '"peak_lr": 4.8,' '"start_lr": 0.1,'
options=(--explain --train-images 1281167)
plan 0 "each number explained, with N and the rounding" "$surfsara" '^train_steps = 4680' \
    'round\(steps_per_epoch x epochs\)' '4691.8 with steps_rounding exact' 'Source: SURFsara' "the recipe is for 1280000"
options=()
plan 3 "data that is not here: how to plan without it" "$surfsara" '/not/here' 'data.train_images'
mkdir -p "$tmp/shards"
touch "$tmp/shards/train-00000-of-00002"
plan 3 "a shard that is missing: what to set where nodes have their own" "{\"data\": {\"train\": \"$tmp/shards\"}}" \
    'train-00001-of-00002 is missing' 'data.locality to "node"'
! grep -q 'data.train_images' "$tmp/all"
verdict $? "and no advice to state how many there are"
plan 0 "a size in the document needs no data" \
    '{"data": {"train": "/not/here", "train_images": 9600, "eval": "/nor/here"}}' '^train_steps +9000' '/nor/here'
plan 0 "synthetic data has ImageNet's size" '{"data": {"train": "synthetic"}}' '^train_images +1281167'

plan 0 "variables of the ranks" '{"data": {"train": "synthetic"}, "cluster": {"env": {"OMP_WAIT_POLICY": "active", "KMP_BLOCKTIME": "1"}}}' \
    '^env +2 +OMP_WAIT_POLICY=active KMP_BLOCKTIME=1$' 'warning: cluster.env: KMP_BLOCKTIME .* no effect with that of GNU'
plan 2 "a variable with its own key" '{"data": {"train": "synthetic"}, "cluster": {"env": {"OMP_NUM_THREADS": "2"}}}' \
    '^trainctl: cluster.env.OMP_NUM_THREADS: .*is set by cluster.threads_per_worker'
options=(--explain)
plan 0 "variables explained" '{"data": {"train": "synthetic"}, "cluster": {"env": {"OMP_WAIT_POLICY": "active"}}}' \
    '^env = .*OMP_WAIT_POLICY=active' 'job_env_prefixes'
options=()

plan 0 "more workers than this machine has cores" \
    '{"data": {"train": "synthetic"}, "cluster": {"workers_per_node": 1000, "threads_per_worker": 100}, "batch_per_worker": 1}' \
    "the job needs 1000 x 100 = 100000 slots .*, but this machine has [0-9]+, so it would be rejected"
plan 0 "warm-up at a global batch below lr.base_batch" '{"data": {"train": "synthetic", "train_images": 1000}, "batch_per_worker": 32, "epochs": 2}' \
    'warm-up has no effect: it begins at the peak'

plan 2 "all problems at once, each with its key" \
    '{"learning_rate": 1, "cluster": {"nodes": -1}, "lr": {"decay": "linear"}}' \
    '^trainctl: the document has 4 problems:$' '^  learning_rate: .*did you mean "lr\.base"\?' '^  cluster\.nodes: must be an integer from 1 to 100000' \
    '^  lr\.decay: must be one of "poly"' '^  data\.train: is required'
plan 2 "a typo, an unknown precision and a path that is not there" '{"data": {"train": "/nope"}, "epohcs": 3, "precision": "int8"}' \
    '^  epohcs: .*did you mean "epochs"' '^  precision: must be one of' '^  data\.train: .*/nope'
plan 0 "many sizes by epoch" '{"data": {"train": "synthetic"}, "model": {"image_size": {"from": 88, "to": 176, "ramp": [36, 72], "multiple": 4}}}' '^image_sizes .*88 to 176 .*23 sizes, from step 493765 to step'
plan 0 "sizes by epoch" '{"data": {"train": "synthetic"}, "model": {"image_size": [[0, 160], [45, 192]]}}' '^image_sizes .*160 to 192 .*192 from step 600525'
plan 0 "batches that fill the memory" \
    '{"data": {"train": "synthetic"}, "model": {"image_size": [[0, 128], [16, 160]]}, "batch_per_worker": 64, "batch_schedule": "fill", "epochs": 18}' \
    '^phase 1 +192 +images a step, 96 a worker, of 128 pixels, epochs 0 to 16: 106752' '^phase 2 +128 +images a step, 64 a worker, of 160'
plan 2 "batches that change within an epoch" '{"data": {"train": "synthetic"}, "model": {"image_size": [[0, 128], [1.5, 160]]}, "batch_schedule": "fill"}' \
    '^trainctl: batch_schedule: .*give model.image_size whole epochs, or set steps_rounding to "exact"'
plan 2 "a schedule of sizes that goes backwards, all of it at once" \
    '{"data": {"train": "synthetic"}, "model": {"image_size": [[0, 192], [5, 160], [4, 20]]}, "epohcs": 1}' \
    '^  model\.image_size.1.?: goes back to 160 pixels after 192' '^  model\.image_size.2.?: goes back to epoch 4 after epoch 5' \
    '^  model\.image_size.2.?: must end with a size, an integer from 28 to 1024' '^  epohcs: .*did you mean "epochs"'
plan 2 "nodes 0" '{"data": {"train": "synthetic"}, "cluster": {"nodes": 0}}' '^trainctl: cluster\.nodes: .*from 1 to 100000, not 0'
plan 2 "nodes 10^9" '{"data": {"train": "synthetic"}, "cluster": {"nodes": 1000000000}}' '^trainctl: cluster\.nodes: .*not 1000000000'
plan 2 "a number JSON does not have" '{"data": {"train": "synthetic"}, "lr": {"base": 1e400}}' 'line 1'
plan 2 "NaN" '{"data": {"train": "synthetic"}, "lr": {"base": NaN}}' 'line 1'
plan 2 "a batch larger than the data" '{"data": {"train": "x", "train_images": 50}}' \
    '^trainctl: batch_per_worker: makes a global batch of 96, but there are 50 training images'
plan 2 "an unknown preset" '{"preset": "surfsara", "data": {"train": "synthetic"}}' '^trainctl: preset: .*did you mean "surfsara-24k"'
plan 2 "a truncated document" '{"data": {"tra' 'line 1'
plan 2 "an empty document" '' '^trainctl: standard input is empty; '
plan 2 "a list" '[1]' 'must be a JSON object'
options=(--json)
plan 2 "problems as JSON" '{"lr": {"bas": 1}, "data": {"train": "synthetic"}}' '"pointer":"/lr/bas"' '"suggestion":"/lr/base"' '"detail":"lr\.bas: '
options=(--train-images many)
plan 2 "a wrong number of images" "$surfsara" '"many" is not a number of images'
options=()

{ printf '{"data": {"train": "synthetic"}, "name": "'; head -c 1100000 /dev/zero | tr '\0' x; printf '"}'; } > "$tmp/huge"
"$trainctl" plan "$tmp/huge" > "$tmp/out" 2> "$tmp/err"
[ $? = 2 ] && grep -q 1048576 "$tmp/err"
verdict $? "a document over 1 MiB"
head -c 100000 /dev/zero | tr '\0' '[' > "$tmp/deep"
"$trainctl" plan "$tmp/deep" > "$tmp/out" 2> "$tmp/err"
[ $? = 2 ] && grep -q '100000 levels' "$tmp/err"
verdict $? "a document nested 100000 levels deep"
"$trainctl" plan "$tmp/missing" > "$tmp/out" 2> "$tmp/err"
[ $? = 3 ] && grep -q "$tmp/missing" "$tmp/err"
verdict $? "a file that is not there"
done_testing
