#!/usr/bin/env bash
# data_roots: no symbolic link leads a job out of the folders that jobs may use, whether it is there when the job is submitted or comes
# while it waits. The real daemon, mpirun and train-worker.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../../api/runs.sh.inc"
# shellcheck source=tests/system/idx.sh.inc
. "$top_srcdir/tests/system/idx.sh.inc"

small_data
roots=$work/roots
mkdir -p "$roots" "$work/secret"
mv "$work/data" "$roots/set"
cp -r "$roots/set" "$work/secret/set"
printf '%s\n' "worker = $top_builddir/tests/bin/train-worker" "slots = 1" "cancel_grace_seconds = 2" "data_roots = $roots" >"$work/traind.conf"
start_daemon --config "$work/traind.conf"

# small NAME JQ-EXPRESSION: submits a job on the real images with changes
small() {
    jq -n --arg set "$roots/set" --arg name "$1" '{name: $name, cluster: {workers_per_node: 1, threads_per_worker: 1}, batch_per_worker: 8,
        steps: 2, data: {train: ($set + "/train")}, restart: {max: 0}, lr: {warmup_epochs: 0},
        model: {arch: "resnet18", width: 0.0625, stem: "small", image_size: 32, classes: 10}}' | jq "$2" >"$work/job.json"
    post_job
}

# occupy: a job that keeps the only slot until release
occupy() {
    small busy '.steps = 1000000 | .data = {train: "synthetic", train_images: 640}'
    busy=$id
    wait_state "$busy" running
}
release() {
    call -X POST "/v1/jobs/$busy/cancel"
    wait_state "$busy" cancelled
}

# ---- what is there at the submission
small inside .
want 201 "a data set beneath the roots is taken"
trained=$id
ok "and trained" wait_state "$trained" succeeded
like "$(cat "$state/jobs/$trained/attempt-1/command")" "--data-roots $roots" "the workers get the roots"
cp "$state/jobs/$trained/checkpoints/step-00000002/model.safetensors" "$work/secret/"
cp "$work/secret/model.safetensors" "$roots/"

cp -r "$roots/set" "$roots/linked"
rm "$roots/linked/train/train-00001-of-00002"
ln -s "$work/secret/set/train/train-00001-of-00002" "$roots/linked/train/"
for route in /v1/jobs /v1/plan; do
    jq --arg t "$roots/linked/train" '.data.train = $t' "$work/job.json" >"$work/linked.json"
    call -H 'Content-Type: application/json' --data-binary "@$work/linked.json" "$route"
    refused 422 invalid 'train-00001-of-00002 is not in a folder that jobs may use' "$route: a shard that is a link to elsewhere"
done
ln -s ../secret/model.safetensors "$roots/secret.safetensors"
small init ".model.init = \"$roots/secret.safetensors\""
refused 422 invalid '/model/init' "weights that are a link to elsewhere"

mkdir -p "$roots/byname/train"
ln -s "$roots/set/train/train-00000-of-00002" ../../set/train/train-00001-of-00002 "$roots/byname/train/"
small byname ".data.train = \"$roots/byname/train\" | .model.init = \"$roots/model.safetensors\""
want 201 "links that stay beneath a root are taken"
ok "and followed" wait_state "$id" succeeded

mkdir -p "$roots/pictures/a" "$roots/pictures/b"
"$top_builddir/tests/bin/train-prep" extract --out "$work/out" "$roots/set/train" >/dev/null 2>&1
n=0
while IFS= read -r jpeg; do
    n=$((n + 1))
    cp "$jpeg" "$roots/pictures/$([ $((n % 2)) = 0 ] && echo a || echo b)/$n.jpg"
done < <(find "$work/out" -name '*.jp*g' | sort | head -32)
ln -s "$work/secret" "$roots/pictures/c"
small pictures ".data.train = \"$roots/pictures\""
refused 422 invalid 'pictures/c is not in a folder' "a class folder that is a link to elsewhere"
rm "$roots/pictures/c"

# ---- what comes while the job waits
occupy
small shard .
shard=$id
small weights ".data.train = \"$roots/byname/train\" | .model.init = \"$roots/model.safetensors\""
weights=$id
small pictures ".data.train = \"$roots/pictures\""
pictures=$id
is "$(job "$shard" state) $(job "$weights" state) $(job "$pictures" state)" "queued queued queued" "three good jobs wait"
ln -sf "$work/secret/model.safetensors" "$roots/model.safetensors"
mv "$roots/set" "$roots/was"
mkdir "$roots/set"
ln -s "$work/secret/set/train" "$roots/set/train"
mv "$roots/was" "$roots/set-before"
rm "$roots/byname/train/"*
cp "$roots/set-before/train/"train-0000* "$roots/byname/train/"
cp "$roots/pictures/a/2.jpg" "$work/secret/2.jpg"
ln -sf "$work/secret/2.jpg" "$roots/pictures/a/2.jpg"
release
ok "the first job fails" wait_state "$shard" failed
like "$(job "$shard" reason)" "$roots/set/train is not in a folder that jobs may use" "by the folder that became a link"
ok "the second fails" wait_state "$weights" failed
like "$(job "$weights" reason)" "$roots/model.safetensors is not in a folder that jobs may use" "by the weights that became a link"
ok "the third fails" wait_state "$pictures" failed
like "$(job "$pictures" reason)" "2.jpg is not in a folder that jobs may use" "by the picture that became a link"
is "$(find "$work/secret" -name '.traind-index*')" "" "no index was written outside"

ok "the daemon stops in order" stop_daemon
done_testing
