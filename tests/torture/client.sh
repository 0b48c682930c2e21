#!/usr/bin/env bash
# trainctl when any one call fails: it prints an error, and a job that it calls submitted exists.
# shellcheck source=tests/api/runs.sh.inc
. "${top_srcdir:?is set by make check}/tests/api/runs.sh.inc"
# shellcheck source=tests/torture/lib.sh.inc
. "$top_srcdir/tests/torture/lib.sh.inc"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
start_runs
trainctl=$(program trainctl)
TORTURE=${TORTURE:-many} # a run takes a tenth of a second

cat >"$work/job.json" <<'END'
{"name": "one", "cluster": {"workers_per_node": 1, "threads_per_worker": 1}, "data": {"train": "synthetic", "train_images": 64},
 "batch_per_worker": 4, "steps": 1, "restart": {"max": 0}, "model": {"image_size": 32, "classes": 10, "width": 0.0625}}
END

scenario() {
    failing "$trainctl" --server "$url" plan "$work/job.json" >"$work/out" 2>"$work/words"
    status=$?
    [ "$status" != 0 ] || [ -s "$work/out" ] || finding "no plan, and no failure"
}
for call in memory openat:ENFILE write:ENOSPC socket:EMFILE; do
    torture plan trainctl "$call"
done

scenario() {
    failing "$trainctl" --server "$url" submit --json "$work/job.json" >"$work/out" 2>"$work/words"
    status=$?
    [ "$status" != 0 ] || curl -sf -o /dev/null "$url/v1/jobs/$(jq .id "$work/out")" || finding "says that a job is there which is not"
}
for call in memory read:EIO sendto:EPIPE; do
    torture submit trainctl "$call"
done
done_testing
