#!/usr/bin/env bash
# Every target of tests/fuzz on its corpus, and on changes of it that are drawn from a seed: about four seconds. The same inputs each time;
# FUZZ_SEED and FUZZ_SECONDS choose others and more. Meant for a build with the sanitizers; without them only crashes and wrong numbers show.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"
private_folder
ulimit -c 0
export FUZZ_FOLDER=$work ASAN_OPTIONS=allocator_may_return_null=1
targets=$(sed -n 's/^ *{"\([a-z-]*\)", *fuzz_.*/\1/p' "$top_srcdir/tests/fuzz/targets.c")
count=$(wc -w <<<"$targets")

replay() { # TARGET
    FUZZ_INPUT=$work/input timeout 600 "$top_builddir/tests/fuzz/replay" --seed "${FUZZ_SEED:-1}" --seconds "$(awk -v all="${FUZZ_SECONDS:-4}" -v n="$count" 'BEGIN { print all / n }')" \
        "$top_srcdir/tests/fuzz/corpus" "$1" >"$work/log" 2>&1 && return
    tail -n 60 "$work/log"
    echo "the input, in base64:"
    base64 "$work/input"
    return 1
}
like "$count" '^1[0-9]$' "the table has its targets"
for target in $targets; do
    ok "$target: no input breaks it ($(find "$top_srcdir/tests/fuzz/corpus/$target" -type f | wc -l) in the corpus)" replay "$target"
done
done_testing
