#!/usr/bin/env bash
# A series of STEPS (10 million) steps: how long the daemon takes to make its buckets, once, and to answer with 1000 points.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../api/runs.sh.inc"
start_runs
submit "steps=1 step_ms=0"
wait_state "$id" succeeded
stop_daemon
sql "pragma synchronous = off; insert into metric_unfilled values ($id);
    with recursive n(i) as (select 2 union all select i + 1 from n where i < ${STEPS:-10000000})
    insert into step_metric select $id, i, i / 5004.0, 1.7e9 + i, 7.0 / i, 0.1, 211.5 + i % 97, 240.1, 0.1, 80.5, 150.2, 3.0, 5.5,
        1.0 + i % 101, i % 2 from n" >/dev/null
SECONDS=0
"$traind" --state "$state" --listen 127.0.0.1:0 --config "$work/traind.conf" >>"$work/daemon.log" 2>&1 &
daemon=$!
rm -f "$state/listen"
until [ -s "$state/listen" ]; do sleep 0.2; done
url=$(cat "$state/listen")
echo "buckets made in $SECONDS s; $(du -m "$state/traind.db" | cut -f1) MB"
for query in 'names=loss&points=1000' 'points=1000' 'names=loss,lr&points=2000' 'names=loss&points=1000&from=1234567' 'names=loss&points=1000&format=csv'; do
    printf '%s: ' "$query"
    for _ in 1 2 3 4 5; do
        curl -sS -o "$work/body" -w '%{time_total} ' "$url/v1/jobs/$id/metrics?$query"
    done
    echo s
done
