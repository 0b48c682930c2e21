#!/usr/bin/env bash
# Where an evaluation is wrong, on images of Fashion-MNIST in class folders: the confusion matrix and the calibration error of a run of two
# workers and of one, against those computed from predictions.csv; the names of the classes; and the images of a mistake, as they are in the folder.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../../api/runs.sh.inc"
# shellcheck source=tests/system/idx.sh.inc
. "$top_srcdir/tests/system/idx.sh.inc"
/usr/bin/python3 -c 'import PIL' 2>/dev/null || skip_all "python3-pil is not installed"
mkdir "$work/idx"
idx 600 train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz
idx 300 t10k-images-idx3-ubyte.gz t10k-labels-idx1-ubyte.gz
/usr/bin/python3 - "$work" <<'END'
import os, sys
from PIL import Image
work = sys.argv[1]
names = "shirt trouser pullover dress coat sandal blouse sneaker bag boot".split()
for role, stem in ("train", "train"), ("validation", "t10k"):
    images = open(f"{work}/idx/{stem}-images-idx3-ubyte", "rb").read()[16:]
    for i, label in enumerate(open(f"{work}/idx/{stem}-labels-idx1-ubyte", "rb").read()[8:]):
        folder = f"{work}/data/{role}/{label}-{names[label]}"
        os.makedirs(folder, exist_ok=True)
        Image.frombytes("L", (28, 28), images[784 * i:784 * (i + 1)]).save(f"{folder}/{i:04}.png")
END
printf "%s\n" "worker = $top_builddir/tests/bin/train-worker" "slots = 2" "data_roots = $work" "require_token = yes" >"$work/traind.conf"
export OMP_NUM_THREADS=1
start_daemon --config "$work/traind.conf"
owner() { call --unix-socket "$socket" "$@"; }
owner -d '{"name": "reader", "role": "read"}' /v1/tokens
token=$(jq -r .token <<<"$body")
reader() { call -H "Authorization: Bearer $token" "$@"; }
trainctl() { TRAINCTL_SERVER=$url TRAINCTL_TOKEN=$token "$top_builddir/trainctl" "$@" 2>&1; }
ended() { [[ $(sql "select state from job where id = $1") =~ succeeded|failed|cancelled ]]; }

base=$(jq -n --arg data "$work/data" '{model: {arch: "cnn"}, data: {train: $data, eval: $data}, eval: {batch: 64, predictions: true, every_epochs: 1},
    cluster: {workers_per_node: 2, threads_per_worker: 1}, batch_per_worker: 25, epochs: 2, optimizer: {name: "adam"},
    lr: {base: 0.001, scaling: "none", warmup_epochs: 0, decay: "none"}, restart: {max: 0}}')
run() { # JQ-EXPRESSION: runs the base with changes; sets $id
    owner -d "$(jq "$1" <<<"$base")" /v1/jobs
    id=$(jq -r '.id // 0' <<<"$body")
    eventually ended "$id"
    is "$(sql "select state from job where id = $id")" succeeded "job $id succeeds"
}

run .
trained=$id
is "$(sql "select count(distinct step) from confusion where job_id = $id")" 2 "each evaluation has its matrix"
reader "/v1/jobs/$id/confusion?format=csv"
want 200 "the matrix as CSV"
cp "$work/body" "$work/two.csv"
reader "/v1/jobs/$id/confusion?limit=100000"
want 200 "and as JSON"
cp "$work/body" "$work/two.json"
like "$(/usr/bin/python3 - "$work" "$state/jobs/$id/attempt-1/predictions.csv" 2>&1 <<'END'
import collections, csv, json, sys
work, path = sys.argv[1:]
rows = [(int(r["label"]), int(r["top1"]), float(r["p"])) for r in csv.DictReader(open(path))]
cells = collections.Counter((label, top1) for label, top1, _ in rows)
table = {(int(r["label"]), int(r["predicted"])): int(r["images"]) for r in csv.DictReader(open(f"{work}/two.csv"))}
assert table == cells, (table, cells)
a = json.load(open(f"{work}/two.json"))
assert a["images"] == 300 and a["right"] == sum(label == top1 for label, top1, _ in rows)
assert {(m["label"], m["predicted"]): m["images"] for m in a["mistakes"]} == {c: n for c, n in cells.items() if c[0] != c[1]}
counts = [m["images"] for m in a["mistakes"]]
assert counts == sorted(counts, reverse=True) and len(counts) == a["mistaken_pairs"]
shares = [c["right"] / c["images"] for c in a["classes"]]
assert shares == sorted(shares) and sum(c["images"] for c in a["classes"]) == 300
assert all(c["right"] == cells[c["label"], c["label"]] for c in a["classes"])
bins = [[x for x in rows if i / 15 < x[2] <= (i + 1) / 15] for i in range(15)]
gap = sum(abs(sum(l == t for l, t, _ in b) - sum(p for *_, p in b)) / len(rows) for b in bins)
assert abs(gap - a["calibration_error"]) < 1e-5, (gap, a["calibration_error"])
print("the same")
END
)" "^the same$" "matrix, accuracies and calibration error are those of predictions.csv"
is "$(jq -r '.names | join(" ")' "$work/two.json")" \
    "0-shirt 1-trouser 2-pullover 3-dress 4-coat 5-sandal 6-blouse 7-sneaker 8-bag 9-boot" "with the names of the folders"
reader "/v1/jobs/$id/evals"
is "$(jq ".evals[-1].calibration_error == $(jq .calibration_error "$work/two.json")" <<<"$body")" true "the list of evaluations has the calibration error too"
reader "/v1/jobs/$id/events?types=confusion"
is "$(jq -c '[.events[] | has("cells"), .from]' <<<"$body")" "[false,0,false,0]" "the events say that it is there, without its cells"

run ".mode = \"eval\" | del(.data.train) | .model.init = \"$state/jobs/$trained\" | .cluster.workers_per_node = 1"
reader "/v1/jobs/$id/confusion?format=csv"
is "$body" "$(cat "$work/two.csv")" "one worker counts what two did"

read -r label predicted examples < <(jq -r '.mistakes[0] | "\(.label) \(.predicted) \(.examples)"' "$work/two.json")
folder=$(echo "$work/data/validation/$label"-*)
mapfile -t files < <(grep ",$label,$predicted," "$state/jobs/$trained/attempt-1/predictions.csv" | cut -d'"' -f2)
for ((i = 0; i < examples; i++)); do
    reader "/v1/jobs/$trained/confusion/image?label=$label&predicted=$predicted&number=$i"
    want 200 "image $i of the most frequent mistake"
    ok "it is the file" cmp "$work/body" "$folder/${files[i]}"
done
like "$headers" '^Content-Type: image/png' "as the PNG that it is"
reader "/v1/jobs/$trained/confusion/image?label=$label&predicted=$predicted&number=$examples"
refused 404 not-found "no such image" "no image beyond them"
reader "/v1/jobs/$trained/confusion/image?label=$label&predicted=$label"
refused 404 not-found "no such image" "nor of those that are right"
call "/v1/jobs/$trained/confusion/image?label=$label&predicted=$predicted"
want 401 "nor without a token"
reader "/v1/jobs/$trained/confusion?step=3"
refused 404 not-found "no confusion matrix of this step" "a step without an evaluation"

out=$(trainctl confusion --limit 3 "$trained")
like "$out" "$(jq -r '"\(.right) of 300 images right.*calibration error"' "$work/two.json")" "trainctl says how many are right"
like "$out" "$(jq -r '.names as $n | .mistakes[0] | "\($n[.label]) +\(.predicted) \($n[.predicted]) +\(.images)"' "$work/two.json")" "and which mistake is the most frequent"
is "$(trainctl confusion --csv "$trained")" "$(cat "$work/two.csv")" "and prints the matrix as CSV"

# Somebody's link out of data_roots, instead of an image.
mv "$folder/${files[0]}" "$work/kept.png"
ln -s /etc/passwd "$folder/${files[0]}"
reader "/v1/jobs/$trained/confusion/image?label=$label&predicted=$predicted"
like "$status" '^(403|409|422)$' "a link out of the folders of data is not followed"
rm "$folder/${files[0]}"
reader "/v1/jobs/$trained/confusion/image?label=$label&predicted=$predicted"
refused 409 conflict "has changed since the evaluation" "of a data set that has changed, none is sent"
reader "/v1/jobs/$trained/confusion"
want 200 "but the matrix stays"
owner -X DELETE "/v1/jobs/$id"
nothing_left() { [ "$(sql "select count(*) from confusion where job_id = $id")" = 0 ]; }
ok "a removed job leaves no matrix" eventually nothing_left
stop_daemon
done_testing
