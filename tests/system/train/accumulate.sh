#!/usr/bin/env bash
# accumulate_steps: the gradients of several batches make one update.
# shellcheck source=tests/system/lib.sh
. "${top_srcdir:?run it by make check}/tests/system/lib.sh"
small_job '.steps = 3 | .lr = {warmup_epochs: 0.5, scaling: "none", base: 0.001} | .checkpoint.disable = true'

# of RUN FIELD: the numbers of all step events
of() {
    jq -s -c "[.[] | select(.type == \"step\") | .$2]" "$1/attempt-1/events.jsonl"
}

# near A B TOLERANCE: two lists, number by number
near() {
    jq -n --argjson a "$1" --argjson b "$2" --argjson far "$3" \
        '($a | length) == ($b | length) and ([$a, $b] | transpose | all((.[0] - .[1] | fabs) <= $far * (.[1] | fabs)))'
}

worker 2 "$work/small.json" "$work/two"
is $? 0 "two workers, a batch each"
trial 1 one '.cluster.workers_per_node = 1 | .accumulate_steps = 2'
is $? 0 "one worker, two batches a step"
is "$(jq .global_batch "$work/one/plan.json")" 16 "the global batch is the same"
is "$(of "$work/one" loss | jq '.[0]')" "$(of "$work/two" loss | jq '.[0]')" \
    "the first loss is the mean over the same two batches, to the last digit"
one=$(of "$work/one" grad_norm) two=$(of "$work/two" grad_norm)
is "$(near "$(jq -c '.[:1]' <<<"$one")" "$(jq -c '.[:1]' <<<"$two")" 1e-4)" true "the first gradient is the same ($one, $two)"
one=$(of "$work/one" loss) two=$(of "$work/two" loss)
is "$(near "$one" "$two" 2e-3)" true "and so are the losses of the steps ($one, $two)"
is "$(of "$work/one" step)" "[1,2,3]" "a step event an update"

# ---- a batch that fails after the first one of a step
cp -r "$work/data" "$work/torn"
truncate -s -10 "$work/torn/train/train-00001-of-00002"
job "$work/torn.json" ".data.train = \"$work/torn/train\" | .accumulate_steps = 3 | .batch_per_worker = 16 | .data.shuffle = false"
worker 2 "$work/torn.json" "$work/torn-run"
like "$(failed_event "$work/torn-run")" 'train-00001-of-00002.*[0-9]{3,}' "a bad record in a later batch of a step ends the run by name"

done_testing
