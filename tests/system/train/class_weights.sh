#!/usr/bin/env bash
# Data with many images of one class and few of another: 500 T-shirts and 20 shirts of Fashion-MNIST. With class_weights "balanced" the
# real daemon and worker find more of the shirts; what "balanced" counts is the same in class folders and shards, for one worker and two.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../../api/runs.sh.inc"
# shellcheck source=tests/system/idx.sh.inc
. "$top_srcdir/tests/system/idx.sh.inc"
/usr/bin/python3 -c 'import PIL' 2>/dev/null || skip_all "python3-pil is not installed"
mkdir "$work/idx"
idx 6000 train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz
idx 2000 t10k-images-idx3-ubyte.gz t10k-labels-idx1-ubyte.gz
/usr/bin/python3 - "$work" <<'END'
import os, sys
from PIL import Image
work = sys.argv[1]
for role, stem, most in ("train", "train", {0: 500, 6: 20}), ("validation", "t10k", {0: 150, 6: 150}):
    images = open(f"{work}/idx/{stem}-images-idx3-ubyte", "rb").read()[16:]
    for label, name in (0, "0-t-shirt"), (6, "1-shirt"):
        folder = f"{work}/data/{role}/{name}"
        os.makedirs(folder)
        labels = open(f"{work}/idx/{stem}-labels-idx1-ubyte", "rb").read()[8:]
        for i in [i for i, l in enumerate(labels) if l == label][:most[label]]:
            Image.frombytes("L", (28, 28), images[784 * i:784 * (i + 1)]).save(f"{folder}/{i:04}.png")
END
"$top_builddir/tests/bin/train-prep" convert --from folder --in "$work/data" --out "$work/shards" --shards 3 --eval-shards 1 >"$work/log" 2>&1
is $? 0 "train-prep makes shards of the folders"
"$top_builddir/tests/bin/train-prep" audit "$work/shards" >"$work/log" 2>&1
like "$(cat "$work/log")" '20 to 500 images.*class_weights' "its audit names the key, as the classes are uneven"

printf '%s\n' "worker = $top_builddir/tests/bin/train-worker" "slots = 2" "require_token = no" >"$work/traind.conf"
export OMP_NUM_THREADS=1 HOME=$work XDG_CACHE_HOME=$work/cache
start_daemon --config "$work/traind.conf"
base=$(jq -n --arg data "$work/data" '{model: {arch: "cnn"}, data: {train: $data, eval: $data}, eval: {batch: 50, predictions: true},
    cluster: {workers_per_node: 1, threads_per_worker: 1}, batch_per_worker: 52, epochs: 5, optimizer: {name: "adam"},
    lr: {base: 0.001, scaling: "none", warmup_epochs: 0, decay: "none"}, restart: {max: 0}}')

# run JQ-EXPRESSION: runs the base with changes; sets $id
run() {
    jq "$1" <<<"$base" >"$work/job.json"
    post_job
    ok "job $id, $1, ends well" wait_state "$id" succeeded
}
# found CLASS: how many of its 150 images the job finds
found() {
    /usr/bin/python3 -c 'import csv, sys
print(sum(r["label"] == r["top1"] == sys.argv[2] for r in csv.DictReader(open(sys.argv[1]))))' "$state/jobs/$id/attempt-1/predictions.csv" "$1"
}
result() { jq -c '.attempts[-1].result | [.weights, .losses]' "$state/jobs/$1/provenance.json"; }
log() { cat "$state/jobs/$id/attempt-1"/std*.log; }
losses() { sql "select json_extract(body, '$.loss') from job_event where job_id = $1 and type = 'step' order by id limit 10"; }

run .
plain=$(found 1)
plain_id=$id
run '.class_weights = []'
is "$(result "$id")" "$(result "$plain_id")" "no weights are the default"
run '.class_weights = [1, 1]'
like "$(paste <(losses "$id") <(losses "$plain_id") | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > worst) worst = d } END { print NR, (worst < 1e-4 ? "close" : worst) }')" \
    '^10 close' "with weights of 1 the losses are the same but for rounding"

run '.class_weights = "balanced"'
balanced=$id
ok "with \"balanced\" $(found 1) of 150 shirts are found instead of $plain" test "$(found 1)" -ge $((plain + 20))
ok "and still $(found 0) of 150 T-shirts" test "$(found 0)" -ge 100
like "$(log)" 'class_weights "balanced": from 0\.52 to 13$' "the log says what the weights are"
is "$("$top_builddir/trainctl" --server "unix:$socket" --json show "$id" | jq -c .spec.class_weights)" '"balanced"' "trainctl shows the word"
run '.class_weights = "balanced"'
is "$(result "$id")" "$(result "$balanced")" "the same job has the same bits"
run '.class_weights = [0.52, 13]'
is "$(result "$id")" "$(result "$balanced")" "and so have these weights as numbers"
is "$("$top_builddir/trainctl" --server "unix:$socket" --json show "$id" | jq -c .spec.class_weights)" '[0.52,13]' "which trainctl shows"
run '.class_weights = "balanced" | .cluster.workers_per_node = 2 | .batch_per_worker = 26 | .data.train = "'"$work"'/shards/train" | .epochs = 1'
like "$(log)" 'class_weights "balanced": from 0\.52 to 13$' "two workers count the same in shards"
is "$(log | grep -c 'class_weights "balanced": from')" 1 "and say it once"
jq '.class_weights = "balanced" | .cluster.nodes = 2 | .batch_per_worker = 20 | .epochs = 1 | .data += {"train": "'"$work"'/shards/train", "locality": "node"}' <<<"$base" >"$work/job.json"
TRAINCOMM_HOST_RANKS=1 mpirun --allow-run-as-root --oversubscribe --bind-to none -np 2 "$top_builddir/tests/bin/train-worker" --job "$work/job.json" --run-dir "$work/nodes" >"$work/log" 2>&1
is $? 0 "two nodes, each with shards of its own, train"
like "$(cat "$work/log")" 'class_weights "balanced": from 0\.52 to 13$' "and count the shards of both"
run '.class_weights = "balanced" | .model.classes = 4 | .epochs = 1'
like "$(log)" 'balanced": from 0\.52 to 13$' "classes without images do not change the weights of the others"
is "$(sql "select json_extract(body, '$.message') from job_event where job_id = $id and type = 'warning' and body like '%class_weights%'")" \
    'data.train has no images of 2 of the 4 classes, the first of them is 2: class_weights "balanced" gives them 0' "and a warning names them"
run '.class_weights = "balanced" | .mode = "eval" | del(.data.train) | .model.init = "'"$state/jobs/$balanced"'" | .model.classes = 2'
is "$(jq -c '[.top1, .eval_loss]' "$state/jobs/$id/attempt-1/../result.json")" "$(jq -c '[.top1, .eval_loss]' "$state/jobs/$balanced/result.json")" \
    "evaluations are not weighted"

ok "the daemon stops in order" stop_daemon
done_testing
