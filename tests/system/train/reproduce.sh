#!/usr/bin/env bash
# A training by the real daemon and workers is repeated to the bit by trainctl reproduce, with the choices of its run; where a
# choice, the kernels or the data are others, it says so before, and at the end which step differs and why.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../../api/runs.sh.inc"
# shellcheck source=tests/system/idx.sh.inc
. "$top_srcdir/tests/system/idx.sh.inc"
small_data
export OMP_NUM_THREADS=1 HOME=$work XDG_CACHE_HOME=$work/cache
printf '%s\n' "worker = $top_builddir/tests/bin/train-worker" "slots = 2" >"$work/traind.conf"
start_daemon --config "$work/traind.conf"
trainctl() { "$top_builddir/trainctl" --server "unix:$socket" "$@"; }
result() { jq -r ".attempts[-1].result.$2" "$state/jobs/$1/provenance.json"; }

jq -n --arg data "$work/data" '{name: "first", data: {train: ($data + "/train"), eval: ($data + "/validation")}, batch_per_worker: 4, steps: 4,
    cluster: {workers_per_node: 2}, model: {arch: "resnet18", width: 0.0625, stem: "small", image_size: 32, classes: 10},
    lr: {warmup_epochs: 0, base: 0.01, scaling: "none"}, eval: {batch: 25}, checkpoint: {every_steps: 2, keep: 2}, restart: {max: 0}}' >"$work/job.json"
trainctl submit --wait "$work/job.json" >"$work/out" 2>&1
is $? 0 "a training ends well"

# ------------------------------------------------------------------ what is noted of it

call --unix-socket "$socket" /v1/jobs/1/provenance
want 200 "its provenance"
json '.attempts | length' 1 "has one attempt"
json '[.attempts[0] | .world_size, .threads_per_worker, .gradients, (.data.train.images), (.data.eval.images)] | map(tostring) | join(" ")' \
    "2 1 memory 96 50" "its ranks, threads, way between them and images"
json '.attempts[0].machines[0].openblas' "$("$top_builddir/tests/bin/train-worker" --self-check --json | jq -r '.blas as $b | "0.3.21 \($b)"' |
    sed "s/^0.3.21/$(jq -r '.attempts[0].machines[0].openblas | split(" ")[0]' <<<"$body")/")" "the kernels of OpenBLAS"
build_id() { readelf -n "$(readlink -f "$1")" | sed -n 's/.*Build ID: //p'; }
if command -v readelf >/dev/null; then
    json '.attempts[0].machines[0].build_id' "$(build_id "$top_builddir/tests/bin/train-worker")" "the build id of train-worker"
    json '.daemon.build_id' "$(build_id "$top_builddir/traind")" "and that of traind"
fi
json '.attempts[0].machines[0].libraries | has("libm.so.6") and (keys | any(startswith("libopenblas"))) and (keys | any(startswith("libtrainengine")))' \
    true "the libraries that compute"
json '.attempts[0].machines[0].environment | [.OMP_NUM_THREADS, has("HOME"), has("PATH")] | map(tostring) | join(" ")' "1 false false" \
    "the environment, of a list of names"
like "$(result 1 weights) $(result 1 losses) $(result 1 evaluations)" '^[0-9a-f]{32} [0-9a-f]{32} [0-9a-f]{32}$' "and digests of its result"
like "$(trainctl provenance 1)" 'processor +[A-Za-z]' "trainctl provenance shows it"

# ------------------------------------------------------------------ repeated

trainctl reproduce 1 >"$work/out" 2>"$work/err"
is "$? $(tail -n 1 "$work/out")" "0 job 2 reproduces job 1 bit by bit" "it is repeated to the bit"
sed 's/^/# /' "$work/err"
like "$(tr "\n" " " <"$work/out")" 'pinned: model.winograd_tiles = [0-9]' "with the choice of Winograd that its run measured"
is "$(sqlite3 "$state/traind.db" "select json_extract(spec, '$.reproduces') from job where id = 2")" 1 "and is linked to it"
is "$(result 2 weights)" "$(result 1 weights)" "as the digests of the weights say"
is "$(sha256sum <"$state/jobs/2/checkpoints/step-00000004/model.safetensors")" \
    "$(sha256sum <"$state/jobs/1/checkpoints/step-00000004/model.safetensors")" "and the files of the weights themselves"

# A run that was resumed halfway has the digests of one that was not.
mkdir "$work/resumed"
cp -r "$state/jobs/1/checkpoints" "$work/resumed/"
rm -r "$work/resumed/checkpoints/step-00000004"
cp "$state/jobs/2/job.json" "$work/resumed/"
mpirun --allow-run-as-root --oversubscribe -np 2 "$top_builddir/tests/bin/train-worker" --job "$work/resumed/job.json" --run-dir "$work/resumed" \
    --attempt 2 --resume latest >"$work/log" 2>&1
is "$? $(jq -r '.attempts[-1] | "\(.attempt) \(.weights.step) \(.result.weights) \(.result.losses) \(.result.evaluations)"' "$work/resumed/provenance.json")" \
    "0 2 2 $(result 1 weights) $(result 1 losses) $(result 1 evaluations)" "a run resumed at step 2 comes to the same digests"

# ------------------------------------------------------------------ something else

trainctl reproduce --set seed=2 1 >"$work/out" 2>&1
is "$?" 1 "with another seed it is not the same"
like "$(tr "\n" " " <"$work/out")" 'first step that differs is 1.*seed: 1 then, 2 in this job' "and the document gives the reason"
# A kind of core that every x86-64 supports and no machine of today is.
trainctl reproduce --set 'cluster.env={"OPENBLAS_CORETYPE": "Prescott"}' --set model.gemm=openblas 1 >"$work/out" 2>&1
is "$?" 1 "with other kernels of OpenBLAS it is not the same"
like "$(tr "\n" " " <"$work/out")" 'OpenBLAS and its kernels: [^,]*, [0-9.]* Prescott in this job' "and the provenance gives the reason"
trainctl reproduce --check 4 >"$work/out2" 2>&1
is "$? $(tail -n 1 "$work/out2")" "1 $(tail -n 1 "$work/out")" "as it does later"
like "$(trainctl --json reproduce --check 2 | jq -c '[.verdict, .same.weights, .first_step]')" '^\["same",true,null\]$' "and in JSON"
trainctl reproduce --check 1 >"$work/out" 2>&1
is "$?" 3 "a job that does not reproduce another is recognised"

"$top_builddir/tests/bin/train-prep" convert --from idx --in "$work/idx" --out "$work/other" --shards 2 --eval-shards 1 --seed 5 >/dev/null 2>&1
cp "$work"/other/train/* "$work/data/train/"
before=$(sql 'select count(*) from job')
trainctl reproduce 1 >"$work/out" 2>"$work/err"
is "$?" 1 "with other data nothing is submitted"
like "$(tr "\n" " " <"$work/err")" 'newest change of the training data: 20.* then, 20.* now.*--force' \
    "and reports that the data have changed"
is "$(sql 'select count(*) from job')" "$before" "no job came of it"
trainctl reproduce --force 1 >"$work/out" 2>"$work/err"
is "$?" 1 "forced, it runs"
like "$(tr "\n" " " <"$work/out")" 'does not reproduce.*first step that differs is 1.*the training data' \
    "and is not the same, because of the data"

# ------------------------------------------------------------------ one that ends before the other

stop_daemon
printf '%s\n' "worker = $top_builddir/tests/paced/train-worker" "slots = 2" >"$work/traind.conf"
start_daemon --config "$work/traind.conf"
jq '.steps = 24 | .data.eval = null | .checkpoint.disable = true' "$work/job.json" >"$work/long.json"
trainctl submit "$work/long.json" >/dev/null
whole=$(sql 'select max(id) from job')
trainctl reproduce "$whole" >"$work/out" 2>&1
like "$? $(grep -Eo 'job .*' "$work/out")" "^1 job $whole is (queued|starting|running): it can be reproduced when it has ended\$" \
    "a job that has not ended is not repeated"
call --unix-socket "$socket" -d "$(jq ".reproduces = $whole" "$work/long.json")" /v1/jobs
refused 422 invalid "job $whole is [a-z]*: it can be reproduced when it has ended" "nor by its own document"
ok "it ends" wait_state "$whole" succeeded

# cut_short ID STEPS [OPTION...]: reproduces a job and cancels the copy after STEPS steps; sets $copy
cut_short() {
    trainctl reproduce --no-wait "${@:3}" "$1" >"$work/out" 2>&1
    copy=$(sql 'select max(id) from job')
    eventually has_events "$copy" "$2"
    trainctl cancel "$copy" >/dev/null
    wait_state "$copy" cancelled
}
verdict() { # ID
    trainctl reproduce --check "$1" >"$work/out" 2>&1
    echo "$? $(tail -n 1 "$work/out")"
}
ok "a job that repeats it is cancelled" cut_short "$whole" 2 --set name=copy --set 'tags=["paper"]' --set note=why --set priority=7 \
    --set 'notify=[{"to": "mailto:eve@example.org"}]'
step=$(job "$copy" step)
is "$(verdict "$copy")" "6 job $copy was cancelled after step $step; up to there both are bit-identical" \
    "and reports up to which step both are equal"
is "$(trainctl --json reproduce --check "$copy" | jq -c '[.verdict, .same.weights, .same.losses, .same.evaluations, .first_step, .last_step, .documents]')" \
    "[\"same_so_far\",null,true,null,null,$step,[]]" "in JSON too; tags and what else bears on no bit are no causes"
half=$copy
ok "one that repeats that one goes further" cut_short "$half" $((step + 2))
is "$(verdict "$copy")" "6 job $half was cancelled after step $step; up to there both are bit-identical" "the other one is reported then"
ok "one with another seed is cancelled" cut_short "$whole" 2 --set seed=2
is "$(verdict "$copy" | cut -d' ' -f1) $(tr '\n' ' ' <"$work/out" | grep -Eo 'job [0-9]+ does not.*then, 2')" \
    "1 job $copy does not reproduce job $whole The first step that differs is 1. Possible causes:   seed: 1 then, 2" "and does not reproduce it"
trainctl reproduce --no-wait "$whole" >/dev/null 2>&1
copy=$(sql 'select max(id) from job')
trainctl cancel "$copy" >/dev/null
ok "one is cancelled at once" wait_state "$copy" cancelled
[ "$(job "$copy" step)" = 0 ] && end="was cancelled before its first step" || end=
like "$(verdict "$copy")" "${end:+^1 it is unknown whether job $copy reproduces job $whole: job $copy $end\$}" "and nothing is known of it"

submit nothing '' '{"reproduces": 99}'
refused 422 invalid 'there is no job 99 to reproduce' "what is to be reproduced must be there"
submit tiles '' '{"model": {"image_size": 32, "classes": 10, "winograd_tiles": "8x64-64:3/4/4"}}'
refused 422 invalid 'tiles of their three directions' "invalid tiles are refused"
ok "the daemon stops in order" stop_daemon
done_testing
