#!/usr/bin/env bash
# train-prep when any one call fails: it prints an error, and the same command again makes the same data set.
# shellcheck source=tests/system/lib.sh
. "${top_srcdir:?run it by make check}/tests/system/lib.sh"
not_for_coverage "gcov's own calls would fail, and end the program"
# shellcheck source=tests/torture/lib.sh.inc
. "$top_srcdir/tests/torture/lib.sh.inc"
small_data
prep=$(program train-prep)

convert() {
    "$@" "$prep" convert --from idx --in "$work/idx" --out "$work/out" --shards 2 --eval-shards 1 --threads 1
}

same() { # of what was made and of what it should be
    diff -r -x '.*' "$work/data" "$work/out" >/dev/null
}

scenario() {
    rm -rf "$work/out"
    convert failing >"$work/words" 2>&1
    status=$?
    if [ "$status" = 0 ]; then
        same || finding "says that all is well, but the data set differs"
    elif ! convert timeout 60 >"$work/again" 2>&1 || ! same; then
        finding "the same command again does not mend it: $(tail -n 1 "$work/again")"
    fi
}
for call in memory openat:ENFILE write:ENOSPC fsync:EIO rename,renameat,renameat2:EACCES mmap:ENOMEM clone,clone3:EAGAIN; do
    torture convert train-prep "$call"
done

cp -r "$work/data" "$work/served"
scenario() {
    rm -rf "$work/scratch"
    failing "$prep" stage --from "$work/served" --to "$work/scratch" >"$work/words" 2>&1
    status=$?
    if ! "$prep" stage --from "$work/served" --to "$work/scratch" >"$work/again" 2>&1; then
        finding "the same command again does not mend it: $(tail -n 1 "$work/again")"
    fi
}
for call in memory openat:ENFILE write:ENOSPC fsync:EIO rename,renameat,renameat2:EACCES; do
    torture stage train-prep "$call"
done
done_testing
