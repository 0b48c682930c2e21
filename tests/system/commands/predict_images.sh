#!/usr/bin/env bash
# trainctl predict-images: classes and probabilities of images without labels, by a run's weights, against those of a plain evaluation of the
# same images, on images of Fashion-MNIST; and what it refuses.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"
private_folder
# shellcheck source=tests/system/idx.sh.inc
. "$top_srcdir/tests/system/idx.sh.inc"
/usr/bin/python3 -c 'import PIL' 2>/dev/null || skip_all "python3-pil is not installed"
trainctl=$(realpath "$top_builddir/trainctl")
mkdir "$work/idx" "$work/tmp"
idx 300 train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz
idx 100 t10k-images-idx3-ubyte.gz t10k-labels-idx1-ubyte.gz
cd "$work" || exit 1
unset TRAINCTL_SERVER TRAINCTL_CONTEXT TRAIND_STATE
export HOME=$work XDG_CONFIG_HOME=$work/config XDG_CACHE_HOME=$work/cache NO_COLOR=1 TMPDIR=$work/tmp OMP_NUM_THREADS=1
/usr/bin/python3 - <<'END'
import os
from PIL import Image
names = "shirt trouser pullover dress coat sandal blouse sneaker bag boot".split()
os.mkdir("flat")
for role, stem in ("train", "train"), ("validation", "t10k"):
    images = open(f"idx/{stem}-images-idx3-ubyte", "rb").read()[16:]
    for i, label in enumerate(open(f"idx/{stem}-labels-idx1-ubyte", "rb").read()[8:]):
        folder = f"data/{role}/{label}-{names[label]}"
        os.makedirs(folder, exist_ok=True)
        image = Image.frombytes("L", (28, 28), images[784 * i:784 * (i + 1)])
        image.save(f"{folder}/{i:04}.png")
        if role == "validation":
            image.save(f"flat/{i:04}.png")
END
jq -n '{name: "first", model: {arch: "cnn"}, data: {train: "data", eval: "data"}, eval: {batch: 64, predictions: true},
    cluster: {workers_per_node: 2, threads_per_worker: 1}, batch_per_worker: 25, epochs: 2, optimizer: {name: "adam"},
    lr: {base: 0.001, scaling: "none", warmup_epochs: 0, decay: "none"}}' >job.json
"$trainctl" run job.json >run.out 2>&1
is $? 0 "a run of two workers, with an evaluation"

predict() { # ARGUMENT...: what it prints in $work/out, its errors in $err, its exit code in $code
    "$trainctl" predict-images "$@" >"$work/out" 2>"$work/err"
    code=$?
    err=$(<"$work/err")
}
predict first flat
is "$code" 0 "the images without their labels"
is "$err" "" "say nothing else"
like "$(/usr/bin/python3 - 2>&1 <<'END'
import csv
plain = {r["file"]: (r["top1"], float(r["p"])) for r in csv.DictReader(open("first/attempt-1/predictions.csv"))}
names = "shirt trouser pullover dress coat sandal blouse sneaker bag boot".split()
rows = list(csv.DictReader(open("out")))
assert len(rows) == len(plain) == 100
assert [r["file"] for r in rows] == sorted(plain)
for r in rows:
    top1, p = plain[r["file"]]
    assert r["class"] == top1 and abs(float(r["p"]) - p) < 2e-5, (r, top1, p)
    assert r["name"] == f"{top1}-{names[int(top1)]}", r
assert len({r["class"] for r in rows}) > 4
print("the same")
END
)" '^the same$' "have the classes and probabilities of the plain evaluation, and the names of the classes"
predict --weights first/checkpoints/step-*/model.safetensors first flat
is "$code $(wc -l <out)" "0 101" "weights can be named"
# Open MPI 5 keeps a folder for its sessions there, one a user.
is "$(ls --ignore="ompi.*" tmp)" "" "nothing is left behind"

mkdir odd
cp flat/00*.png odd
cp flat/0001.png odd/$'a,\n"b.png'
head -c 200 flat/0002.png >odd/broken.png
predict first odd
is "$(grep -c '^"broken.png",,"",$' out) $(grep -A1 '^"a,$' out | tail -1 | cut -d, -f1)" '1 ""b.png"' "a broken image has no class, and a name may be odd"
echo RIFF0000WEBPVP8 >odd/photo.webp
predict first odd
is "$code" 2 "a WebP image is refused"
like "$err" 'photo.webp is not a JPEG file or a PNG file.*it is a WebP image: convert it to JPEG or PNG' "by its name, and with what to do"
predict nowhere flat
like "$code $err" '^[0-9]+ trainctl: .*nowhere' "no run"
predict first nowhere
like "$err" 'cannot open the folder nowhere' "no folder"
is "$(ls --ignore="ompi.*" tmp)" "" "nothing is left behind of all these"
done_testing
