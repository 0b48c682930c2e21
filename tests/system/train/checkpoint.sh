#!/usr/bin/env bash
# Checkpoints that were damaged are noticed, and a full disk costs the new checkpoint, not the older one or the run.
# shellcheck source=tests/system/lib.sh
. "${top_srcdir:?run it by make check}/tests/system/lib.sh"

cat >"$work/small.json" <<END
{"model": {"arch": "cnn", "width": 0.5}, "data": {"train": "synthetic", "train_images": 400},
 "cluster": {"workers_per_node": 1, "threads_per_worker": 1}, "batch_per_worker": 4, "steps": 3, "eval": {"every_epochs": 0},
 "lr": {"warmup_epochs": 0}, "checkpoint": {"every_steps": 1, "every_epochs": 0, "keep": 2}}
END

# flip FILE OFFSET: one bit; a second time, back again
flip() {
    local byte
    byte=$(od -An -tu1 -j "$2" -N 1 "$1")
    printf '%b' "\\x$(printf '%x' $((byte ^ 1)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

worker 1 "$work/small.json" "$work/run"
is $? 0 "a run with a checkpoint a step"
checkpoints=$work/run/checkpoints
is "$(cd "$checkpoints" && echo step-*)" "step-00000002 step-00000003" "keeps two"
newest=$checkpoints/step-00000003
if command -v xxh128sum >/dev/null; then
    is "$(jq -r '.files["model.safetensors"]' "$newest/state.json")" "$(xxh128sum <"$newest/model.safetensors" | cut -d ' ' -f 1)" \
        "state.json has the digest that xxh128sum prints"
fi

# ---- a flipped bit, anywhere
model=$newest/model.safetensors
size=$(stat -c %s "$model")
for place in 3 40 $((size / 2)) $((size - 1)); do
    flip "$model" "$place"
    worker 1 "$work/small.json" "$work/flip" --resume "$newest"
    like "$output" 'step-00000003 is damaged: the xxh128 of model.safetensors does not match.*--resume latest' \
        "a flipped bit in byte $place of the model is noticed"
    flip "$model" "$place"
done
flip "$newest/optimizer.safetensors" 1000000
cp -r "$newest" "$work/flipped"
worker 1 "$work/small.json" "$work/run" --attempt 2 --resume latest
is "$(jq -r 'select(.type == "run_start") | .resumed_from' "$work/run/attempt-2/events.jsonl")" "$checkpoints/step-00000002" \
    "one in the momentum: latest takes the older checkpoint"
like "$(jq -r 'select(.type == "warning") | .message' "$work/run/attempt-2/events.jsonl")" \
    'step-00000003 is damaged: the xxh128 of optimizer.safetensors does not match .*; trying an older one' "and warns of the broken one"
ok "whose place a whole one takes" cmp "$model" "$work/flipped/model.safetensors"
cp "$newest/state.json" "$work/"
sed -i 's/"schedule_step": 3,/"schedule_step": 2,/' "$newest/state.json"
worker 1 "$work/small.json" "$work/flip" --resume "$newest"
like "$output" 'step-00000003 is damaged: state.json has been changed' "a changed number in state.json is noticed"
cp "$work/state.json" "$newest/"
rm "$model"
worker 1 "$work/small.json" "$work/flip" --resume "$newest"
like "$output" 'step-00000003 is damaged: cannot open .*model.safetensors' "and a missing file"

# ---- keep auto: after success the last one stays, and a kill during the removal of others costs nothing
trial 1 auto 'del(.checkpoint.keep)'
is "$(ls -A "$work/auto/checkpoints")" step-00000003 "without checkpoint.keep the last one is kept after success"
job "$work/three.json" '.checkpoint.keep = 3'
worker 1 "$work/three.json" "$work/auto3"
is "$(cd "$work/auto3/checkpoints" && echo step-*)" "step-00000001 step-00000002 step-00000003" "an explicit number is obeyed after success"
(cd "$work/auto3/checkpoints/step-00000002" && seq 40000 | xargs touch) # so that it takes a moment to remove
mpirun --oversubscribe --bind-to none -np 1 "$top_builddir/tests/bin/train-worker" --job "$work/auto.json" --run-dir "$work/auto3" --attempt 2 --resume latest >"$work/log" 2>&1 &
run=$!
begun() { [ -e "$work/auto3/checkpoints/.step-00000002.tmp" ] || ! kill -0 $run; }
until begun 2>/dev/null; do :; done
pkill -KILL -P $run
wait $run
is "$(cd "$work/auto3/checkpoints" && ls -d .step-*)" .step-00000002.tmp "a run is killed while it removes the older ones"
ok "a half removed set is no longer a data set" test ! -e "$work/auto3/checkpoints/step-00000002"
worker 1 "$work/auto.json" "$work/auto3" --attempt 3 --resume latest
is "$?:$(jq -r 'select(.type == "run_start") | .resumed_from' "$work/auto3/attempt-3/events.jsonl")" "0:$work/auto3/checkpoints/step-00000003" \
    "the last one is whole"
is "$(cd "$work/auto3/checkpoints" && echo step-*)" step-00000003 "and alone, in the end"

# ---- a folder of checkpoints that cannot be listed: its contents are unknown, so the run must not start from the beginning
mkdir "$work/unlisted" && ln -s checkpoints "$work/unlisted/checkpoints"
worker 1 "$work/small.json" "$work/unlisted" --resume latest
fails_with $? "checkpoints that cannot be listed: latest fails"
like "$output" 'cannot list the checkpoints in .*: Too many levels of symbolic links' "and gives the reason"

# ---- a full disk: room for two checkpoints of 6.6 MB, and for a third once the ballast is gone. Paced, so that the run goes on for long enough.
cat >"$work/full.sh" <<'END'
mount -t tmpfs -o size=22m traind-test "$1" || exit 1
head -c 6600K /dev/zero >"$1/ballast"
mpirun --oversubscribe --bind-to none -np 1 "$top_builddir/tests/paced/train-worker" --job "$2" --run-dir "$1/run" >"$3/log" 2>&1 &
until [ "$(grep -cs '"type": "warning"' "$1/run/attempt-1/events.jsonl")" -ge 2 ] 2>/dev/null; do
    kill -0 $! 2>/dev/null || break
    sleep 0.1
done
ls "$1/run/checkpoints" >"$3/then"
rm "$1/ballast"
wait $!
status=$?
ls -A "$1/run/checkpoints" >"$3/now"
cp "$1/run/attempt-1/events.jsonl" "$3/"
exit $status
END
mkdir "$work/disk" "$work/seen"
job "$work/full.json" '.steps = 50'
if unshare --mount true 2>/dev/null; then
    unshare --mount bash "$work/full.sh" "$work/disk" "$work/full.json" "$work/seen"
    is "$?:$(jq -r 'select(.type == "run_stop") | .status' "$work/seen/events.jsonl")" "0:success" "training goes on over a full disk"
    like "$(jq -r 'select(.type == "warning") | .message' "$work/seen/events.jsonl" | head -n 1)" \
        '^checkpoint of step 3: cannot write .*[Nn]o space left' "with a warning that explains why there is no checkpoint"
    is "$(tr '\n' ' ' <"$work/seen/then")" "step-00000001 step-00000002 " "the older ones stay"
    is "$(tr '\n' ' ' <"$work/seen/now")" "step-00000049 step-00000050 " \
        "with room again they are written again, and nothing unfinished is left"
    unshare --mount bash -c 'mount -t tmpfs -o size=64k traind-test "$1" && mkdir "$1/run" && head -c 1M /dev/zero >"$1/ballast"
        mpirun --oversubscribe --bind-to none -np 1 "$top_builddir/tests/bin/train-worker" --job "$2" --run-dir "$1/run"' sh "$work/disk" "$work/full.json" >"$work/log" 2>&1
    is "$?" 8 "a run that finds it full at its start ends with its own exit status"

    # ---- full from between the first event and the provenance, whose warning does not fit either: rank 0 must not leave alone
    trial 2 pair '.cluster.workers_per_node = 2 | .steps = 1 | .checkpoint = {"disable": true}'
    events=$(sed '/"type": "step"/,$d' "$work/pair/attempt-1/events.jsonl" | wc -c)
    unshare --mount bash -c 'mount -t tmpfs -o size=256k traind-test "$1" && mkdir -p "$1/run/attempt-1" && cp "$3"/{job,plan}.json "$1/run" || exit 1
        room=$(($4 + 60)) file=$1/run/attempt-1/events.jsonl
        all=$(((room + 4095) / 4096 * 4096))
        head -c $((all - room)) /dev/zero >"$file" && fallocate --keep-size --length $all "$file"
        head -c 1M /dev/zero >"$1/ballast"
        timeout 600 mpirun --oversubscribe --bind-to none -np 2 "$top_builddir/tests/bin/train-worker" --job "$2" --run-dir "$1/run"' \
        sh "$work/disk" "$work/pair.json" "$work/pair" "$events" >"$work/log" 2>&1
    is "$?" 8 "one whose disk is full at the provenance ends on all ranks"
    like "$(cat "$work/log")" 'cannot write the event log.*[Nn]o space left' "and names the file that it could not write"
else
    skip "training goes on over a full disk" "needs the right to mount"
fi

done_testing
