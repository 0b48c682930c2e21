#!/usr/bin/env bash
# A run that a signal stops at a step where it would not have written a checkpoint goes on to the very bits of one that nobody stopped:
# weights, running statistics of batch norm, averages and evaluations.
# shellcheck source=tests/system/lib.sh
. "${top_srcdir:?run it by make check}/tests/system/lib.sh"
# Nothing is averaged but at the evaluations of steps 12 and 24 and the checkpoints of steps 8 and 16.
small_job '.model.image_size = 64 | .data.eval = "\($data)/validation" | .batch_per_worker = 4 | .steps = 24 |
    .lr = {warmup_epochs: 0.2, scaling: "none", base: 0.01} | .eval = {batch: 5, every_epochs: 1} |
    .checkpoint = {every_steps: 8, every_epochs: 0, keep: 100}'
last=checkpoints/step-00000024

world=2    # ranks of a run that is stopped
blind=false # the second half of them cannot write into its directory

# launch JOB RUN
launch() {
    local program=("$top_builddir/tests/bin/train-worker" --job "$1" --run-dir "$2")
    local apart='half=$1 run=$2
        shift 2
        [ "$OMPI_COMM_WORLD_RANK" -lt "$half" ] ||
            exec unshare -m sh -c '\''mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'\'' "$run" "$@"
        exec "$@"'
    if $blind; then
        mkdir -p "$2/attempt-1"
        program=(sh -c "$apart" sh $((world / 2)) "$2" "${program[@]}")
    fi
    exec mpirun --oversubscribe --bind-to none -np $world "${program[@]}"
}

# stop JOB RUN EVENT: starts a run and sends SIGTERM to one of its ranks once the text is among its events; sets $step, at which it wrote
# its last checkpoint, $exited, the exit status, and
# $output
stop() {
    local events=() launcher ranks=()
    launch "$1" "$2" >"$work/output" 2>&1 &
    launcher=$!
    for _ in $(seq 60000); do
        mapfile -t events 2>/dev/null <"$2/attempt-1/events.jsonl"
        # The ranks are known beforehand: no other process delays the signal.
        [ ${#ranks[@]} = $world ] || [ ${#events[@]} = 0 ] || mapfile -t ranks < <(pgrep -P $launcher)
        [[ "${events[*]}" != *"$3"* ]] || break
        kill -0 $launcher 2>/dev/null || break
        tap_sleep 0.01
    done 2>/dev/null
    kill -TERM "${ranks[1]:-$launcher}"
    wait $launcher 2>/dev/null
    exited=$?
    output=$(<"$work/output")
    step=$(find "$2/checkpoints" -name 'step-*' | sort | tail -1)
    step=${step:+$((10#${step##*-}))}
    [ "$(jq -r .status "$2/result.json")" = cancelled ]
}

# stopped JOB RUN EVENT STEPS: again, until it was at one of these, a pattern: a busy machine may be late with the signal
stopped() {
    local tries=0
    # shellcheck disable=SC2053
    until stop "$1" "$2" "$3" && [[ $step == $4 ]]; do
        [ $((++tries)) -lt 50 ] || return 1
        rm -rf "$2"
    done
}

# results RUN: digests of the last checkpoint's tensors, and all evaluations
results() {
    (cd "$1/$last" && sha256sum -- *.safetensors)
    cat "$1"/attempt-*/events.jsonl | jq -c 'select(.type == "eval") | [.step, .top1, .top5, .loss, .raw_top1, .raw_loss]'
    jq -c '[.losses, .evaluations]' "$1/$last/state.json"
}

own() { # RUN STEP [RANK]: the file with the statistics of each rank of the machine whose first one it is
    printf '%s/checkpoints/step-%08d/statistics-%d.safetensors' "$1" "$2" "${3:-0}"
}

# tensors RUN STEP FILTER [RANK]: of the header of that file
tensors() {
    local file length
    file=$(own "$1" "$2" "${4:-0}")
    length=$(od -An -tu8 -N8 "$file")
    tail -c +9 "$file" | head -c $((length)) | jq -c "$3"
}

worker 2 "$work/small.json" "$work/whole"
is $? 0 "an undisturbed run"
is "$(find "$work/whole" -name 'statistics*')" "" "its checkpoints have no statistics of single ranks"

run=$work/stopped
ok "one that is stopped soon after step 1" stopped "$work/small.json" "$run" '"type": "step", "step": 1,' '[1-7]'
ok "writes a checkpoint that the job does not name" test -e "$run/checkpoints/step-0000000$step"
is "$(tensors "$run" "$step" '[length, .ranks.shape, .["bn1.running_mean"].shape]')" '[41,[2,1],[2,64]]' "with the statistics of each rank"
cp -r "$run" "$work/one"
cp -r "$run" "$work/older"
worker 2 "$work/small.json" "$run" --attempt 2 --resume latest
is "$?" 0 "it goes on"
is "$(results "$run")" "$(results "$work/whole")" "to the same bits: weights, running statistics, momenta, losses and evaluations"

worker 1 "$work/small.json" "$work/one" --attempt 2 --resume latest
is "$?" 0 "on one rank it goes on too"
like "$(jq -r 'select(.type == "warning") | .message' "$work/one/attempt-2/events.jsonl")" \
    'the batch norm statistics of each of 2 ranks; this run continues with their average' "and a warning names the statistics"

# ---- as older versions wrote them: one file, of all ranks
ok "a checkpoint of an older version" /usr/bin/python3 - "$work/older/checkpoints/step-0000000$step" <<'END'
import json, os, struct, subprocess, sys

class Number(float):
    pass

def number(text):
    value = Number(text)
    value.text = text
    return value

def compact(value):
    if isinstance(value, Number):
        return value.text
    if isinstance(value, dict):
        return "{" + ",".join(json.dumps(k) + ":" + compact(value[k]) for k in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(compact, value)) + "]"
    return json.dumps(value, ensure_ascii=False)

def digest(data):
    return subprocess.run(["xxh128sum"], input=data, stdout=subprocess.PIPE, check=True).stdout.decode().split()[0]

os.chdir(sys.argv[1])
with open("statistics-0.safetensors", "rb") as file:
    header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    data = file.read()
ranks = header.pop("ranks")["data_offsets"]
assert ranks == [0, 8]
for tensor in header.values():
    tensor["data_offsets"] = [offset - 8 for offset in tensor["data_offsets"]]
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
whole = struct.pack("<Q", len(text)) + text + data[8:]
with open("statistics.safetensors", "wb") as file:
    file.write(whole)
os.remove("statistics-0.safetensors")
with open("state.json", encoding="utf-8") as file:
    state = json.load(file, parse_float=number)
del state["files"]["statistics-0.safetensors"]
state["files"]["statistics.safetensors"] = digest(whole)
del state["xxh128"]
state["xxh128"] = digest(compact(state).encode())
with open("state.json", "w", encoding="utf-8") as file:
    file.write(compact(state))
END
worker 2 "$work/small.json" "$work/older" --attempt 2 --resume latest
is "$(results "$work/older")" "$(results "$work/whole")" "goes on to the same bits"

# ---- on several machines, made of this one, each writes its own
run=$work/machines
TRAINCOMM_HOST_RANKS=1 ok "a run on two machines that is stopped" stopped "$work/small.json" "$run" '"type": "step", "step": 1,' '[1-7]'
is "$(tensors "$run" "$step" '.["bn1.running_mean"].shape') $(tensors "$run" "$step" '.["bn1.running_mean"].shape' 1)" "[1,64] [1,64]" \
    "writes the statistics of each"
worker 2 "$work/small.json" "$run" --attempt 2 --resume latest
is "$(results "$run")" "$(results "$work/whole")" "and goes on to the same bits on one machine with both ranks"

world=4 last=checkpoints/step-00000012
job "$work/four.json" '.cluster.workers_per_node = 4 | .steps = 12'
for of in 1 2; do
    export TRAINCOMM_HOST_RANKS=$of
    run=$work/four-$of
    worker 4 "$work/four.json" "$run-whole"
    ok "$((4 / of)) machines of $of" stopped "$work/four.json" "$run" '"type": "step", "step": 1,' '[1-5]'
    is "$(cd "$run/checkpoints/step-0000000$step" && echo statistics*)" "$(for rank in $(seq 0 "$of" 3); do echo "statistics-$rank.safetensors"; done | paste -sd ' ')" \
        "of $of: each writes a file"
    is "$(jq -c '.files | keys | length' "$run/checkpoints/step-0000000$step/state.json")" $((2 + 4 / of)) "of $of: with its digest"
    cp -r "$run" "$work/torn-$of"
    worker 4 "$work/four.json" "$run" --attempt 2 --resume latest
    is "$(results "$run")" "$(results "$run-whole")" "of $of: the run goes on to the same bits"
done
rm "$(own "$work/torn-2" "$step" 2)"
worker 4 "$work/four.json" "$work/torn-2" --attempt 2 --resume "$work/torn-2/checkpoints/step-0000000$step"
like "$output" 'is damaged: cannot open .*statistics-2.safetensors.*--resume latest uses the newest' \
    "a checkpoint that lost a machine's file is refused"

if unshare -m true 2>/dev/null; then
    blind=true run=$work/blind
    job "$work/blind.json" '.cluster.workers_per_node = 4 | .steps = 20000 | .checkpoint.every_steps = 0'
    stop "$work/blind.json" "$run" '"type": "step", "step": 1,'
    like "$output" "checkpoint of step [0-9]*: cannot write .*statistics-2.safetensors: .*\(rank 2 on " \
        "a machine that cannot write fails the checkpoint, by name"
    is "$(find "$run/checkpoints" -mindepth 1)" "" "and nothing of it stays"
    blind=false
fi
unset TRAINCOMM_HOST_RANKS
world=2 last=checkpoints/step-00000024

run=$work/evaluating
ok "one that is stopped in an evaluation" stopped "$work/small.json" "$run" '"type": "eval_progress"' 12
is "$step" 12 "writes a checkpoint of that step"
ok "where the undisturbed run has averaged too" test ! -e "$(own "$run" 12)"
worker 2 "$work/small.json" "$run" --attempt 2 --resume latest
is "$(results "$run")" "$(results "$work/whole")" "and goes on to the same bits"

# ---- a signal after the last step, to one rank: there is nothing to stop
job "$work/late.json" '.data.eval = null | .steps = 2 | .model.width = 1'
tries=0
until stop "$work/late.json" "$work/late" '"type": "step", "step": 2,'
    [ "$(jq -r .status "$work/late/result.json")" = success ] || [ $((++tries)) = 20 ]; do
    rm -rf "$work/late"
done
is "$exited $(jq -r .status "$work/late/result.json")" "0 success" \
    "a run that gets a signal after its last step succeeds, also by its exit status"

# ---- a request before the ranks existed, when mpirun could not pass on the signal
mkdir -p "$work/early/attempt-1" && : >"$work/early/attempt-1/cancel-requested"
worker 2 "$work/small.json" "$work/early"
is "$(jq -c '[.status, .steps]' "$work/early/result.json")" '["cancelled",0]' \
    "a run that was cancelled before its ranks started ends before its first step"

# ---- with averaged weights
trial 2 ema '.ema = {"decay": 0.9, "from_epoch": 0.1}'
run=$work/ema-stopped
ok "with averaged weights" stopped "$work/ema.json" "$run" '"type": "step", "step": 3,' '[3-7]'
is "$(tensors "$run" "$step" '[length, .["bn1.running_mean"].shape, .["ema.layer4.1.bn2.running_var"].shape]')" '[81,[2,64],[2,512]]' \
    "the statistics of both"
cp -r "$run" "$work/torn"
worker 2 "$work/ema.json" "$run" --attempt 2 --resume latest
is "$(results "$run")" "$(results "$work/ema")" "both go on to the same bits"
torn=$(own "$work/torn" "$step")
rm "$torn"
worker 2 "$work/ema.json" "$work/torn" --attempt 2 --resume "${torn%/*}"
like "$output" 'is damaged: cannot open .*statistics-0.safetensors' "a checkpoint that lost them is refused"

done_testing
