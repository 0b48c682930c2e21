#!/usr/bin/env bash
# A short run of each kind of network on two ranks under valgrind, which sees what the sanitizers do not: memory that was never written, also
# behind MPI and OpenBLAS. make valgrind; about five minutes, so not in make check. Leaks of Open MPI itself are in valgrind.suppress.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"
needs valgrind
private_folder
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1 OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive

# trains MODEL: two steps with a checkpoint and an evaluation, by two ranks
trains() {
    jq -n --argjson model "$1" '{model: $model, data: {train: "synthetic", eval: "synthetic", train_images: 16, eval_images: 4},
        cluster: {workers_per_node: 2, threads_per_worker: 1}, batch_per_worker: 2, steps: 2, eval: {batch: 2}, checkpoint: {every_steps: 1}}' >"$work/job.json"
    rm -rf "$work/run"
    mpirun --oversubscribe --bind-to none -np 2 "$top_builddir/libtool" --mode=execute valgrind --quiet --error-exitcode=9 --leak-check=full \
        --show-leak-kinds=definite --errors-for-leak-kinds=definite --suppressions="$top_srcdir/tests/analyze/valgrind.suppress" --num-callers=30 \
        "$top_builddir/tests/bin/train-worker" --job "$work/job.json" --run-dir "$work/run"
}
ok "the small network" trains '{"arch": "cnn"}'
ok "a residual network" trains '{"arch": "resnet18", "width": 0.25, "stem": "small", "image_size": 32, "classes": 10}'
done_testing
