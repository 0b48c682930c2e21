#!/usr/bin/env bash
# What the daemon and its workers write is for the daemon's user alone, whatever the umask; members of socket_group reach
# the unix socket, and nothing else.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../runs.sh.inc"
export OMP_NUM_THREADS=1
umask 022
printf '%s\n' "worker = $top_builddir/tests/bin/train-worker" "slots = 2" "mpirun = $work/mpirun" >"$work/traind.conf"
printf '%s\n' '#!/bin/bash' "ulimit -Sc >'$work/core-limit'" 'exec mpirun "$@"' >"$work/mpirun"
chmod +x "$work/mpirun"
[ "$(ulimit -Hc)" = 0 ] || ulimit -Sc 1024

open_to_others() { find "$state" "$@" -perm /077 ! -type l; }
train() { # sets $id
    jq -n '{name: "small", cluster: {workers_per_node: 2, threads_per_worker: 1}, data: {train: "synthetic", eval: "synthetic", train_images: 64},
        batch_per_worker: 4, steps: 4, model: {arch: "resnet18", width: 0.0625, image_size: 32, classes: 10}, checkpoint: {every_steps: 2},
        eval: {predictions: true}, profile: {steps: [1, 2]}, lr: {warmup_epochs: 0}}' >"$work/job.json"
    call -d "@$work/job.json" /v1/jobs
    id=$(jq -r '.id // 0' <<<"$body")
}

start_daemon --config "$work/traind.conf"
train
ok "a training succeeds" wait_state "$id" succeeded
ok "its exports are written" eventually test -s "$state/jobs/$id/mllog.txt"
ok "there are checkpoints, logs and events" test -s "$state/jobs/$id/checkpoints/step-00000004/model.safetensors" -a -s "$state/jobs/$id/attempt-1/stdout.log"
is "$(open_to_others)" "" "no file and no folder of the state is open to others"
is "$(stat -c %a "$state" "$state/traind.db" "$state/traind.db-wal" "$state/jobs" | xargs)" "700 600 600 700" "folders 0700, files 0600"
core_limit() { awk '/^Max core file size/ { print $5 }' "/proc/$1/limits"; }
is "$(core_limit "$daemon")" 0 "the daemon, which holds tokens, leaves no core dump"
is "$(cat "$work/core-limit")" "$(ulimit -Sc)" "what it starts has the limit of its caller"
ok "stop" stop_daemon

# As an older version left it.
chmod -R go+rX "$state"
before=$(wc -l <"$work/daemon.log")
start_daemon --config "$work/traind.conf"
like "$(tail -n +$((before + 1)) "$work/daemon.log")" "the state folder $state was accessible to other users \(mode 0755\); its mode is now 0700, and its contents are private" \
    "a state folder that is open is closed, and the log says so"
is "$(open_to_others ! -name listen)" "" "with all in it"
ok "stop" stop_daemon

# Somebody's folder with other things in it.
mine=$state
state=$work/other
mkdir -m 755 "$state"
echo x >"$state/notes"
before=$(wc -l <"$work/daemon.log")
start_daemon --config "$work/traind.conf"
like "$(tail -n +$((before + 1)) "$work/daemon.log")" "warning: the state folder $state is accessible to other users \(mode 0755\); this is not changed" "a folder that is not traind's alone is left as it is"
is "$(stat -c %a "$state" "$state/notes" | xargs)" "755 644" "with what is in it"
is "$(open_to_others -mindepth 1 ! -name notes)" "" "what traind makes there is closed"
ok "stop" stop_daemon
state=$mine

# A rank on another machine, which ssh or Slurm starts with an umask of theirs.
jq '.cluster.workers_per_node = 1' "$work/job.json" >"$work/one.json"
run_by_hand() { # FOLDER [VARIABLE]
    mkdir -p "$1" && env "${@:2}" mpirun --allow-run-as-root --oversubscribe -np 1 "$top_builddir/tests/bin/train-worker" --job "$work/one.json" --run-dir "$1" >"$work/out" 2>&1
}
mkdir -m 700 "$work/remote"
ok "a rank that the daemon's launcher started" run_by_hand "$work/remote" TRAIND_ATTEMPT_DIR="$work/remote/attempt-1"
is "$(find "$work/remote" -mindepth 1 -perm /077)" "" "closes its files"
ok "one started by hand" run_by_hand "$work/by-hand"
is "$(stat -c %a "$work/by-hand/attempt-1/events.jsonl")" 644 "keeps its user's umask"

# ------------------------------------------------------------------ another user

if [ "$(id -u)" != 0 ] || ! command -v setpriv >/dev/null; then
    skip "members of socket_group reach the socket" "needs root and setpriv"
    done_testing
    exit
fi
uid=$(id -u nobody) group=$(id -gn nobody) gid=$(id -g nobody)
chmod 711 "$work" # mktemp's is closed
as_member() { setpriv --reuid "$uid" --regid "$gid" --clear-groups "$@"; }
as_stranger() { setpriv --reuid "$uid" --regid 12345 --clear-groups "$@"; }
healthy() { "$1" curl -sS --unix-socket "$state/traind.sock" -o /dev/null -w '%{http_code}' http://localhost/healthz 2>/dev/null; }
echo "socket_group = $group" >>"$work/traind.conf"
start_daemon --config "$work/traind.conf"
is "$(stat -c '%a %g' "$state")" "710 $gid" "with socket_group the folder may be passed through by the group"
is "$(healthy as_member)" 200 "a member connects to the socket in it"
is "$(healthy as_stranger)" 000 "another user does not"
ok "a member does not see the folder" test -z "$(as_member ls "$state" 2>/dev/null)"
for file in traind.db jobs/1/job.json listen; do
    ok "nor read $file" test -z "$(as_member cat "$state/$file" 2>/dev/null | tr -d '\0')"
done
is "$(open_to_others -mindepth 1 ! -name traind.sock)" "" "nothing in it is open to others"
ok "stop" stop_daemon
sed -i '/^socket_group/d' "$work/traind.conf"
start_daemon --config "$work/traind.conf"
is "$(stat -c %a "$state")" 700 "without it the folder is closed again"
is "$(healthy as_member)" 000 "and a member does not connect"
ok "stop" stop_daemon
mkdir -m 755 "$work/run"
printf '%s\n' "socket_group = $group" "socket = $work/run/traind.sock" >>"$work/traind.conf"
start_daemon --config "$work/traind.conf"
is "$(stat -c %a "$state")" 700 "with the socket elsewhere too"
is "$(as_member curl -sS --unix-socket "$work/run/traind.sock" -o /dev/null -w '%{http_code}' http://localhost/healthz)" 200 "where a member connects"
ok "stop" stop_daemon
done_testing
