#!/usr/bin/env bash
# What happens to a job on two hosts when a rank is killed or stopped, when Open MPI's daemon on the other host is killed, and when the
# link to that host is cut, for a while or for good: found in time, told apart, nothing left over, and the job goes on. Prints TAP.
# shellcheck source=tests/system/hosts/hosts.sh.inc
. "$(dirname "$0")/hosts.sh.inc"
hosts_up 2
worker=tests/paced/train-worker
small_data
once='{"steps": 100000, "restart": {"max": 0}, "checkpoint": {"disable": true}, "data": {"train": "synthetic", "train_images": 96},
       "model": {"arch": "resnet18", "width": 0.0625, "image_size": 32, "classes": 10}}'

# break_it WHAT: a job that trains on both hosts, to be broken; sets $enough, the seconds in which that must be found
break_it() {
    local began slow
    # It ends where a rank gets no processor time for longer than stall_seconds.
    for _ in 1 2 3 4 5; do
        began=$SECONDS
        train "$two" "$once"
        eventually trains_or_failed 2
        has_events "$id" 2 && break
    done
    ok "$1: a job trains" has_events "$id" 2
    slow=$((SECONDS - began)) # what is done in 5 s elsewhere
    enough=$((slow > 5 ? 60 + 10 * slow : 60))
    broken=$SECONDS
}
trains_or_failed() { has_events "$id" "$1" || in_state "$id" failed; } # EVENTS
# fails_soon REGEX NAME
fails_soon() {
    ok "$2: the job fails" wait_state "$id" failed
    report $((SECONDS - broken > enough)) "... within $enough s" "$((SECONDS - broken)) s"
    like "$(job "$id" reason)" "$1" "... and says why"
    ok "... nothing is left on either host" eventually nothing_left
}
nothing_left() {
    [ -z "$(on_host "$h1" 'train-worker .*--job')$(on_host "$h2" 'train-worker .*--job')$(on_host "$h2" '(orted|prted)')" ] &&
        [ -z "$(find "${TMPDIR:-/tmp}/ompi.$h1".* -name 'pid.*' 2>/dev/null)" ] # of an mpirun that was killed
}
kill_on() { # SIGNAL PIDS
    like "$2" '^[0-9]+' "its process is found"
    xargs kill "-$1" <<<"$2"
}

if [ "${TRAIND_TEST_QUICK:-no}" = no ]; then
# ---- what is no fault: by a daemon that is patient, as packets that were lost are sent again only seconds after the link is back
start_hosts "slots = 4" "stall_seconds = 300"
# Of a connection with Open MPI's daemon nothing was heard for 4 of the 5 s after which the other host is asked whether it is there: the
# worst moment to cut the link.
asks_soon() {
    ip netns exec "$h2" ss -Htnopi state established | tr '\n' ' ' | sed 's/users:/\n/g' |
        sed -n '/"\(orted\|prted\)"/ { s/ lastrcv:\([0-9]*\) lastack:\([0-9]*\) .*/\n\1 \2/; s/.*\n//p }' |
        awk '{ quiet = $1 < $2 ? $1 : $2; due = due || (quiet > 3900 && quiet < 4600) } END { exit !due }'
}
cut_for_3_s() { # fails if it was for longer, as this script got no processor time: then Open MPI may end the job
    local began
    eventually asks_soon
    began=${EPOCHREALTIME/[.,]/}
    "$net" link "$lab" "$h2" down
    sleep 3
    "$net" link "$lab" "$h2" up
    [ $((${EPOCHREALTIME/[.,]/} - began)) -lt 4000000 ]
}
for _ in {1..20}; do
    break_it "a link is cut for 3 s"
    cut_for_3_s && break
    call -X POST "/v1/jobs/$id/cancel"
    wait_state "$id" 'cancelled|failed'
done
before=$(job "$id" step)
eventually trains_or_failed $((before + 3))
ok "it goes on" has_events "$id" $((before + 3))
is "$(job "$id" attempt) $(job "$id" state) $(job "$id" reason)" "1 running null" "in the same attempt"
call -X POST "/v1/jobs/$id/cancel"
ok "and ends when it is told to" wait_state "$id" cancelled
stop_daemon
fi

# ---- what is one
start_patient 20 "slots = 4"
if [ "${TRAIND_TEST_QUICK:-no}" = no ]; then
break_it "a rank is killed"
kill_on KILL "$(worker_on "$h2" 3)"
fails_soon "^rank 3 on $h2 was ended by signal 9 \(SIGKILL" "a rank is killed"

break_it "Open MPI's daemon is killed"
kill_on KILL "$(on_host "$h2" 'bin/(orted|prted) ')"
fails_soon "^host $h2 does not answer any more" "Open MPI's daemon is killed"

fi
break_it "a rank is stopped"
kill_on STOP "$(worker_on "$h2" 2)"
waits=$(worker_on "$h1" 1)
sleep 2 # it has come to where it waits
before=$(ticks "$waits") began=${EPOCHREALTIME/[.,]/}
sleep 5
used=$((($(ticks "$waits") - before) * 1000000 / $(getconf CLK_TCK))) waited=$((${EPOCHREALTIME/[.,]/} - began))
ok "a rank that waits $waited us for one of another host uses less than a twentieth of a core: $used us" test $((20 * used)) -lt $waited
fails_soon "^rank 2 on $h2 is stopped by a signal: no step ended for [0-9]+ s" "a rank is stopped"

if [ "${TRAIND_TEST_QUICK:-no}" = no ]; then
break_it "rank 0 is stopped"
kill_on STOP "$(worker_on "$h1" 0)"
fails_soon "^rank 0 on $h1 is stopped by a signal" "rank 0 is stopped"

break_it "a link is cut for good"
"$net" link "$lab" "$h2" down
broken=$SECONDS
ok "the link is cut for good: the job fails" wait_state "$id" failed
report $((SECONDS - broken > enough)) "... within $enough s" "$((SECONDS - broken)) s"
like "$(job "$id" reason)" "^host $h2 does not answer" "... and names the host"
no_ranks_left() { [ -z "$(on_host "$h2" 'train-worker .*--job')" ]; }
ok "the ranks there end by themselves, while it is cut off" eventually no_ranks_left
"$net" link "$lab" "$h2" up
fi

train "$two" '{"steps": 40, "checkpoint": {"every_steps": 2, "keep": 2}, "restart": {"max": 2},
    "model": {"arch": "resnet18", "width": 0.0625, "stem": "small", "image_size": 32, "classes": 10}}'
ok "a job with checkpoints trains" eventually has_events "$id" 3
"$net" link "$lab" "$h2" down
ok "a host is lost: it goes on without it" wait_state "$id" succeeded
like "$(job "$id" reason)" "^complete after [12] restarts; the first failure: host $h2 does not answer" "and says what had happened"
call "/v1/jobs/$id/events?limit=1000"
resumed=$(jq -c '[.events[] | select(.type == "resume")][0]' <<<"$body")
is "$(jq -c '[.before.world_size, .after.world_size, .before.global_batch, .after.global_batch]' <<<"$resumed")" "[4,2,16,8]" "with the old and the new numbers"
is "$(jq -c '.cluster | [.nodes, .hosts]' "$state/jobs/$id/job.json")" "[1,[\"$h1\"]]" "the host is no longer in its document"
"$net" link "$lab" "$h2" up
ok "nothing is left, also on the host that is back" eventually nothing_left
ok "the daemon stops in order" stop_daemon
done_testing
