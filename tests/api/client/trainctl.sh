#!/usr/bin/env bash
# trainctl against a real daemon and real short trainings, over TCP and the unix socket. tests/api/cases/client.cases has its mistakes.
. "$(dirname "$0")/../lib.sh"

trainctl=$top_builddir/trainctl
top_abs_trainctl=$(realpath "$trainctl")
dir=$work/trainctl
mkdir "$dir"
unset TRAINCTL_SERVER NO_COLOR

# Workers outlive the daemon: leave none behind when a check bails out.
leave() {
    local id
    [ -z "$daemon" ] || for id in $("$trainctl" list --json --state queued,starting,running,evaluating | jq '.jobs[].id'); do
        "$trainctl" cancel "$id" && timeout 600 "$trainctl" wait "$id"
    done
    clean_up
}
trap 'leave >/dev/null 2>&1' EXIT

# run ARGUMENTS...: trainctl's exit code in $code, its output in $out, its errors in $err
run() {
    "$trainctl" "$@" >"$dir/out" 2>"$dir/err"
    code=$?
    out=$(cat "$dir/out")
    err=$(cat "$dir/err")
}
# exits CODE NAME ARGUMENTS...
exits() {
    local want=$1 name=$2
    shift 2
    run "$@"
    [ "$code" = "$want" ]
    report $? "$name" "exit code $code, expected $want" "$err"
}
says() { # TEXT PART NAME
    [[ $1 == *"$2"* ]]
    report $? "$3" "it does not say \"$2\":" "$1"
}

nobody=http://127.0.0.1:1

echo "worker = $top_builddir/tests/bin/train-worker" >"$dir/traind.conf"
start_daemon --config "$dir/traind.conf"
export TRAINCTL_SERVER=$url

job() { # job NAME STEPS [MORE JSON]: a short real training on synthetic images
    cat <<END
{"name": "$1", "model": {"arch": "resnet18", "width": 0.0625, "classes": 10, "image_size": 32},
 "data": {"train": "synthetic", "eval": "synthetic", "train_images": 64},
 "cluster": {"workers_per_node": 1, "threads_per_worker": 1},
 "batch_per_worker": 8, "steps": $2, "eval": {"batch": 8}, "checkpoint": {"disable": true}}
END
}

run doctor --json
is "$(jq -c '[.[] | .check]' <<<"$out")" '["libraries","MPI","worker","GEMM","bandwidth","frequency","load","versions","BLAS","memory","clock","Slurm","disk","daemon","access","slots","jobs"]' "doctor looks at everything"
is "$(jq -c '[.[] | select(.check == "daemon" or .check == "BLAS" or .check == "MPI") | .ok]' <<<"$out")" '[true,true,true]' "and finds this daemon, BLAS and MPI"
like "$(jq -r '.[] | select(.check == "GEMM") | .found' <<<"$out")" '[1-9][0-9.]* GFLOP/s' "BLAS is measured"
is "$(jq -r '.[] | select(.check == "clock" and (.found | test("no NTP"))) | .advice | test("NTP client")' <<<"$out" | grep -v true)" "" "a clock without NTP is a warning"
is "$(jq '[.[] | select(.ok == false and (.advice | length) < 10)] | length' <<<"$out")" 0 "what is bad has advice"
run --server "unix:$socket" doctor --json
like "$(jq -r '.[] | select(.check == "disk") | .found' <<<"$out")" "^[0-9.]+ GB free in ${socket%/*}$" "the disk is that of the daemon's state folder"
run --server $nobody doctor
is "$code" 1 "doctor without a daemon: 1"
says "$out" "start traind" "it says what to do"

export XDG_CONFIG_HOME=$dir/config
mkdir -p "$dir/config/traind/token"
exits 2 "a token's file that cannot be read" list
says "$err" "traind/token is a folder" "is told, rather than that there is no token"
rmdir "$dir/config/traind/token"
install -m 600 /dev/null "$dir/config/traind/token"
if chown 65534 "$dir/config/traind/token" 2>/dev/null; then
    exits 4 "a token's file of another user" list
    says "$err" "belongs to another user (uid 65534)" "is told as such"
else
    skip "a token's file of another user" "needs root"
fi
export XDG_CONFIG_HOME=$work/config
job first 6 >"$dir/first.json"
exits 0 "submit --watch" submit --watch "$dir/first.json"
like "$out" '^job 1 (queued|starting)' "submit tells the id" # it may have been started at once
says "$out" "job 1 succeeded: top-1 " "watch tells the result"
says "$out" "images/s" "watch shows the speed off a terminal too"
is "$(grep -c $'\r' <<<"$out")" 0 "watch off a terminal draws no bar"
job second 4 | "$trainctl" --server "unix:$socket" submit --wait - >"$dir/out" 2>&1
is $? 0 "submit --wait from standard input over the unix socket"

exits 0 "list" list
says "$out" "first" "list shows the name"
run list -o json --limit 1
json=$out
exits 0 "list --json" list --json --limit 1
is "$out" "$json" "list -o json is the same"
is "$(jq -r '.jobs | length' <"$dir/out")" 1 "list --limit"
is "$(jq -r '.jobs[0].name' <"$dir/out")" second "list: the newest first"
exits 0 "a note" note 1 "of the first"
"$trainctl" note 1 - <&- 2>"$dir/err"
is "$? $(cat "$dir/err")" "1 trainctl: standard input is closed, so nothing can be read from it" "a note from a closed standard input is refused"
printf 'cut\0here\n' | "$trainctl" note 1 - 2>"$dir/err"
is $? 2 "a note with a byte that is 0 is refused, not cut"
is "$("$trainctl" note 1)" "of the first" "neither changes the note"
exits 2 "a tag that is not UTF-8" tag --add $'good,\xe4' 1
says "$err" "not valid UTF-8" "says so"
is "$("$trainctl" --json show 1 | jq -c .tags)" "[]" "and adds none"
printf -v states 'succeeded,%.0s' {1..300}
exits 0 "list with a long filter" list --state "${states}failed" --name none
is "$out" "No jobs match." "does not lose the filters behind it"
exits 0 "list --state" list --state failed
says "$out" "No jobs in state failed." "list --state leaves others out"
exits 2 "list --state of no state" list --state walking
exits 0 "show" show 1
says "$out" "time to train" "show tells the time to train"
run show 1 --json
get "/v1/jobs/1" | command jq -S . >"$dir/api.json"
command jq -S . <"$dir/out" | cmp -s - "$dir/api.json"
report $? "show --json is the API's"
run show 1 -o json
command jq -S . <"$dir/out" | cmp -s - "$dir/api.json"
report $? "show -o json too"

exits 0 "plan --set" plan --set batch_per_worker=16 --json "$dir/first.json"
is "$(jq .global_batch <<<"$out")" 16 "plan --set changes the document"
exits 2 "plan --set of no such key" plan --set lr.bse=2 "$dir/first.json"
says "$err" "did you mean lr.base?" "plan --set of no such key names the nearest"
exits 2 "plan --set of a wrong value" plan --set lr.base=high "$dir/first.json"
says "$err" "lr.base: must be a number" "plan --set of a wrong value says what is right"
exits 0 "plan --explain" plan --explain "$dir/first.json"
says "$out" "peak_lr = " "plan --explain has each number"
says "$(tr -s ' \n' ' ' <<<"$out")" "with lr.base = 0.1, global_batch = 8" "plan --explain has the inputs"
says "$out" "To change it: lr.base, lr.factor" "plan --explain says what would change it"
job other 12 >"$dir/other.json"
exits 0 "plan --diff" plan --diff "$dir/first.json" "$dir/other.json"
says "$out" $'\nname ' "plan --diff has the documents' differences"
says "$out" $'\ntrain_steps ' "plan --diff has the plans' differences"
run plan --diff --json "$dir/first.json" "$dir/other.json"
is "$(jq -c '[.differences[] | .pointer], [.plan[] | select(.pointer == "/train_steps") | [.pointer, .values[]]]' <<<"$out" | tr '\n' ' ')" \
    '["/name","/steps"] [["/train_steps",6,12]] ' "plan --diff --json"
exits 2 "plan of two files without --diff" plan "$dir/first.json" "$dir/other.json"
exits 0 "clone prints" clone --set lr.base=0.25 --set name=copy 1
is "$(jq -c '[.name, .lr.base, .steps]' <<<"$out")" '["copy",0.25,6]' "clone prints the changed document"
exits 2 "clone of a wrong value" clone --set epochs=-1 1
exits 2 "clone --wait alone" clone --wait 1
exits 3 "clone of no job" clone 99
mkdir -p "$dir/images/a"
touch "$dir/images/a/x.jpg"
jq '.data = {train: "images", eval: "./images", train_images: 64} | .cluster.launcher = "slurm"' "$dir/first.json" >"$dir/relative.json"
call -d "@$dir/relative.json" /v1/jobs
refused 422 invalid '/data/train.*must be an absolute path, not "images"|must be an absolute path, not "images"' "the API refuses a relative path"
is "$(jq -r '[.errors[].pointer] | tojson' <<<"$body")" '["/data/train","/data/eval"]' "each of them"
call -d "$(jq '{base: ., parameters: {"/data/train": ["images", "synthetic"]}}' "$dir/relative.json")" /v1/sweeps
refused 422 invalid 'must be an absolute path, not' "in a sweep too"
server=$url
(cd "$dir" && "$top_abs_trainctl" --server "$server" clone --set data.train=images --set data.eval=./images/../images --set model.init=w.safetensors 1) >"$dir/out" 2>"$dir/err"
is "$(jq -c '[.data.train, .data.eval, .model.init]' "$dir/out")" "[\"$dir/images\",\"$dir/images\",\"$dir/w.safetensors\"]" "trainctl makes them absolute"
(cd "$dir" && "$top_abs_trainctl" --server "$server" submit --print-sbatch relative.json) >"$dir/out" 2>"$dir/err"
like "$(cat "$dir/out" "$dir/err")" "$dir/images" "submit sends the absolute ones"
run --json clone --submit --set steps=2 1
is "$(jq .id <<<"$out")" 3 "clone --submit makes a job"
exits 0 "wait for the clone" wait 3
is "$("$trainctl" show 3 --json | jq -c '[.spec.steps, .spec.name, .step]')" '[2,"first",2]' "the clone is as changed"
"$trainctl" submit --wait --set name=set --set steps=1 "$dir/first.json" >"$dir/out" 2>&1
is $? 0 "submit --set"
is "$("$trainctl" show 4 --json | jq -c '[.name, .step]')" '["set",1]' "submit --set changes the document"

is "$("$trainctl" show set --json | jq .id)" 4 "a job by its name"
is "$("$trainctl" show first --json | jq .id)" 3 "of two with the same name the newest"
is "$("$trainctl" show latest --json | jq .id)" 4 "the newest job"
exits 0 "wait by name and id" wait first 1
is "$(grep -oE '^job [0-9]+' <<<"$out" | tr '\n' ' ')" "job 3 job 1 " "is of those jobs"
exits 0 "metrics of the latest" metrics --csv latest
is "$(wc -l <"$dir/out")" 2 "has its step"
exits 3 "show of no such name" show frist
says "$err" 'no job is named "frist": see "trainctl list"' "says where names are"
exits 3 "show of no such name" show irs # names contain it
says "$err" 'no job is named "irs"' "says so"
exits 3 "the latest of no sweeps" sweep show latest
says "$err" "there are no sweeps yet" "says so"
exits 0 "rename to nothing" rename set ""
is "$out" "Name removed from job 4." "says so"
like "$("$trainctl" list)" '^ *4  +-  +succeeded' "list shows no name as -"
exits 0 "rename" rename 4 set
is "$out" "Job 4 renamed." "says so"

exits 3 "reproduce --check of a job that reproduces none" reproduce --check 1
says "$err" "trainctl reproduce 1 reruns it" "reproduce --check: how to do that"
exits 2 "tag with a tag twice" tag --add a,a 1
says "$err" 'is listed twice: "a"' "tag with a tag twice: says so"
exits 3 "a node that there is not" nodes foo
says "$err" "trainctl nodes" "a node that there is not: where to see the others"
exits 0 "compare" compare 1 4 2
says "$out" "JOB 4" "compare has a column a job"
says "$out" "Differences between the documents:" "compare has the differences"
like "$out" '^steps +6 +1 +4$' "compare has each job's value"
says "$out" "No recorded difference in programs, hardware or data." "compare says so of their programs"
mv "$state/jobs/4/provenance.json" "$dir/"
exits 0 "compare without the provenance of a job" compare 1 4 2
says "$out" "Nothing was recorded about the run of job 4." "compare says of which run nothing is known"
run compare --json 1 2
get "/v1/compare?ids=1,2" | command jq -S . >"$dir/api.json"
command jq -S . <"$dir/out" | cmp -s - "$dir/api.json"
report $? "compare --json is the API's"
exits 3 "compare with no such job" compare 1 99
exits 0 "checkpoints of a job without" checkpoints 1
says "$out" "has no checkpoint" "checkpoints of a job without says so"
"$trainctl" submit --wait --set checkpoint.disable=false --set steps=1 "$dir/first.json" >/dev/null 2>&1
exits 0 "checkpoints" checkpoints 5
like "$out" '^ *1 +0\.125 +[0-9.]+ % +[0-9.]+ MiB ' "checkpoints has step, epoch, top-1 and size"
exits 0 "checkpoints --get" checkpoints --get newest -o "$dir/weights" 5
cmp -s "$dir/weights" "$state/jobs/5/checkpoints/step-00000001/model.safetensors"
report $? "checkpoints --get fetches the weights"
"$trainctl" checkpoints --get 1 -o - 5 | cmp -s - "$dir/weights"
report $? "checkpoints --get -o - writes them to standard output"
"$trainctl" checkpoints --get 1 -o - 5 >/dev/full 2>"$dir/err"
is $? 1 "checkpoints --get to a full disk"
says "$(cat "$dir/err")" "cannot write the file: No space left on device" "is told as that"
for command in "list" "logs 5" "--help" "help list"; do
    # shellcheck disable=SC2086 # words
    "$trainctl" $command >/dev/full 2>"$dir/err"
    is "$? $(cat "$dir/err")" "1 trainctl: cannot write to standard output" "$command to a full disk fails"
    # shellcheck disable=SC2086
    "$trainctl" $command >&- 2>"$dir/err"
    is "$? $(cat "$dir/err")" "1 trainctl: cannot write to standard output" "and to a closed standard output"
done
is "$("$trainctl" list --json 2>&- | jq -c '[.jobs[].id]')" "$("$trainctl" list --json | jq -c '[.jobs[].id]')" "list without standard error"
exits 2 "checkpoints --get of what is no step" checkpoints --get x 5
says "$err" 'must be the step of a checkpoint, newest, or best, not "x"' "checkpoints --get of what is no step: says what it may be"
exits 3 "checkpoints --get of no such step" checkpoints --get 7 -o "$dir/none" 5
says "$err" "job 5 has no checkpoint of step 7; it has that of step 1" "checkpoints --get of no such step: the API's words, with those there are"
is "$(ls -d "$dir"/none* 2>/dev/null)" "" "and leaves nothing behind"

exits 0 "metrics" metrics 1
says "$out" "images_per_sec" "metrics has a heading"
exits 0 "metrics --csv" metrics 1 --csv --names loss
is "$(wc -l <"$dir/out")" 7 "metrics --csv: a heading and a line a step"
is "$(sed -n 7p "$dir/out" | cut -d, -f1)" 6 "metrics --csv: the last step is the last line"
want=$(get "/v1/jobs/1/metrics?names=loss" | jq -r '.loss[5] * 1e6 | round')
is "$(sed -n 7p "$dir/out" | awk -F, '{ printf "%.0f", $3 * 1e6 }')" "$want" "metrics --csv: the loss is the API's"
exits 2 "metrics of no such name" metrics 1 --names lose
exits 0 "logs" logs 1
curl -s "$url/v1/jobs/1/log" | cmp -s - "$dir/out"
report $? "logs are the API's"
tail -n 2 "$dir/out" >"$dir/tail"
exits 0 "logs --tail" logs --tail 2 --attempt 1 1
cmp -s "$dir/out" "$dir/tail"
report $? "logs --tail prints the last lines" "$out"
exits 3 "logs of an attempt that was not made" logs --attempt 9 1
exits 0 "events" events 1
says "$out" "succeeded" "events: how it ended"
is "$(grep -c step_ms <<<"$out")" 0 "events: without the steps"
exits 0 "events --types" --json events --types step,eval 1
is "$(jq -r .type <"$dir/out" | sort -u | tr '\n' ' ')" "eval step " "events --types: those alone, as JSON lines"
exits 0 "events --types of the daemon's own" events --types labels,resume 1
exits 2 "events of no such type" events --types steps 1
says "$err" 'did you mean "step"' "events of no such type: the nearest is named"
exits 3 "wait of several, one of them no job" wait 1 99
is "$out" "" "wait of several: none is waited for"
exits 0 "wait of several" wait 1 5
is "$(grep -c '^job [15] succeeded' <<<"$out")" 2 "wait of several: how each ended"
exits 0 "list with a limit" list --limit 1
says "$err" "1 of $("$trainctl" --json list | jq .total) jobs shown" "list with a limit: how many there are"
says "$err" "next page: --after " "and how to see the others"
last=$(sed -n 's/.*--after //p' <<<"$err")
exits 0 "list --after" list --limit 1 --after "$last"
is "$(awk 'NR == 2 { print $1 }' <<<"$out")" "$("$trainctl" --json list | jq .jobs[1].id)" "the page behind it"
exits 0 "list --find" list --find resnet18 --sort name -o wide
says "$out" "USER" "list -o wide has more columns"
exits 0 "list of what matches nothing" list --find "no such & words"
is "$out" "No jobs match." "list of what matches nothing: says so"

exits 0 "audit of nobody" --server "unix:$socket" audit --by nobody
is "$out" "No entries match." "audit of nobody: says so"
run --server "unix:$socket" backup --json "$dir/copy.db"
is "$(jq -c '[.file, .bytes > 0, .tokens]' <<<"$out")" "[\"$dir/copy.db\",true,null]" "backup --json names each file"

"$trainctl" submit --wait --set name=weights --set checkpoint.disable=false --set steps=1 "$dir/first.json" >/dev/null 2>&1
trained=$("$trainctl" --json list | jq .jobs[0].id)
run --json submit --set mode=eval --set "model.init=$state/jobs/$trained" --set data.eval_images=16 "$dir/first.json"
id=$(jq .id <<<"$out")
exits 0 "wait for an evaluation" wait "$id"
exits 0 "metrics of an evaluation" metrics "$id"
is "$out" "job $id is an evaluation and has no steps" "metrics of an evaluation: says that it has none"
exits 0 "compare a training and an evaluation" compare "$trained" "$id"
like "$out" '^time to train ' "its time is that of the training"
like "$out" '^time to evaluate ' "beside that of the evaluation"

job long 100000 >"$dir/long.json"
run --json submit "$dir/long.json"
id=$(jq .id <"$dir/out")
timeout 1200 "$trainctl" wait "$id" >"$dir/wait" 2>&1 &
waiter=$!
timeout 1200 "$trainctl" logs -f "$id" >"$dir/log" 2>&1 &
follower=$!
steps() { [ "$("$trainctl" show "$id" --json | jq .step)" -gt 1 ]; }
eventually steps
# All slots at once: it waits for the other.
slots=$(get /readyz | jq .slots.total)
second=$("$trainctl" --json submit --set "cluster.workers_per_node=$slots" "$dir/long.json" | jq .id)
exits 0 "logs of a job that waits" logs "$second"
like "$out$err" "^trainctl: job $second has not started: wait" "says that it has not started, and why"
exits 1 "a name of two jobs that have not ended" show long
says "$err" "jobs $second and $id are both named \"long\"" "names both"
timeout 1200 "$trainctl" wait "$second" >"$dir/interrupted" 2>&1 &
interrupted=$!
is_followed() { [ "$(get /metrics | sed -n 's/^traind_event_streams //p')" = "$1" ]; }
ok "three listen" eventually is_followed 3
kill -INT $interrupted
wait $interrupted
is "$? $(sed -n '$p' "$dir/interrupted")" "130 Job $second stays in the queue. Cancel it with: trainctl cancel $second" "an interrupt says what goes on"
exits 0 "cancel by name and id" cancel "$second"
is "$("$trainctl" show long --json | jq .id)" "$second" "the newest, though it has ended"
# Between our first question and its stream of events a daemon may go, too: here the first stream is cut off.
cat >"$dir/cut.py" <<'END'
import socket, struct, sys, threading
cut = []
def pump(a, b):
    while data := a.recv(65536):
        b.sendall(data)
    b.shutdown(socket.SHUT_WR)
def serve(client):
    head = client.recv(65536)
    if b"/events" in head.split(b"\r\n")[0] and not cut:
        cut.append(True)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        return
    server = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    server.sendall(head)
    threading.Thread(target=pump, args=(server, client), daemon=True).start()
    pump(client, server)
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
END
/usr/bin/python3 "$dir/cut.py" "${url##*:}" >"$dir/cut.port" &
proxy=$!
eventually test -s "$dir/cut.port"
"$trainctl" --server "http://127.0.0.1:$(cat "$dir/cut.port")" wait "$id" >"$dir/cut" 2>&1 &
cut_off=$!
ok "wait lives through a stream that is cut off before its first event" eventually grep -q 'is back' "$dir/cut"
says "$(cat "$dir/cut")" "does not answer" "and says so"
ok "it goes on" kill $cut_off
wait $cut_off
kill $proxy
wait $proxy 2>/dev/null
stop_daemon
ok "wait notices that the daemon is gone" eventually grep -q 'does not answer' "$dir/wait"
start_daemon --config "$dir/traind.conf" --listen "${url#http://}"
exits 0 "cancel" cancel "$id"
wait $waiter
is $? 130 "wait exits with 130 for a cancelled job"
says "$(cat "$dir/wait")" "does not answer" "wait tells that the daemon went away"
says "$(cat "$dir/wait")" "is back" "wait goes on when the daemon is back"
says "$(cat "$dir/wait")" "job $id cancelled" "wait tells the outcome"
wait $follower
is $? 0 "logs -f ends with the job"
curl -s "$url/v1/jobs/$id/log" | cmp -s - <(grep -v "^trainctl: " "$dir/log")
report $? "logs -f printed all of it"
exits 1 "cancel of what has ended: 1" cancel "$id"

done_testing
