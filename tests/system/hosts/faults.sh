#!/usr/bin/env bash
# What happens to a job on two hosts when a rank is killed or stopped, when Open MPI's daemon on the other host is killed, and when the
# link to that host is cut, for a while or for good: found in time, told apart, nothing left over, and the job goes on. Prints TAP.
# shellcheck disable=SC2154,SC2317
# shellcheck source=tests/system/hosts/hosts.sh.inc
. "$(dirname "$0")/hosts.sh.inc"
hosts_up 2
small_data
start_hosts "slots = 4" "stall_seconds = 10"
two=$(jq -nc --arg a "$h1" --arg b "$h2" '{nodes: 2, hosts: [$a, $b], interface: "eth0"}')
once='{"steps": 100000, "restart": {"max": 0}, "checkpoint": {"disable": true}, "data": {"train": "synthetic", "train_images": 96},
       "model": {"arch": "resnet18", "width": 0.25, "image_size": 32, "classes": 10}}'

# break_it WHAT COMMAND: a job that trains on both hosts is broken by the command
break_it() {
    train "$two" "$once"
    ok "$1: a job trains" eventually has_events "$id" 2
    "${@:2}"
    broken=$SECONDS
}
# fails_within SECONDS REGEX NAME
fails_within() {
    ok "$3: the job fails" wait_state "$id" failed
    report $((SECONDS - broken > $1)) "... within $1 s" "$((SECONDS - broken)) s"
    like "$(job "$id" reason)" "$2" "... and says why"
    ok "... nothing is left on either host" eventually nothing_left
}
nothing_left() {
    [ -z "$(on_host "$h1" 'train-worker .*--job')$(on_host "$h2" 'train-worker .*--job')$(on_host "$h2" orted)" ] &&
        [ -z "$(find "${TMPDIR:-/tmp}/ompi.$h1".* -name 'pid.*' 2>/dev/null)" ] # of an mpirun that was killed
}
kill_on() { # SIGNAL PID
    like "$2" '^[0-9]+$' "its process is found"
    kill "-$1" "$2"
}

if [ "${TRAIND_TEST_QUICK:-no}" = no ]; then
break_it "a rank is killed" true
kill_on KILL "$(worker_on "$h2" 3)"
fails_within 60 "^rank 3 on $h2 was ended by signal 9 \(SIGKILL" "a rank is killed"

break_it "Open MPI's daemon is killed" true
kill_on KILL "$(on_host "$h2" 'bin/orted ')"
fails_within 60 "^host $h2 does not answer any more" "Open MPI's daemon is killed"

fi
break_it "a rank is stopped" true
kill_on STOP "$(worker_on "$h2" 2)"
fails_within 60 "^rank 2 on $h2 is stopped by a signal: no step ended for [0-9]+ s" "a rank is stopped"

if [ "${TRAIND_TEST_QUICK:-no}" = no ]; then
break_it "rank 0 is stopped" true
kill_on STOP "$(worker_on "$h1" 0)"
fails_within 60 "^rank 0 on $h1 is stopped by a signal" "rank 0 is stopped"

break_it "a link is cut for 3 s" "$net" link "$lab" "$h2" down
sleep 3
"$net" link "$lab" "$h2" up
before=$(job "$id" step)
ok "it goes on" eventually has_events "$id" $((before + 3))
is "$(job "$id" attempt) $(job "$id" state)" "1 running" "in the same attempt"
"$net" link "$lab" "$h2" down
broken=$SECONDS
ok "the link is cut for good: the job fails" wait_state "$id" failed
report $((SECONDS - broken > 60)) "... within 60 s" "$((SECONDS - broken)) s"
like "$(job "$id" reason)" "^host $h2 does not answer" "... and names the host"
no_ranks_left() { [ -z "$(on_host "$h2" 'train-worker .*--job')" ]; }
ok "the ranks there end by themselves, while it is cut off" eventually no_ranks_left
"$net" link "$lab" "$h2" up
fi

train "$two" '{"steps": 60, "checkpoint": {"every_steps": 2, "keep": 2}, "restart": {"max": 2},
    "model": {"arch": "resnet18", "width": 0.25, "stem": "small", "image_size": 32, "classes": 10}}'
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
