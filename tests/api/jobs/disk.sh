#!/usr/bin/env bash
# What jobs take on the disk: measured after checkpoints and at the end, shown, and freed by trainctl rm --older-than. Prints TAP.
# shellcheck disable=SC2119,SC2317
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../runs.sh.inc"
trainctl=$(realpath "$top_builddir/trainctl")
unset TRAINCTL_TOKEN
export NO_COLOR=1 LC_ALL=C.UTF-8 HOME=$work
start_runs "node_check_seconds = 0"
export TRAINCTL_SERVER=unix:$socket
one='{"workers_per_node": 1, "threads_per_worker": 1}'

files() { find "$state/jobs/$1" -type f -printf '%s\n' | awk '{ n += $1 } END { print n + 0 }'; }
measured() { [ "$(sql "select disk_bytes from job where id = $1")" = "$(files "$1")" ]; }
rm_old() { code=0; "$trainctl" rm --older-than "$@" >"$work/out" 2>&1 </dev/null || code=$?; }

submit "short steps=4" "$one"
ok "a job ends" wait_state "$id" succeeded
ok "its size is that of its files" eventually measured 1
submit "long steps=20 every=5 gate=12" "$one"
has_checkpoint() { [ -e "$state/jobs/$1/checkpoints/step-00000010" ]; }
ok "another has written checkpoints" eventually has_checkpoint 2
some() { [ "$(sql "select coalesce(disk_bytes, 0) > 0 from job where id = 2")" = 1 ]; }
ok "and is measured while it runs" eventually some
touch "$state/jobs/2/attempt-1/go"
ok "it ends" wait_state 2 succeeded
ok "and is measured again" eventually measured 2
submit "bad fail=1 rank=0 at=2" "$one" '{"tags": ["starred"]}'
ok "one fails" wait_state 3 failed
ok "and is measured too" eventually measured 3
submit "stays gate=1" "$one"
ok "one runs on" wait_state 4 running

call /v1/jobs
json .disk_bytes "$(($(files 1) + $(files 2) + $(files 3)))" "the list has the sum"
call '/v1/jobs?sort=disk_bytes&limit=1'
json '.jobs[0].id' 2 "the largest comes first"
json '.disk_bytes' "$(sql 'select bytes from disk')" "with the sum of all jobs"
call /v1/jobs?group=tag
json '.disk_bytes' "$(sql 'select bytes from disk')" "which groups have too"
is "$("$trainctl" list --columns id,disk_bytes --json | jq -c '[.jobs[] | [.id, .disk_bytes]]')" "[[4,null],[3,$(files 3)],[2,$(files 2)],[1,$(files 1)]]" "each has its own"
like "$("$trainctl" list)" ' [0-9.]+ KiB ' "trainctl list shows it"
like "$("$trainctl" show 2)" 'on disk +[0-9.]+ KiB' "trainctl show too"
for columns in 80 200; do
    /usr/bin/python3 "$top_srcdir/tests/api/client/terminal.py" $columns "$trainctl" list >"$work/out" 2>&1
    is "$(grep -c DISK "$work/out")" $((columns / 200)) "a terminal of $columns columns"
done
like "$(cat "$work/out")" 'all jobs together: [0-9.]+ KiB on disk' "and how much it is in all"
like "$("$trainctl" doctor --json | jq -r '.[] | select(.check == "jobs") | .found')" \
    '^[0-9.]+ KiB on disk$' "trainctl doctor has the sum"

# ------------------------------------------------------------------ trainctl rm --older-than

sql "update job set finished_at = finished_at - 8 * 86400 where id in (1, 2, 3)"
submit "new steps=4" "$one"
ok "one ends now" wait_state 5 succeeded
ok "and is measured" eventually measured 5
rm_old 7d --dry-run
is "$code" 0 "--dry-run"
like "$(cat "$work/out")" ' 2 +long steps=20 .* succeeded +8 d 0 h ago' "names the jobs and when they finished"
like "$(cat "$work/out")" '^2 jobs, [0-9.]+ KiB$' "and what they take"
is "$(sql 'select count(*) from job')" 5 "and removes none"
rm_old 7d
is "$code" 2 "without a terminal it wants --yes"
like "$(cat "$work/out")" 'use --yes' "and says so"
rm_old 7 --yes
is "$code" 2 "a time without a unit is refused"
rm_old 7d --state failed --yes
like "$(tail -n 1 "$work/out")" '^0 jobs, 0 bytes$' "the only failed one is starred and stays"
code=0
ANSWER=n /usr/bin/python3 "$top_srcdir/tests/api/client/terminal.py" 100 "$trainctl" rm --older-than 7d >"$work/out" 2>&1 || code=$?
is "$code" 1 "a person says no"
like "$(cat "$work/out")" '^Remove them\? \[y/N\] n$' "to the question"
like "$(tail -n 1 "$work/out")" ': nothing was removed$' "and nothing is"
is "$(sql 'select count(*) from job')" 5 "and all are there"
ANSWER=y /usr/bin/python3 "$top_srcdir/tests/api/client/terminal.py" 100 "$trainctl" rm --older-than 7d >"$work/out" 2>&1
is "$(sql 'select group_concat(id) from job')" 3,4,5 "and yes: the old ones go, and neither the starred nor the running one"
like "$(cat "$work/out")" 'Job 1 removed\.' "which is reported"
is "$(sql 'select bytes from disk')" "$(($(files 3) + $(files 5)))" "the sum is that of the others"
sql "update job set finished_at = finished_at - 9 where id = 5"
is "$("$trainctl" rm --older-than 5s --dry-run --json | jq -c '[.jobs[].id]')" '[5]' "--json has the jobs"
"$trainctl" rm >"$work/out" 2>&1
is $? 2 "rm of nothing"
"$trainctl" rm --state failed 1 >"$work/out" 2>&1
is $? 2 "--state without --older-than"
"$trainctl" rm --dry-run 5 >"$work/out" 2>&1
is $? 2 "--dry-run without it"
"$trainctl" rm --older-than 7d 1 >"$work/out" 2>&1
is $? 2 "--older-than with an ID"
is "$(sql 'select group_concat(id) from job')" 3,4,5 "which remove nothing"
# ------------------------------------------------------------------ jobs that ended under an older version

touch "$state/jobs/4/attempt-1/go"
ok "the last one ends" wait_state 4 succeeded
ok "and is measured" eventually measured 4
ok "the daemon stops" stop_daemon
sql "update job set disk_bytes = null"
rm -r "$state/jobs/3"
columns=$(sql "select group_concat(name) from pragma_table_info('job') where name not in ('id', 'run_dir', 'idempotency_key')")
for id in $(seq 101 112); do
    sql "insert into job (id, run_dir, $columns) select $id, 'jobs/$id', $columns from job where id = 5"
    cp -r "$state/jobs/5" "$state/jobs/$id"
    [ "$id" = 112 ] || sed -i "s/\"job\": *5,/\"job\":$id,/" "$state/jobs/$id/owner.json"
done
restart_runs
is_measured() { [ "$(sql 'select count(*) from job where disk_bytes is null')" = 2 ]; }
ok "they are measured in the background" eventually is_measured
is "$(sql 'select group_concat(id) from (select id from job where disk_bytes is null order by id)')" 3,112 "except those whose folder is missing, or of another job"
for id in 4 5 101 111; do ok "job $id by its files" measured $id; done
ok "the daemon stops" stop_daemon
done_testing
