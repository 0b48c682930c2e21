#!/usr/bin/env bash
# A rank waits for its data: opening one of its images does not return, as on a dead file server (hanging_file.c).
# shellcheck source=tests/system/lib.sh
. "${top_srcdir:?run it by make check}/tests/system/lib.sh"
run=""
trap '[ -z "$run" ] || { kill "$run" 2>/dev/null && wait "$run"; }; rm -rf "$work"' EXIT
small_data

mkdir -p "$work/images/train/one" "$work/images/train/two"
"$top_builddir/tests/bin/train-prep" extract --out "$work/jpeg" --limit 96 "$work/data" >/dev/null
find "$work/jpeg" -type f -exec mv '{}' "$work/images/train/one/" ';'
set -- "$work"/images/train/one/*
mv "$1" "$work/images/train/two/last.jpeg"

# In file order: the last image is read in the last of twelve steps, by the last rank. A small network: the other rank has done its part
# of a step before 4 s are over, also on a loaded machine.
cat >"$work/small.json" <<END
{"model": {"arch": "resnet18", "width": 0.0625, "classes": 2, "image_size": 64}, "data": {"train": "$work/images", "shuffle": false, "augment": false},
 "cluster": {"workers_per_node": 2, "threads_per_worker": 1}, "batch_per_worker": 4, "epochs": 10000, "lr": {"warmup_epochs": 0},
 "checkpoint": {"disable": true}}
END
events=$work/run/attempt-1/events.jsonl
ok "the library that lets a file hang is built" \
    "${CC:-cc}" -shared -fPIC -O1 -o "$work/hanging_file.so" "$top_srcdir/tests/system/train/hanging_file.c"
mpirun --oversubscribe --bind-to none -np 2 env LD_PRELOAD="$work/hanging_file.so" HANG_FILE=two/last.jpeg HANG_NOW="$work/hang" "$top_builddir/tests/bin/train-worker" --job "$work/small.json" --run-dir "$work/run" \
    --stall-seconds 4 >"$work/log" 2>&1 &
run=$!
ok "two ranks train on a folder of images" eventually grep -qs '"type": "step"' "$events"
# On a loaded machine a rank may wait so long for its data without it, and others than this rank too.
warnings() {
    jq -c 'select(.type == "warning" and .cause == "data" and .rank == 1)' "$events"
}
before=$(warnings | wc -l)
touch "$work/hang"
warned() { # of the step that does not end
    warning=$(warnings | tail -n +$((before + 1)) | tail -n 1)
    [ -n "$warning" ] && [ "$(jq .step <<<"$warning")" = "$(grep -c '"type": "step"' "$events")" ]
}
ok "a missing image is reported" eventually warned
is "$(jq -c '[.cause, .rank, .host, .step]' <<<"$warning")" "[\"data\",1,\"$(hostname)\",$(grep -c '"type": "step"' "$events")]" \
    "with the cause: the rank, its host, the last step"
like "$(jq -r .message <<<"$warning")" "^no step for [0-9]+ s: rank 1 on $(hostname) waits for data$" "with a readable message"
ok "the rank itself reports it too" eventually grep -qE 'rank 1: .*this rank is waiting for data for' "$work/log"
ok "and the other, that it waits for it" eventually grep -qE 'rank 0: .*this rank is waiting for the other ranks for' "$work/log"
kill "$run"
wait "$run"
run=""
gone() { ! pgrep -f "train-worker .*$work/run" >/dev/null; }
ok "nothing is left of the run" eventually gone

done_testing
