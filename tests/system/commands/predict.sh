#!/usr/bin/env bash
# trainctl predict: its table, its choice, what it refuses; and the model against real runs with 1 and 2 ranks.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"
trainctl=$top_builddir/trainctl
work=$(mktemp -d)
export TRAIND_PRESETS=$top_srcdir/etc/presets XDG_CACHE_HOME=$work/cache NO_COLOR=1
export TRAINCTL_SERVER=unix:$work/no-daemon
trap 'rm -rf "$work"' EXIT

predict() {
    output=$("$trainctl" predict "$@" 2>&1)
}

echo '{"preset": "surfsara-24k", "data": {"train": "/nowhere", "train_images": 1281167}}' >"$work/s.json"

predict "$work/s.json"
is $? 3 "without a measurement there is no prediction"
like "$output" 'trainctl scale --weak --workers 2 FILE' "and explains how to measure"

predict --node-speed 79 --nodes 1,16,64,256,1024 --json "$work/s.json"
is $? 0 "a table for five numbers of nodes"
is "$(jq -c '[.points[].nodes]' <<<"$output")" "[1,16,64,256,1024]" "has a point for each"
is "$(jq '.points[3] | .images_per_sec.value > 18600 and .images_per_sec.value < 19600 and .images_per_second == .images_per_sec and .efficiency > 0.92 and .efficiency < 0.97' \
    <<<"$output")" true "libtraincomm's sum leaves 256 of SURFsara's nodes 94 % of their speed, as simulated (doc/scaling.md)"
is "$(jq '.points[4].efficiency > 0.98 * .points[3].efficiency' <<<"$output")" true "and 1,024 hardly less: nothing grows with their number"
is "$(jq '[.points[] | .ttt_seconds.low < .ttt_seconds.value and .ttt_seconds.value < .ttt_seconds.high] | all' <<<"$output")" \
    true "each time has a low and a high"
is "$(jq '[.points[] | (.node_hours.value - .nodes * .ttt_seconds.value / 3600 | fabs) < 1e-6] | all' <<<"$output")" true \
    "node-hours are nodes x hours"
is "$(jq -c '[.points[] | select(.marks | index("cheapest")) | .nodes]' <<<"$output")" "[1]" "one node is the cheapest"
is "$(jq '([.points[].ttt_seconds.value] | min) == (.points[] | select(.marks | index("fastest")) | .ttt_seconds.value)' <<<"$output")" \
    true "the fastest has the least time"
first=$output
predict --node-speed 79 --nodes 1,16,64,256,1024 --json "$work/s.json"
is "$output" "$first" "the same again"

predict --node-speed 79 --nodes 1 --set cluster.threads_per_worker=22 --set batch_per_worker=48 "$work/s.json"
like "$output" '22 threads per worker lose about [2-5] % of their speed to uneven shares of 48 images' "the loss of 22 threads is reported"
predict --node-speed 79 --nodes 1 --set cluster.threads_per_worker=22 --set batch_per_worker=2 --json "$work/s.json"
is "$(jq '.threads_keep > 0.6 and .threads_keep < 0.85' <<<"$output")" true "and that they lose more with 2 images"

predict --node-speed 79 --nodes 64,128,256,512 --deadline 3h "$work/s.json"
like "$output" 'choice: 256 nodes with a global batch of 24,576$' \
    "a deadline chooses the cheapest that keeps to it by the worse end of its band"
predict --node-speed 79 --nodes 64,128,256,512 --deadline 10min "$work/s.json"
like "$output" 'no candidate meets the deadline' "or says that there is none"
predict --node-speed 79 --nodes 1,16,64,256 --budget 480 --json "$work/s.json"
is "$(jq '.choice.nodes as $n | [.points[] | select(.nodes == $n)][0].node_hours.value <= 480' <<<"$output")" true "a budget is kept to"
predict --node-speed 79 --nodes 16,600,1024 --to-target --json "$work/s.json"
is "$(jq '.points[0].epochs.value > 33 and .points[0].epochs.value < 37 and .points[1].epochs.value > .points[0].epochs.value + 30' <<<"$output")" \
    true "--to-target: larger batches need more epochs"
like "$(jq -r '.points[2].problem' <<<"$output")" '98304 exceeds the largest' "and nothing is reported beyond the published batches"

predict --node-speed 79 --hop-us 1e6 --nodes 16,64,256,512 --target 75.9 "$work/s.json"
like "$output" 'more than [0-9]+ nodes hardly help, as larger batches need more epochs' \
    "--target: it names the number of nodes beyond which more do not help"
like "$output" 'no published batch is near' "and of which batches nothing was published nearby"
predict --node-speed 79 --target 120 "$work/s.json"
like "$output" 'accuracy in percent' "a target beyond 100 is refused"
predict --node-speed 79 --target 78 "$work/s.json"
like "$output" 'published for 75.9 % only' "and one that nothing was published of"

# Without a file the presets are compared.
presets() { # EXPRESSION of the presets on the first number of nodes
    jq -c ".nodes[0].presets | $1" <<<"$output"
}
predict --target 75.9 --nodes 16,8 --node-speed 536 --node-watts 900 --json
is $? 0 "presets are compared without a file"
is "$(jq -c '[.target, .nodes[].nodes]' <<<"$output")" "[0.759,16,8]" "on each number of nodes"
is "$(presets '[.[].preset] | sort')" "$(jq -cs 'sort' <<<"$(for f in "$TRAIND_PRESETS"/*.json; do
    if jq -e .top1 "$f" >/dev/null; then basename "$f" .json | jq -R .; fi
done)")" "all presets with a published accuracy are listed"
is "$(presets 'map(select(.top1 < 0.759) | [.problem == "its published accuracy is \(.top1 * 100 * 100 | round / 100) %", has("ttt_seconds")]) | unique')" "[[true,false]]" \
    "those that are below the target are left out, with the reason"
is "$(presets 'map(select(.top1 >= 0.759)) | [length > 3, all(.ttt_seconds.value > 0 and .problem == null and (.source | length > 0)), map(.ttt_seconds.value) == (map(.ttt_seconds.value) | sort)]')" \
    "[true,true,true]" "the others have a time and a source, the fastest first"
is "$(presets '.[:-1] | map(select(.top1 >= 0.759 and ((.kwh.value - 0.9 * .node_hours.value | fabs) > 1e-9 or (.node_hours.value - 16 * .ttt_seconds.value / 3600 | fabs) > 1e-9)))')" \
    "[]" "node-hours and energy are those of the time"
is "$(presets 'map(select(.preset == "intel-mlperf-3264"))[0] | [.global_batch, .epochs > 34 and .epochs < 36, .epochs == .epochs_at_224, (.ttt_seconds.value / 60 - 90 | fabs) < 8]')" \
    "[3264,true,true,true]" "Intel's run takes the epochs of its batch and, at its speed, about the 90 minutes predicted of its job"
is "$(presets 'map(select(.preset == "ffcv-40"))[0] | [.global_batch, .epochs, .epochs_at_224 > 21 and .epochs_at_224 < 23]')" "[1024,40,true]" \
    "a recipe with small images has the arithmetic of fewer epochs"
is "$(presets '[.[] | select(.preset == "goyal-8k" or .preset == "ffcv-40") | .ttt_seconds.value / .epochs_at_224] | (min / max) > 0.9')" true \
    "and the time of its arithmetic"
predict --target 75.5 --node-speed 536
like "$output" '16 +ffcv-24 +75.6 % +1,024 +24 +13.4 ' "a table, for 16 nodes"
like "$output" 'surfsara-24k +75 % .*its published accuracy is 75 %' "with the reasons"
like "$output" 'ffcv-24: FFCV \(Leclerc' "and the sources"
predict --target 75.9 --nodes 3 --node-speed 536 --json
like "$(presets 'map(select(.preset == "goyal-8k"))[0].problem')" "8192" "a batch that the nodes cannot share is a reason too"
predict --target 75.9 --set precision=bf16 --json
is "$(presets '.[0] | [.problem, .epochs_at_224 > 0, .ttt_seconds.value]')" '["no speed of resnet50 was measured at 224 pixels",true,null]' "without a speed the arithmetic is left"
predict --nodes 16
is $? 2 "without file and target there is nothing to predict"
like "$output" 'give a FILE, or an accuracy' "it says"
predict --target 75.9 --deadline 2h
like "$output" '^trainctl: --deadline needs a FILE' "the choice of nodes is for a file"
predict --target 75.9 --set lr.bases=1
is $? 2 "keys are checked"

predict --nodes 1,x "$work/s.json"
is $? 2 "nodes that are no numbers are a usage error"
predict --deadline soon "$work/s.json"
is $? 2 "so is a deadline that is no time"
predict --deadline 90 "$work/s.json"
is $? 2 "and one without a unit"
predict --node-speed fast "$work/s.json"
like "$output" '--node-speed must be a number from 1e-06 to 1e9' "and an invalid speed"
predict --node-speed 1e308 --nodes 1 "$work/s.json"
like "$output" '--node-speed must be a number from 1e-06 to 1e9, not "1e308"' "and one from which no finite number comes"
predict --to-target --node-speed 79 - <<<'{"data": {"train": "synthetic", "train_images": 100000}, "model": {"classes": 10}}'
like "$output" '^trainctl: --to-target: .*not for this job' "--to-target is about ImageNet"
predict --target 75.9 --node-speed 79 - <<<'{"data": {"train": "synthetic", "train_images": 100000}, "model": {"classes": 10}}'
like "$output" '^trainctl: --target: .*not for this job' "so is --target"
predict --node-speed 79 --nodes 64 - <<<'{"data": {"train": "synthetic", "train_images": 2048}, "cluster": {"threads_per_worker": 1}, "batch_per_worker": 32}'
like "$output" 'too few images: batch 4,096 of 2,048' "a batch beyond the images"
case $output in *uneven*) false ;; esac
is $? 0 "one thread loses nothing to uneven shares"

# Real runs: the speed with one rank and with two is predicted from what the other measured, and from itself.
small() {
    printf '{"model": {"image_size": 32}, "data": {"train": "synthetic", "train_images": 1000}, "batch_per_worker": 8,
        "lr": {"warmup_epochs": 0}, "epochs": 1, "cluster": {"workers_per_node": %d, "threads_per_worker": 1}}' "$1"
}
rate() {
    jq .images_per_sec <<<"$1"
}
predicted() { # WORKERS
    "$trainctl" plan --json - <<<"$(small "$1")" | jq .predicted.images_per_sec.value
}
error() { # PREDICTED MEASURED
    jq -rn --argjson p "$1" --argjson m "$2" '"predicted \($p), measured \($m) images/s: error \((1000 * ($p / $m - 1) | round) / 10) %"'
}
is "$(predicted 1)" null "nothing was measured yet"
right_size() {
    jq -en --argjson m "$(rate "$two")" --argjson p "$from_one" '$p > $m / 10 and $p < $m * 10' >/dev/null
}
for _ in 1 2 3 4 5; do # the machine may have become busy between the two
    rm -f "$work/cache/traind/speeds.jsonl"
    one=$("$trainctl" bench --image-size 32 --batch 8 --workers 1 --threads 1 --steps 8 --json)
    from_one=$(predicted 2)
    of_one=$(predicted 1)
    two=$("$trainctl" bench --image-size 32 --batch 8 --workers 2 --threads 1 --steps 8 --json)
    right_size && break
done
is "$(jq -n --argjson m "$(rate "$one")" --argjson p "$of_one" '(($p / $m - 1) | fabs) < 0.02')" true \
    "a bench is what the plan predicts from"
echo "# 1 rank: $(error "$(predicted 1)" "$(rate "$one")")"
echo "# 2 ranks from 1: $(error "$from_one" "$(rate "$two")")"
echo "# 2 ranks from 2: $(error "$(predicted 2)" "$(rate "$two")")"
# the machine may be busy: a bound that only a wrong model leaves
ok "two ranks from one: the right size" right_size
is "$(wc -l <"$work/cache/traind/speeds.jsonl")" 2 "both are in the cache"
echo "not json" >>"$work/cache/traind/speeds.jsonl"
is "$(jq -n --argjson m "$(rate "$two")" --argjson p "$(predicted 2)" '(($p / $m - 1) | fabs) < 0.02')" true \
    "a broken line of the cache is passed over"
done_testing
