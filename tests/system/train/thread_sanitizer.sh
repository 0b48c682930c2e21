#!/usr/bin/env bash
# A step of networks of each kind by seven threads under ThreadSanitizer: no two threads touch the same memory without a
# barrier between them. It does not know how libgomp's threads meet, so the engine is compiled again with a team of POSIX
# threads (worker/team/parallel.c), and OpenBLAS is not looked into.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"

program=tests/bin/tsan_step
if ! make -s -C "$top_builddir" $program; then
    echo 'int main(void) { return 0; }' | ${CC:-cc} -fsanitize=thread -x c -o /dev/null - 2>/dev/null ||
        skip_all "this compiler makes no programs for ThreadSanitizer"
    ok "the engine is compiled for ThreadSanitizer" false
    done_testing
    exit
fi

# step NAME ARGUMENT...: runs clean; what it finds is in the log. One step, unless --steps 1 follows: the program warms up by one.
# Networks as narrow as they can be: the threads meet as often, and have less to do between. Where groups or bf16 need more channels,
# two stages.
step() {
    local name=$1
    shift
    ok "$name" env TSAN_OPTIONS="halt_on_error=1 exitcode=66" OPENBLAS_NUM_THREADS=1 \
        "$top_builddir/$program" --threads 7 --steps 0 --classes 10 --width 0.0625 "$@"
}

step "bottlenecks, direct" --arch resnet50 --image-size 32 --batch 3 --no-winograd
step "basic blocks by tiles of 4x4, tiles of their own" --arch resnet18 --image-size 64 --batch 5 --winograd 4
step "basic blocks by tiles of 2x2" --arch resnet18 --image-size 32 --small-stem --batch 2 --winograd 2
step "groups" --stages 2 --width 1 --arch resnext50_32x4d --image-size 32 --batch 3 --no-winograd
step "two steps of one image" --steps 1 --arch resnet18 --image-size 32 --batch 1 --no-winograd
step "bf16, direct" --stages 2 --width 0.5 --arch resnet18 --image-size 32 --batch 2 --bf16 --no-winograd
step "bf16 by tiles of 4x4" --stages 2 --width 0.5 --arch resnet18 --image-size 32 --batch 2 --bf16 --winograd 4
step "an evaluation" --arch resnet18 --image-size 64 --batch 5 --winograd 4 --eval
done_testing
