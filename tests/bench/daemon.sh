#!/usr/bin/env bash
# Speed of the daemon with many finished jobs in its store, on loopback: wrk shares the cores with it. Not a test.
#   tests/bench/daemon.sh [JOBS]        in the build folder; 100000 jobs, 5 s a row
. "$(dirname "$0")/../api/lib.sh" >/dev/null

jobs=${1:-100000}
seconds=${SECONDS_A_ROW:-5}
command -v wrk >/dev/null || { echo "wrk is needed: apt-get install wrk" >&2; exit 2; }
printf 'mpirun = /bin/true\nslots = 1\n' >"$work/traind.conf"

# ------------------------------------------------------------------ a store: one real job, copied

start_daemon --config "$work/traind.conf"
cat >"$work/job.json" <<'END'
{"name": "bench", "preset": "surfsara-24k", "data": {"train": "synthetic", "train_images": 1280000}, "cluster": {"workers_per_node": 1, "threads_per_worker": 1, "nodes": 1}, "steps": 4}
END
call -d "@$work/job.json" /v1/jobs
[ "$status" = 201 ] || { echo "the job was refused: $body" >&2; exit 1; }
curl -s -o /dev/null -X POST "$url/v1/jobs/1/cancel"
gone() { [ "$(curl -s "$url/v1/jobs/1" | jq -r .finished_at)" != null ]; }
eventually gone
stop_daemon
columns=$(sqlite3 "$state/traind.db" "select group_concat(name) from pragma_table_info('job') where name not in ('id', 'idempotency_key', 'run_dir')")
sqlite3 "$state/traind.db" "pragma synchronous = off;
    update job set state = 'succeeded', reason = 'done', step = train_steps, ttt_seconds = 60, top1 = 0.7, top5 = 0.9 where id = 1;
    with recursive n (i) as (select 2 union all select i + 1 from n where i < $jobs)
    insert into job (id, idempotency_key, run_dir, $columns) select i, 'key ' || i, '$state/jobs/' || i, $columns from n, job where job.id = 1;"
echo "store: $jobs jobs, $(du -m "$state/traind.db" | cut -f1) MiB"

# ------------------------------------------------------------------ start

rm -f "$state/listen"
began=$(date +%s%N)
"$traind" --state "$state" --listen 127.0.0.1:0 --config "$work/traind.conf" >>"$work/daemon.log" 2>&1 &
daemon=$!
until [ -s "$state/listen" ]; do sleep 0.005; done
url=$(cat "$state/listen")
curl -sf -o /dev/null "$url/readyz"
printf '%-28s %10s ms\n' "start to the first answer" $((($(date +%s%N) - began) / 1000000))

# ------------------------------------------------------------------ requests

row() { # NAME PATH [WRK ARGUMENT...]
    wrk -t1 -c16 -d"${seconds}s" --latency "${@:3}" "$url$2" >"$work/wrk" || cat "$work/wrk"
    printf '%-28s %10.0f a second, p99 %s, others than 2xx: %s\n' "$1" "$(awk '/Requests\/sec/ { print $2 }' "$work/wrk")" \
        "$(awk '$1 == "99%" { print $2 }' "$work/wrk")" "$(awk '/Non-2xx/ { n = $NF } END { print n + 0 }' "$work/wrk")"
}
row "GET /v1/jobs?limit=50" '/v1/jobs?limit=50'
row "GET /v1/jobs/ID" "/v1/jobs/$((jobs / 2))"
cat >"$work/post.lua" <<END
wrk.method = "POST"
wrk.body = io.open("$work/job.json"):read("*a")
END
row "POST /v1/jobs (durable)" /v1/jobs -s "$work/post.lua"
printf '%-28s %10s MiB\n' "memory at most" "$(awk '/VmHWM/ { printf "%.1f", $2 / 1024 }' "/proc/$daemon/status")"
kill_daemon
