#!/usr/bin/env bash
# trainctl watch on a terminal (tmux): what one sees, keys, a new size, a daemon that goes and comes back, and that the
# terminal is as it was, whatever ended the view. Prints TAP.
. "$(dirname "$0")/../runs.sh.inc"

command -v tmux >/dev/null || skip_all "tmux is not installed"
export TMUX_TMPDIR=$work # of its sockets
trainctl=$(realpath "$top_builddir/trainctl")
unset TRAINCTL_SERVER NO_COLOR TMUX

t() {
    tmux -L "traind-test-$$" -f /dev/null "$@"
}
trap 't kill-server 2>/dev/null; end_runs; clean_up' EXIT

screen() {
    t capture-pane -p
}
sees() { # REGEX
    screen | grep -qE -- "$1"
}
shows() { # REGEX NAME
    eventually sees "$1"
    report $? "$2" "expected: /$1/" "the screen:" "$(screen)"
}
turn=0
at_prompt() { # of the last command, not of the one before, which may still be on the screen
    eventually sees "^turn $turn$"
}
# terminal COMMAND: on a clean screen; "ready N" stands below when it has ended with exit code N
terminal() {
    turn=$((turn + 1))
    t send-keys "clear; $1; echo ready \$?; echo 'tu'rn $turn" Enter
}
has_size() { # ROWS COLUMNS
    [ "$(stty size -F "$(t display -p '#{pane_tty}')")" = "$1 $2" ]
}
resize() { # COLUMNS ROWS: tmux tells the terminal a moment later
    t resize-window -x "$1" -y "$2"
    eventually has_size "$2" "$1"
}
settings() { # the terminal's, from outside
    stty -a -F "$(t display -p '#{pane_tty}')" | tr -d '\n'
}

start_runs
t new-session -d -x 80 -y 24 "env LC_ALL=C.UTF-8 TRAINCTL_SERVER=$url PS1='$ ' bash --norc --noprofile"
eventually sees '\$'
before=$(settings)

submit "curve steps=20000 step_ms=50" '{"workers_per_node": 1, "threads_per_worker": 1}' '{"steps": 20000}'
long=$id
submit "waiting" '{"workers_per_node": 2, "threads_per_worker": 1}'
waiting=$id
wait_state "$long" running

# ---------------------------------------------------------------- a job
terminal "'$trainctl' watch $long"
shows "^ job $long  curve .* running" "the job's name and state"
shows "^ ▕█*[▏▎▍▌▋▊▉█]? *▏ +[0-9]+ %  step [0-9]+ of 20000" "a bar with the steps"
shows 'time left .*speed 100 images/s|speed 100 images/s' "its numbers"
shows '(⡇|⣀|⠤|⢸|⠒|⠉)' "the loss as a curve"
shows '[0-9:]{8}  running' "what happened to it"
shows ' live$' "the stream is there"
is "$(screen | wc -l)" 24 "all of it fits 24 rows"
first=$(screen | sed -n 's/.*step \([0-9]*\) of.*/\1/p')
later() { [ "$(screen | sed -n 's/.*step \([0-9]*\) of.*/\1/p')" -gt "$1" ]; }
ok "steps go on by themselves" eventually later "${first:-0}"

resize 110 30
wide() { [ "$(screen | sed -n 's/^\( job .* running\)$/\1/p' | wc -m)" -gt 100 ]; }
ok "a larger terminal is filled" eventually wide
resize 40 10
shows "^ ▕?.* step [0-9]+ of 20000" "a small one has the progress"
resize 80 24

stop_daemon
shows 'no answer, trying again' "it tells that the daemon went away"
restart_runs --listen "${url#http://}"
shows ' live$' "and that it is back"
first=$(screen | sed -n 's/.*step \([0-9]*\) of.*/\1/p')
ok "steps go on behind a restart" eventually later "${first:-0}"

t send-keys c
shows "^ cancel job $long\\?" "c asks first"
t send-keys n
shows '^ q quit' "any other key is no"
is "$(job "$long" state)" running "and nothing was cancelled"
t send-keys q
at_prompt
shows '^ready 130$' "q ends the view"
ok "and says that the job goes on, and how to stop it" sees "^Job $long keeps running\\. Stop it with: trainctl cancel $long$"
is "$(settings)" "$before" "the terminal is as it was"
is "$(job "$long" state)" running "the job goes on"

# ---------------------------------------------------------------- signals
for ending in INT:130 TERM:143 HUP:129; do
    signal=${ending%:*}
    terminal "'$trainctl' watch $long"
    shows ' live$' "a view to be ended by SIG$signal"
    kill -$signal "$(pgrep -P "$(t display -p '#{pane_pid}')" -x trainctl)"
    at_prompt
    ok "SIG$signal ends it" sees "^ready ${ending#*:}$"
    [ $signal != INT ] || ok "an interrupt says what goes on" sees "^Job $long keeps running\\. Stop it"
    is "$(settings)" "$before" "SIG$signal: the terminal is as it was"
done

# ---------------------------------------------------------------- the queue
terminal "'$trainctl' watch"
shows "^ queue .* 1 running  1 queued  1 of 2 slots" "the queue counts jobs and slots"
shows "^ +$long curve .*running" "its jobs"
shows "^ +$waiting waiting .*queued .*" "those that wait too"
t send-keys Down
shows "^ job $waiting: waiting for " "the chosen job's reason"
t send-keys Enter
shows "^ job $waiting  waiting .*queued" "enter shows the job"
t send-keys q
shows '^ queue ' "q goes back"
resize 60 24
shows "^ +ID +NAME +STATE +DONE +TOP-1 +LEFT$" "a narrow terminal has no room for the speed"
shows "^ +$waiting waiting .*queued .* 0 % " "and shows whole columns"
resize 80 24
shows "^ +ID +NAME +STATE +DONE +TOP-1 +SPEED +LEFT$" "a wider one has"
t send-keys Up c
shows "^ cancel job $long\\?" "c is about the chosen job"
t send-keys y
shows "^ +$long curve .*cancelled" "y cancels it"
shows "^ +$waiting waiting .*succeeded" "the list follows"
t send-keys q
at_prompt
ok "the queue's exit code is 0" sees '^ready 0$'
is "$(settings)" "$before" "the terminal is as it was behind the queue"

# ---------------------------------------------------------------- ends
submit "short steps=20 step_ms=100" '{"workers_per_node": 1, "threads_per_worker": 1}' '{"steps": 20}'
terminal "'$trainctl' watch $id"
at_prompt
ok "a job's end ends the view with its outcome" sees '^ready 0$'
ok "and is told in a line" sees "^job $id succeeded"
for kind in dumb nobody-knows; do
    terminal "TERM=$kind '$trainctl' watch $id"
    at_prompt
    ok "a terminal of the kind $kind gets lines" sees "^job $id succeeded +100 %"
done
submit "日本語の長い名前と日本語の長い名前 steps=2" '{"workers_per_node": 1, "threads_per_worker": 1}' '{"steps": 2}'
wait_state "$id" succeeded
terminal "'$trainctl' list --limit 2"
at_prompt
ok "a name of wide characters is shown whole where it fits" sees "^ *$id +日本語の長い名前と日本語の長い名前 steps=2 +succeeded"
terminal "'$trainctl' list --group model.arch"
at_prompt
ok "groups fit the terminal" sees '^model.arch +JOBS .* SUCCEEDED .* IMAGES$'
resize 60 24
terminal "'$trainctl' list --limit 2"
at_prompt
ok "else it is cut, and that shows" sees "^ *$id +日本.*… +succeeded"
resize 80 24
id=$((id - 1))
terminal "LC_ALL=C '$trainctl' metrics --plot --names loss $id"
at_prompt
ok "without UTF-8 curves are plain" sees '\|\*'
terminal "'$trainctl' metrics --plot --names loss $id"
at_prompt
ok "metrics --plot draws" sees '^ *2 ┤[^ ]'
is "$(screen | LC_ALL=C.UTF-8 wc -L)" 80 "as wide as the terminal and no wider"

# ---------------------------------------------------------------- no terminal
has_streams() { [ "$(get "/metrics" | sed -n 's/^traind_event_streams //p')" = "$1" ]; }
ok "nobody listens" eventually has_streams 0
timeout 1200 "$trainctl" --server "unix:$socket" watch >"$work/lines" 2>&1 &
watcher=$!
eventually has_streams 1
submit "seen"
wait_state "$id" succeeded
has() { grep -q "job $id succeeded" "$work/lines"; }
ok "watch of the queue prints lines off a terminal, over the unix socket too" eventually has
kill -INT $watcher
wait $watcher
is $? 130 "an interrupt ends it with 130"

ok "nobody listens" eventually has_streams 0
timeout 60 "$trainctl" --server "$url" watch >/dev/full 2>"$work/errors" &
watcher=$!
eventually has_streams 1
submit "unseen"
wait $watcher
is "$? $(cat "$work/errors")" "1 trainctl: cannot write to standard output" "watch ends where its lines cannot be written"
wait_state "$id" succeeded

# ---------------------------------------------------------------- a daemon that is killed
last=$(sql "select max(id) from job_event")
ok "nobody listens any more" eventually has_streams 0
timeout 1200 "$trainctl" --json --server "$url" watch >"$work/events" 2>"$work/errors" &
watcher=$!
eventually has_streams 1
submit "counted steps=150 step_ms=30" '{"workers_per_node": 1, "threads_per_worker": 1}' '{"steps": 150}'
eventually has_events "$id" 20
kill_daemon
restart_runs --listen "${url#http://}"
eventually has_events "$id" 60
kill_daemon
restart_runs --listen "${url#http://}"
wait_state "$id" succeeded
all_came() { [ "$(jq -s length "$work/events")" -ge "$(sql "select count(*) from job_event where id > $last")" ]; }
eventually all_came
kill -INT $watcher
wait $watcher
is "$(jq -c .id "$work/events" | tr '\n' ' ')" "$(sql "select id from job_event where id > $last order by id" | tr '\n' ' ')" \
    "over two kills of the daemon each event comes, once and in order"
like "$(cat "$work/errors")" 'is back' "and it is told that the daemon was away"

# ---------------------------------------------------------------- with a token
stop_daemon
start_runs "require_token = yes"
TRAINCTL_TOKEN=$("$trainctl" --server "unix:$socket" token create --role submit tester 2>/dev/null)
export TRAINCTL_TOKEN TRAINCTL_SERVER=$url
job='{"name": "token steps=10 step_ms=100", "data": {"train": "synthetic", "train_images": 64}, "steps": 10,
    "cluster": {"workers_per_node": 1}, "model": {"image_size": 32, "classes": 10}}'
timeout 1200 "$trainctl" submit --watch - <<<"$job" >"$work/lines" 2>&1
is $? 0 "submit --watch with a token"
like "$(cat "$work/lines")" '^job [0-9]+ running  ' "the stream comes with a token"
TRAINCTL_TOKEN=traind-1-wrong timeout 1200 "$trainctl" watch </dev/null >"$work/lines" 2>&1
is $? 4 "watch with a wrong token: 4"
like "$(cat "$work/lines")" 'token' "and it says why"

done_testing
