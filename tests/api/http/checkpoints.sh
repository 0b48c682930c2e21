#!/usr/bin/env bash
# Checkpoints over HTTP, of a real training: which are whole, downloads in parts, and damage; jobs side by side.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../runs.sh.inc"
export OMP_NUM_THREADS=1
printf '%s\n' "worker = $top_builddir/tests/bin/train-worker" "slots = 2" >"$work/traind.conf"
restart_runs
train() { # JQ
    jq -n "{name: \"small\", cluster: {workers_per_node: 1, threads_per_worker: 1}, data: {train: \"synthetic\", train_images: 64},
        batch_per_worker: 4, steps: 4, model: {arch: \"resnet18\", width: 0.0625, image_size: 32, classes: 10}, checkpoint: {every_steps: 2, keep: 2}, ema: {decay: 0.9},
        lr: {warmup_epochs: 0}} | $1" >"$work/job.json"
    call -d "@$work/job.json" /v1/jobs
}
train .
train '.seed = 2 | .lr += {base: 0.2, milestones: [1, 2]} | .checkpoint = {disable: true, keep: 2}'
ok "a training succeeds" wait_state 1 succeeded
ok "and another" wait_state 2 succeeded

run=$state/jobs/1/checkpoints
model=$run/step-00000004/model.safetensors
call /v1/jobs/1/checkpoints
want 200 "its checkpoints"
json '[.checkpoints[] | [.step, .epoch, .complete]] | tojson' '[[4,0.25,true],[2,0.125,true]]' "the newest first, both whole"
json '.checkpoints[0].bytes' "$(stat -c %s "$model")" "with the size of the weights"
json '.checkpoints[0].written | floor' "$(stat -c %Y "$model")" "and when they were written"
ok "a download is the file" cmp <(curl -sS "$url/v1/jobs/1/checkpoints/4") "$model"
call -I /v1/jobs/1/checkpoints/4
want 200 "HEAD"
like "$headers" "^Content-Length: $(stat -c %s "$model")$" "its size"
like "$headers" '^Content-Disposition: attachment; filename="job-1-step-4.safetensors"$' "its name"
tag=$(sed -n 's/^ETag: //p' <<<"$headers")
is "$tag" "\"$(jq -r '.files["model.safetensors"]' "$run/step-00000004/state.json")\"" "its digest is its entity tag"
call -H "If-None-Match: $tag" /v1/jobs/1/checkpoints/4
want 304 "who has it gets it not again"

part() { # RANGE BYTES-OF-THE-FILE NAME
    call -H "Range: $1" /v1/jobs/1/checkpoints/4
    want 206 "$3"
    ok "$3: its bytes" cmp "$work/body" <(tail -c "+$(($2 + 1))" "$model" | head -c "$4")
}
size=$(stat -c %s "$model")
part bytes=0-99 0 "the first 100 bytes" 100
like "$headers" "^Content-Range: bytes 0-99/$size$" "which ones they are"
part "bytes=$((size - 1000))-" $((size - 1000)) "all from a byte on" 1000
part bytes=-7 $((size - 7)) "the last seven" 7
part "bytes=$((size - 5))-99999999999" $((size - 5)) "to beyond the end" 5
for range in "bytes=$size-" bytes=99999999999- bytes=-0; do
    call -H "Range: $range" /v1/jobs/1/checkpoints/4
    refused 416 usage "the file has $size bytes" "nothing lies there ($range)"
done
for range in bytes=5-2 lines=1-2 bytes=a-b bytes=0-1,5-6 bytes= bytes=1; do
    call -I -H "Range: $range" /v1/jobs/1/checkpoints/4
    want 200 "what is no range of bytes is as none ($range)"
done
for range in bytes=5-2 bytes=100-x bytes=-5x; do
    ok "and the answer is the whole file ($range)" cmp <(curl -sS -m 300 -H "Range: $range" "$url/v1/jobs/1/checkpoints/4") "$model"
done
call -I -H 'Range: bytes=0-9' -H 'If-Range: "other"' /v1/jobs/1/checkpoints/4
want 200 "the part of another file is not wanted: the whole of this one"
call -H 'Range: bytes=0-9' -H "If-Range: $tag" /v1/jobs/1/checkpoints/4
want 206 "the part of this file"

call /v1/jobs/1/checkpoints/3
refused 404 not-found 'no checkpoint of step 3; it has those of the steps 4, 2' "a step without one"
call /v1/jobs/2/checkpoints/4
refused 404 not-found 'it has none' "a job without any"
call /v1/jobs/2/checkpoints
json '.checkpoints | tojson' '[]' "an empty list"
for step in x -1 1x %2e%2e; do
    call "/v1/jobs/1/checkpoints/$step"
    refused 400 usage 'whole number' "the step $step"
done
call /v1/jobs/1/checkpoints/9999999999999999999999
refused 404 not-found 'no checkpoint of step' "a step that no number holds"
call /v1/jobs/9/checkpoints
refused 404 not-found 'no job 9' "no such job"

printf x | dd of="$model" bs=1 seek=5000 conv=notrunc status=none
call /v1/jobs/1/checkpoints
json '[.checkpoints[].complete] | tojson' '[false,true]' "a damaged one is told"
call /v1/jobs/1/checkpoints/4
refused 422 corrupt 'is damaged' "and not given out"
for file in optimizer ema; do
    mv "$run/step-00000002/$file.safetensors" "$work/kept"
    call /v1/jobs/1/checkpoints
    json '[.checkpoints[].complete] | tojson' '[false,false]' "nor is one whole that lacks $file.safetensors"
    mv "$work/kept" "$run/step-00000002/$file.safetensors"
done
mv "$model" "$work/model" && ln -s "$work/model" "$model"
call /v1/jobs/1/checkpoints/4
refused 404 not-found 'no checkpoint of step 4' "no link leads out of the run directory"

# ------------------------------------------------------------------ side by side

call '/v1/compare?ids=1,2'
want 200 "two jobs side by side"
json '[.jobs[] | [.id, .state, .step, (.loss | type), has("spec")]] | tojson' '[[1,"succeeded",4,"number",false],[2,"succeeded",4,"number",false]]' "with their results"
json '[.differences[] | [.pointer, .values]] | sort | tojson' \
    '[["/checkpoint/disable",[false,true]],["/checkpoint/every_steps",[2,0]],["/lr/base",[0.1,0.2]],["/lr/milestones",[[30,60,80],[1,2]]],["/seed",[1,2]]]' \
    "and all in which their documents differ, defaults too"
call '/v1/compare?ids=2,1,2'
json '[.jobs[].id, (.differences[] | select(.pointer == "/seed") | .values)] | tojson' '[2,1,2,[2,1,2]]' "in the order asked for"
json '.provenance | tojson' '{"differences":[],"unknown":[]}' "nor do runs with the same programs"
rm "$state"/jobs/*/provenance.json
call '/v1/compare?ids=2,1,2'
json '.provenance | tojson' '{"differences":[],"unknown":[2,1,2]}' "runs of which nothing was noted are named"
noted() { # ID JSON
    printf '{"attempts": [%s]}' "$2" >"$state/jobs/$1/provenance.json"
}
noted 1 '{"world_size": 2, "machines": [{"version": "1.0", "cpu": "A", "flags": "fpu avx", "kernel": "Linux 6", "environment": {}}]}'
call '/v1/compare?ids=1,2'
json '.provenance | tojson' '{"differences":[],"unknown":[2]}' "one alone differs from none"
noted 2 '{"world_size": 2, "machines": [{"version": "1.1", "cpu": "A", "flags": "fpu avx avx2", "kernel": "Linux 7", "environment": {"UCX_TLS": "tcp"}}]}'
call '/v1/compare?ids=1,2'
json '.provenance.unknown, [.provenance.differences[] | [.what, .values, .may_change_bits]] | tojson' \
    "$(printf '%s\n' '[]' '[["machines.version",["1.0","1.1"],true],["machines.flags",["none","avx2"],true],["machines.kernel",["Linux 6","Linux 7"],false],["machines.environment.UCX_TLS",["not there","tcp"],true]]')" \
    "what the runs were computed with is compared"
out=$("$top_builddir/trainctl" --server "unix:$socket" compare 1 2)
like "$out" 'version of train-worker +1\.0 +1\.1' "trainctl compare has it"
like "$out" 'Linux \* +Linux 6 +Linux 7' "and marks what changes no bit"
noted 2 "$(head -c 9000000 /dev/zero | tr '\0' ' ')"
call '/v1/compare?ids=1,2'
json '.provenance.unknown | tojson' '[2]' "a file beyond all measure is as none"
noted 2 '7, null, {"machines": "x"}'
call '/v1/compare?ids=1,2'
json '.provenance | tojson' '{"differences":[],"unknown":[]}' "whatever a worker wrote"
rm "$state"/jobs/*/provenance.json
call '/v1/compare?ids=1,1'
json '.differences | tojson' '[]' "a job does not differ from itself"
call '/v1/compare?ids=1,77'
refused 404 not-found 'no job 77' "the missing one is named"
for ids in '' 1 '1,' ,1 a,b 1,,2 1,-2 "1,2$(printf ',1%.0s' {1..19})" 1%202; do
    call "/v1/compare?ids=$ids"
    refused 400 usage '2 to 20 jobs' "the ids \"${ids:0:12}\""
done
call /v1/compare
refused 400 usage '2 to 20 jobs' "no ids"
ok "the daemon stops in order" stop_daemon
done_testing
