#!/usr/bin/env bash
# trainctl bench: short real runs, their output, refused options, and files that are left.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"
trainctl=$top_builddir/trainctl
TMPDIR=$(mktemp -d)
export TMPDIR NO_COLOR=1
trap 'rm -rf "$TMPDIR"' EXIT

bench() {
    output=$("$trainctl" bench "$@" 2>&1)
}

bench --image-size 32 --batch 4 --workers 2 --threads 1 --steps 2 --json
is $? 0 "a small training"
is "$(jq -c '[.arch, .mode, .image_size, .batch, .workers, .threads, .steps, .precision]' <<<"$output")" \
    '["resnet50","train",32,4,2,1,2,"fp32"]' "names what was measured"
is "$(jq '.images_per_sec > 0 and .gflops > 0 and .peak_gflops > 0 and .share_of_peak > 0 and
    .memory_bytes_per_worker > 1e8' <<<"$output")" true "has images/s, GFLOP/s, share of peak and memory"
# each is a median by itself, so the sum is near the step, not the step
is "$(jq '.step_ms > 0 and ([.phases[]] | length == 5 and all(. >= 0)) and .phases.forward_ms < .step_ms and
    .phases.backward_ms > .phases.forward_ms / 2' <<<"$output")" true "and the phases of a step"
is "$(jq '(.images_per_sec * .step_ms / 8000 - 1 | fabs) < 1e-6 and (.gflops / .peak_gflops / .share_of_peak - 1 | fabs) < 1e-6' \
    <<<"$output")" true "which fit together"
is "$(jq '.gb_per_image > 0 and .stream_gb_per_sec > 0 and (.gb_per_sec / (.gb_per_image * .images_per_sec) - 1 | fabs) < 1e-6 and
    (.gb_per_sec / .stream_gb_per_sec / .share_of_stream - 1 | fabs) < 1e-6' <<<"$output")" true "and so do its bytes, their rate and its share of STREAM"
# weights, gradients and momentum of 25.6 million parameters: three accesses by the passes and half of the update's five, as each
# of the two workers updates half, of 4 images
is "$(jq '.gb_per_image > 5.5 * 0.1022 / 4 and .gb_per_image < 5.5 * 0.1022 / 4 + 0.02' <<<"$output")" true "which are mostly those of the weights"

bench --image-size 32 --batch 4 --workers 1 --threads 2 --steps 2 --eval
is $? 0 "an evaluation on two threads"
like "$output" 'evaluation at 32x32, batch 4 per worker, 1 worker x 2 threads; median of 2 steps' "there is a line above the table"
like "$output" '^images/s +[0-9.]+' "which has images/s"
like "$output" '^speed of SGEMM +[0-9.]+ x  +[0-9.]+ GFLOP/s, SGEMM on the same cores' "and its ratio to SGEMM"
like "$output" '^GB/s +[0-9.]+  at least, from and to memory: [0-9.]+ GB per image' "the rate of its bytes"
like "$output" '^share of STREAM +[0-9.]+ %  [0-9.]+ GB/s, STREAM on the same cores' "and its share of what the memory can do"

bench --image-size 32 --batch 2 --workers 1 --threads $(($(nproc) + 1)) --steps 1
like "$output" "warning: $(($(nproc) + 1)) threads share $(nproc) cores?, so the results are unreliable" "more threads than cores are reported"

# In a /dev/shm of its own, as other tests' ranks share memory too.
if unshare --mount true 2>/dev/null; then
    output=$(unshare --mount sh -c 'mount -t tmpfs none /dev/shm && "$@" >/dev/null 2>&1 && ls -A /dev/shm' sh \
        "$trainctl" bench --arch resnet18 --image-size 32 --batch 2 --workers 2 --threads 1 --steps 1 2>&1)
    is "$? $output" "0 " "nothing stays in the memory that ranks share"
else
    skip "nothing stays in shared memory" "needs root: a mount namespace"
fi

bench --arch resnet500
is $? 2 "an unknown network is a usage error"
like "$output" '--arch: must be one of .*did you mean resnet50\?' "that names the nearest"
bench --batch many
is $? 2 "a batch that is no number"
like "$output" '--batch: must be an integer from 1' "is named by its option"
bench --precision fp8
like "$output" '--precision: must be one of "fp32", "bf16"' "so is an unknown precision"
bench --steps 0
like "$output" '--steps must be a number from 1' "and no steps"

limited() (
    ulimit -v 1200000
    exec "$trainctl" "$@"
)
if limited --version >/dev/null 2>&1; then
    output=$(limited bench --workers 2 --threads 1 --steps 1 2>&1)
    is $? 1 "a batch that needs more memory than there is fails"
    like "$output" 'the workers failed: .*memory' "with the workers' reason"
else
    skip "workers that fail" "a program with sanitizers does not run in little memory"
fi

# the workers are known by what the launcher put into their environment
workers() {
    grep -lzs "^TRAIND_ATTEMPT_DIR=$TMPDIR" /proc/[0-9]*/environ
}
"$trainctl" bench --image-size 32 --batch 4 --steps 100000 --threads 1 >/dev/null 2>&1 &
pid=$!
can_end() { # mpirun and two ranks are there, and it catches SIGTERM
    [ "$(workers | wc -l)" -ge 3 ] && (($(awk '/^SigCgt/ { print "0x" $2 }' /proc/$pid/status) & 1 << 14))
}
ok "a long one runs" eventually can_end
kill -TERM $pid
wait $pid
is $? 130 "a signal ends it"
is "$(ls -A "$TMPDIR")" "" "and no file is left"
no_workers() { [ -z "$(workers)" ]; }
ok "no process either" eventually no_workers

# An mpirun that does not end by SIGTERM: one in its place, in a mount namespace.
write_script "$TMPDIR/mpirun" <<END
#!/bin/sh
trap 'touch "$TMPDIR/asked"' TERM
while :; do sleep 0.1; done
END
if unshare --mount mount --bind "$TMPDIR/mpirun" /usr/bin/mpirun 2>/dev/null; then
    unshare --mount sh -c 'mount --bind "$TMPDIR/mpirun" /usr/bin/mpirun && exec "$@"' sh \
        "$trainctl" bench --image-size 32 --batch 4 --threads 1 >/dev/null 2>&1 &
    pid=$!
    can_end() { [ -n "$(workers)" ] && (($(awk '/^SigCgt/ { print "0x" $2 }' /proc/$pid/status) & 1 << 14)); }
    ok "one that does not end by a signal" eventually can_end
    kill -TERM $pid
    ok "is asked to" eventually test -e "$TMPDIR/asked"
    kill -TERM $pid
    wait $pid
    is $? 130 "and killed by the second"
    ok "with its processes" eventually no_workers
else
    skip "an mpirun that does not end by a signal" "needs root: a mount namespace"
fi

done_testing
