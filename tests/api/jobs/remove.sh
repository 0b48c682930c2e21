#!/usr/bin/env bash
# Long runs are removed while the daemon is killed at random moments (6 runs; make check-long: 300): a job is whole or gone, what is left
# of it goes in the end, the other jobs are as they were, and its id is not given again. TRAIND_TEST_KILLS runs, from the seed TRAIND_TEST_SEED.
# shellcheck source=tests/api/kill.sh.inc
. "$(dirname "$0")/../kill.sh.inc"
rounds=${TRAIND_TEST_KILLS:-6}
seed_kills "$rounds"
steps=6000

write_script "$work/mpirun" <<'END'
#!/bin/sh
exit 1
END

rows() { # ID: events, steps, buckets, and whether something is noted to be left
    sql "select (select count(*) from job_event where job_id = $1), (select count(*) from step_metric where job_id = $1),
         (select count(*) from metric_bucket where job_id = $1), (select count(*) from removal where job_id = $1)"
}

# An ended job, with the rows that $steps steps leave: in place of hours of training. Starts the daemon anew.
make_run() {
    submit "long" '{"workers_per_node": 1, "threads_per_worker": 1}'
    wait_state "$id" failed || return
    kill_daemon
    sql "with recursive n (i) as (values (1) union all select i + 1 from n where i < $steps)
         insert into job_event (job_id, attempt, seq, t, type, body)
             select $id, 1, 1000 + i, 1.7e9 + i, 'step', json_object('step', i, 'loss', 1.0 / i) from n;
         insert into step_metric (job_id, step, t, loss)
             select job_id, seq - 1000, t, 0.5 from job_event where job_id = $id and seq > 1000;
         insert into metric_bucket (job_id, level, bucket, rows, step, t, metrics)
             select job_id, 1, step, 1, step, t, zeroblob(416) from step_metric where job_id = $id and step % 8 = 0"
    start_again "$address"
}

all_gone() {
    [ "$(rows "$1")" = "0|0|0|0" ] && [ ! -e "$state/jobs/$1" ] && [ ! -e "$state/jobs/.removed-$1" ]
}

# As a client sees it, and as it is stored: there with all its steps and its folder, or not there.
whole_or_gone() {
    local there all="*|$steps|$((steps / 8))|0"
    there=$(sql "select count(*) from job where id = $1")
    call "/v1/jobs/$1"
    case $status in
    200) # shellcheck disable=SC2053
        [[ $there = 1 && $(rows "$1") = $all && -s $state/jobs/$1/job.json ]] ;;
    404) [ "$there" = 0 ] && [ ! -e "$state/jobs/$1" ] ;;
    *) false ;;
    esac
}

# Asks for its removal, and kills the daemon soon after. The longer it has been tried, the later.
remove_and_kill() { # ID TRY
    local client
    curl -s -o "$work/removed" -X DELETE "$url/v1/jobs/$1" &
    client=$!
    sleep "$(awk -v ms=$((RANDOM % (60 + 20 * $2))) 'BEGIN { print ms / 1000 }')"
    kill_daemon
    wait "$client"
    case $(rows "$1") in
    "0|0|0|1") last=$((last + 1)) ;;
    *"|1") middle=$((middle + 1)) ;;
    esac
}

start_runs "mpirun = $work/mpirun"
address=${url#http://}
make_run
other=$id
ok "a job that stays has ended" in_state "$other" failed
stays=$(rows "$other")
newest=$other again='' broken='' kills=0 middle=0 last=0 round=0

# ------------------------------------------------------------------ what a removal is, without a kill

make_run
newest=$id
call -X DELETE "/v1/jobs/$id"
want 200 "a job is removed"
call "/v1/jobs/$id"
want 404 "it is not found any more"
for part in events metrics evals log archive; do
    call "/v1/jobs/$id/$part"
    want 404 "nor are its $part"
done
call "/v1/events?after=0&limit=10000"
json "[.events[] | select(.job == $id)] | length" 0 "nor is it in the events of all jobs"
call "/v1/jobs"
json "[.jobs[].id | select(. == $id)] | length" 0 "nor in the list"
ok "what is left of it goes" eventually all_gone "$id"
ok "the log says when" eventually grep -q "job $id: removal completed" "$work/daemon.log"

# ------------------------------------------------------------------ a long one, beside a backup

# Small changes that are answered until COMMAND says that there is no more to wait for.
changes_until() { # COMMAND...
    changed=0
    until "$@"; do
        call -X PATCH -H 'Content-Type: application/json' -d "{\"note\": \"change $changed\"}" "/v1/jobs/$other"
        [ "$status" = 200 ] || return
        changed=$((changed + 1))
    done
}

few=$steps steps=500000
make_run
steps=$few newest=$id
backup_ended() { ! kill -0 "$backup" 2>/dev/null; }
curl -sS --unix-socket "$socket" -o "$work/backup.db" http://localhost/v1/backup &
backup=$!
call -X DELETE "/v1/jobs/$id"
want 200 "a job of 500,000 events is removed while a backup is made"
ok "meanwhile the jobs can be changed" changes_until all_gone "$id"
ok "many times: no transaction takes all of it" test "$changed" -ge 20
changes_until backup_ended
wait "$backup"
is "$? $(sqlite3 "$work/backup.db" 'pragma integrity_check; select count(*) >= 1 from job')" $'0 ok\n1' "the backup is whole"
rm "$work/backup.db"
stays=$(rows "$other") # each change is an event of it

# ------------------------------------------------------------------ kills

while [ "$round" -lt "$rounds" ] && [ -z "$broken" ]; do
    round=$((round + 1))
    make_run || { broken="job $id did not end"; break; }
    [ "$id" -gt "$newest" ] || again="$again $id"
    newest=$id
    status=200 try=0
    while [ "$status" = 200 ]; do
        try=$((try + 1)) kills=$((kills + 1))
        remove_and_kill "$id" "$try"
        start_again "$address"
        whole_or_gone "$id" || { broken="job $id: status $status, rows $(rows "$id"), $(ls -A "$state/jobs" | tr '\n' ' ')"; break 2; }
    done
    eventually all_gone "$id" || broken="job $id: rows $(rows "$id") are left, $(ls -A "$state/jobs" | tr '\n' ' ')"
done
echo "# $kills kills, $middle of them in the middle of the rows, $last behind them"
is "$broken" "" "behind each kill a job is whole or gone, and what is left of it goes"
is "$again" "" "no id is given again"
ok "kills came in the middle of the rows" test "$middle" -gt 0
is "$(rows "$other")" "$stays" "the job that stays has all its rows"
is "$(sql "select count(*) from removal")" 0 "nothing is noted any more"
is "$(sql "pragma integrity_check")" ok "the database is whole"

# ------------------------------------------------------------------ a folder that cannot be removed

# What a mount point, or a folder that may not be written, keeps from being removed.
get_stuck() { # FOLDER
    mkdir "$1" && touch "$1/file"
    if [ "$(id -u)" = 0 ]; then mount -t tmpfs none "$1" 2>/dev/null; else chmod 500 "$1"; fi
}

get_unstuck() { # FOLDER
    if [ "$(id -u)" = 0 ]; then umount "$1"; else chmod 700 "$1"; fi
}

make_run
if get_stuck "$state/jobs/$id/stuck"; then
    trap 'get_unstuck "$state/jobs/.removed-$id/stuck" 2>/dev/null; end_runs; clean_up' EXIT
    told() { [ "$(grep -c "job $id: cannot remove .*/jobs/.removed-$id" "$work/daemon.log")" = "$1" ]; }
    call -X DELETE "/v1/jobs/$id"
    want 200 "a job is removed whose folder cannot be"
    ok "the log says so" eventually told 1
    call "/v1/jobs/$id"
    want 404 "the job is gone"
    is "$(rows "$id")" "0|0|0|0" "so are its rows"
    kill_daemon
    start_again "$address"
    ok "the next start tries again" eventually told 2
    kill_daemon
    get_unstuck "$state/jobs/.removed-$id/stuck"
    start_again "$address"
    ok "until it can be removed" eventually all_gone "$id"
else
    skip "a folder that cannot be removed" "nothing can be mounted here"
fi
ok "the daemon stops in order" stop_daemon
done_testing
