#!/usr/bin/env bash
# 200 streams of all events, 20 of them deaf besides, while two jobs write a step a millisecond each or as fast as they can.
# Prints events a second, what each stream got and what is stored, and the daemon's memory and processor time.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../api/runs.sh.inc"
start_runs
for _ in 1 2; do
    submit "steps=${STEPS:-10000} step_ms=${STEP_MS:-1}" '{"workers_per_node": 1, "threads_per_worker": 1}'
done
wait_state 1 running
before=$(sql 'select max(id) from job_event')
"$top_builddir/tests/api/stream_client" "${url##*:}" "/v1/events?after=$before" "${STREAMS:-200}" 20 4 >"$work/got"
echo "streams, each with events, sum of ids, out of order:"
cut -d' ' -f1-3 "$work/got" | sort | uniq -c
echo "stored: $(sql "select count(*), sum(id) from job_event where id > $before" | tr '|' ' ')"
sql "select printf('%.0f events/s', count(*) / (max(t) - min(t))) from job_event where type = 'step'"
grep -E 'VmHWM|VmRSS' "/proc/$daemon/status"
awk '{ printf "%.1f s of processor time\n", ($14 + $15) / 100 }' "/proc/$daemon/stat"
