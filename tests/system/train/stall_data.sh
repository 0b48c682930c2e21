#!/usr/bin/env bash
# A rank whose data do not come: opening one of its images does not end, as on a dead file server (hanging_file.c). Prints TAP.
# shellcheck disable=SC2317
set -u
# shellcheck source=tests/tap.sh
. "${top_srcdir:?is set by make check}/tests/tap.sh"
# shellcheck source=tests/system/lib.sh
. "$top_srcdir/tests/system/lib.sh"
run=""
trap '[ -z "$run" ] || { kill "$run" 2>/dev/null && wait "$run"; }; rm -rf "$work"' EXIT
small_data

mkdir -p "$work/images/train/one" "$work/images/train/two"
"$top_builddir/tests/bin/train-prep" extract --out "$work/jpeg" --limit 96 "$work/data" >/dev/null
find "$work/jpeg" -type f -exec mv '{}' "$work/images/train/one/" ';'
set -- "$work"/images/train/one/*
mv "$1" "$work/images/train/two/last.jpeg"

# In file order: the last image is read in the last of twelve steps, by the last rank.
cat >"$work/small.json" <<END
{"model": {"classes": 2, "image_size": 64}, "data": {"train": "$work/images", "shuffle": false, "augment": false},
 "cluster": {"workers_per_node": 2, "threads_per_worker": 1}, "batch_per_worker": 4, "epochs": 1000, "lr": {"warmup_epochs": 0},
 "checkpoint": {"disable": true}}
END
events=$work/run/attempt-1/events.jsonl
ok "the library that lets a file hang is built" "${CC:-cc}" -shared -fPIC -O1 -o "$work/hanging_file.so" "$top_srcdir/tests/system/train/hanging_file.c"
mpirun --oversubscribe --bind-to none -np 2 env LD_PRELOAD="$work/hanging_file.so" HANG_FILE=two/last.jpeg HANG_NOW="$work/hang" "$top_builddir/tests/bin/train-worker" --job "$work/small.json" --run-dir "$work/run" \
    --stall-seconds 4 >"$work/log" 2>&1 &
run=$!
within() { # SECONDS COMMAND...
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.05
    done
}
ok "two ranks train on a folder of images" within 60 grep -qs '"type": "step"' "$events"
touch "$work/hang"
warnings() {
    jq -c 'select(.type == "warning" and .cause == "data")' "$events"
}
warned() {
    warnings | grep -q .
}
ok "an image does not come, and it is said" within 240 warned
warning=$(warnings | head -n 1)
is "$(jq -c '[.cause, .rank, .host, .step]' <<<"$warning")" "[\"data\",1,\"$(hostname)\",$(grep -c '"type": "step"' "$events")]" "with the cause: the rank, its host, the last step"
like "$(jq -r .message <<<"$warning")" "^no step for [0-9]+ s: rank 1 on $(hostname) waits for data$" "in words"
like "$(cat "$work/log")" 'rank 1: .*this rank is waiting for data for' "the rank itself says so too"
like "$(cat "$work/log")" 'rank 0: .*this rank is waiting for the other ranks for' "and the other, that it waits for it"
kill "$run"
wait "$run"
run=""
gone() { ! pgrep -f "train-worker .*$work/run" >/dev/null; }
ok "nothing is left of the run" within 10 gone

done_testing
