#!/usr/bin/env bash
# The reader of TFRecords and tf.Examples under libFuzzer: a few seconds from a fixed seed, with ASan and UBSan.
# For longer: FUZZ_RUNS=100000000 make check TESTS=tests/fuzz/records.sh
set -u
: "${top_srcdir:?run it by make check}" "${top_builddir:?}"
# shellcheck source=tests/tap.sh
. "$top_srcdir/tests/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/corpus"
command -v clang >/dev/null || skip_all "clang is not installed"

build() {
    # shellcheck disable=SC2046
    clang -std=gnu11 -D_GNU_SOURCE -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
        -I"$top_srcdir" -I"$top_builddir" -o "$work/records" "$top_srcdir"/tests/fuzz/records.c \
        "$top_srcdir"/common/{dataset/tfrecord,dataset/tf_example,error}.c "$top_builddir"/common/dataset/example.pb-c.c \
        $(pkg-config --cflags --libs libprotobuf-c libisal) 2>"$work/log" || { cat "$work/log"; false; }
}
fuzz() {
    "$work/records" -seed=1 -runs="${FUZZ_RUNS:-60000}" -max_len=4096 -max_total_time="${FUZZ_SECONDS:-20}" -artifact_prefix="$work/" \
        -dict="$top_srcdir/tests/fuzz/records.dict" "$work/corpus" "$top_srcdir/tests/fuzz/records-corpus" >"$work/log" 2>&1 ||
        { tail -50 "$work/log"; false; }
}
ok "the target builds" build
ok "no input breaks the reader" fuzz
like "$(cat "$work/log")" 'Done [0-9]+ runs|DONE' "and many were tried"
done_testing
