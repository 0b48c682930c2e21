#!/usr/bin/env bash
# The trace of a real run on two ranks, opened in a real viewer: the Performance panel of Chromium's DevTools, which every
# Chromium has (Debian's is built without chrome://tracing).
# shellcheck source=tests/system/lib.sh
. "${top_srcdir:?run it by make check}/tests/system/lib.sh"
# shellcheck source=tests/browser/lib/install.sh.inc
. "$top_srcdir/tests/browser/lib/install.sh.inc"
needs npm node chromium
small_data

cat >"$work/job.json" <<JSON
{"model": {"arch": "resnet18", "width": 0.0625, "classes": 10, "image_size": 32}, "data": {"train": "$work/data/train"},
 "cluster": {"workers_per_node": 2, "threads_per_worker": 1}, "batch_per_worker": 8, "steps": 3,
 "lr": {"warmup_epochs": 0}, "checkpoint": {"disable": true}, "profile": {"steps": [2, 3]}}
JSON
worker 2 "$work/job.json" "$work/run" || {
    printf '%s\n' "$output" | sed 's/^/# /'
    echo "not ok 1 - a traced run on two ranks"
    echo "1..1"
    exit 1
}
browser_install "$work/browser"
HOME=$work/browser node "$work/browser/lib/trace.mjs" "$work/run/attempt-1/trace.json"
