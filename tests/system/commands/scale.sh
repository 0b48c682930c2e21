#!/usr/bin/env bash
# trainctl scale: real runs on 1 and 2 workers, and what it refuses.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"
trainctl=$top_builddir/trainctl
work=$(mktemp -d)
export XDG_CACHE_HOME=$work/cache TMPDIR=$work/tmp NO_COLOR=1 TRAINCTL_SERVER=unix:$work/no-daemon
mkdir "$TMPDIR"
trap 'rm -rf "$work"' EXIT

echo '{"model": {"arch": "resnet18", "width": 0.0625, "image_size": 32, "classes": 10}, "data": {"train": "/nowhere"}, "batch_per_worker": 4,
    "cluster": {"workers_per_node": 2, "threads_per_worker": 1}}' >"$work/job.json"
scale() {
    output=$("$trainctl" scale "$@" 2>&1)
}

if [ "$(nproc)" -lt 2 ]; then
    more=--oversubscribe
fi
scale --workers 1,2 --steps 2 --json ${more:+"$more"} "$work/job.json"
is $? 0 "one and two workers, strong and weak"
is "$(jq -c '[.strong, .weak | .[] | [.workers, .batch_per_worker, .global_batch]]' <<<"$output")" \
    '[[1,8,8],[2,4,8],[1,4,4],[2,4,8]]' "strong keeps the global batch, weak that of a worker"
is "$(jq '[.strong, .weak | .[] | .images_per_sec > 0 and .predicted.low < .predicted.value and
    (.efficiency * .workers / .speedup - 1 | fabs) < 1e-9] | all' <<<"$output")" true "each point was measured and predicted"
is "$(jq '[.strong, .weak | .[0] | .efficiency == 1 and (.error | fabs) < 0.01] | all' <<<"$output")" true \
    "the first point is what the others are measured by"
echo "# $(jq -c '[.strong, .weak | .[] | {workers, images_per_sec, predicted: .predicted.value, error}]' <<<"$output")"
is "$(ls -A "$TMPDIR")" "" "nothing is left"

scale --workers 1 --weak --steps 1 "$work/job.json"
like "$output" '^weak scaling, constant batch per worker' "weak alone, as a table"
scale --workers 1,2 --steps 1 --plot ${more:+"$more"} "$work/job.json"
like "$output" '^images/s by workers, log axes$' "--plot draws the speed"
like "$output" '^efficiency in % by workers$' "and the efficiency"
is "$(grep -cE '(\||│|┤).*[sw]' <<<"$output" | awk '{ print ($1 >= 4) }')" 1 "with a letter for each way"
scale --workers $(($(nproc) + 1)) --weak "$work/job.json"
is $? 2 "more workers than slots are refused"
like "$output" 'or --oversubscribe' "unless asked for"
scale --workers 3 --strong --oversubscribe "$work/job.json"
like "$output" 'global batch of 8, which 3 workers cannot share evenly' "a batch that cannot be shared out"
scale --workers 1,x "$work/job.json"
is $? 2 "workers that are no numbers"
scale "$work/job.json"
like "$output" 'missing worker counts' "no workers at all"
done_testing
