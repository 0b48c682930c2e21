#!/usr/bin/env bash
# The engine is built for several kinds of processor and the best is loaded (worker/Makefile.inc): the unit tests of what has vectors,
# which ran on the best already, with each of the others that this processor can run.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"
[ -d "$top_builddir/worker/v4" ] || skip_all "this build has one kind of engine (configure --with-march, or another architecture)"
private_folder
loader=/lib64/ld-linux-x86-64.so.2

has() { # LEVEL: of this processor, as the dynamic linker sees it
    $loader --help | grep -q "$1 (supported"
}

best="sse4.2"
! has x86-64-v3 || best=avx2
! has x86-64-v4 || best=avx512
is "$("$top_builddir/tests/bin/train-worker" --version | sed 's/.*(kernels: \(.*\))/\1/')" $best "the best kernels are loaded by themselves"

# A folder without glibc-hwcaps below it, searched first: what is in it is taken.
mkdir "$work/x86-64-v2"
ln -s "$top_builddir/worker/.libs/libtrainengine.so" "$work/x86-64-v2/"
ln -s "$top_builddir/worker/v3/.libs" "$work/x86-64-v3"

# Of all that has vectors. The models' tests take minutes with slower kernels.
programs=$(printf '%s\n' "$top_builddir"/tests/unit/{common/image,worker/data,worker/kernels,worker/layers,worker/optim}/unit)
for level in x86-64-v3 x86-64-v2; do
    if ! has $level || [ "$level $best" = "x86-64-v3 avx2" ] || [ "$level $best" = "x86-64-v2 sse4.2" ]; then
        skip "$level" "this processor cannot run it, or did already"
        continue
    fi
    while read -r program; do
        output=$(LD_LIBRARY_PATH=$work/$level "$program" --quiet 2>&1)
        report $? "${program#"$top_builddir"/tests/unit/} with the engine for $level" "$output"
    done <<<"$programs"
    library=$(LD_LIBRARY_PATH=$work/$level ldd "$top_builddir/tests/unit/worker/kernels/unit" | sed -n 's/.*libtrainengine.so => \(.*\) (0x.*/\1/p')
    is "$library" "$work/$level/libtrainengine.so" "which was the one"
done

done_testing
