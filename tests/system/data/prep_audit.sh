#!/bin/bash
# train-prep audit: its report on good data and on data with each kind of fault.
# shellcheck source=tests/system/data/prep_lib.sh
. "${top_srcdir:?is set by make check}/tests/system/data/prep_lib.sh"
need_python

audit() { # leaves a JSON object in out
    "$prep" audit --json "$@" >out 2>err
    status=$?
}
# of CHECK JQ-EXPRESSION: the check's entry makes it true
of() { jq -e --arg name "$1" ".checks | map(select(.check == \$name)) | length == 1 and (.[0] | $2)" out; }
found() { jq -e --arg words "$1" '.findings | map(select(contains($words))) | length > 0' out; }

mkdir in
$python "$top_srcdir/tests/system/data/prep_data.py" imagenet in
"$prep" convert --from imagenet --in in --out good --shards 6 --eval-shards 2 >out 2>err

# ---- good data

audit good
check "good data are fine, with status 0" test "$status" = 0 -a "$(jq -r .verdict out)" = fine
check "records are counted" of records '.status == "ok" and .values.train_images == 162 and .values.validation_images == 40'
check "all pictures are decoded where there are few" of pictures '.values.decoded == 202'
check "classes are counted" of classes '.values == {role: "train", classes: 12, missing: 0, outside: 0, least: 8, most: 19}'
check "a random deal is well mixed" of mixing '.status == "ok" and .values.score > 0.9 and (.values.z | fabs) < 6'
check "the manifest agrees" of manifest '.status == "ok"'
audit --sample 7 good
check "--sample sets their number" of pictures '.values.decoded == 7'
audit --all good --threads 1
check "--all decodes all" of pictures '.values.decoded == 202'
"$prep" audit good >out 2>err
check "without --json it is a table" grep -q '^duplicates  *ok  *0 within training' out
audit good/train
check "a folder of one role is audited by itself" test "$status" = 0

# ---- photos that are stored turned

# All eight orientations in either byte order, none, and Exif data that ends too early.
$python - <<'END'
import os, struct
from PIL import Image
def save(name, exif):
    os.makedirs(f"turned/{name[0]}", exist_ok=True)
    Image.effect_noise((40, 30), 50).convert("RGB").save(f"turned/{name[0]}/{name}.jpg", **({"exif": exif} if exif else {}))
for big in 0, 1:
    order, mark = (">", b"MM") if big else ("<", b"II")
    for way in range(1, 9):
        entries = struct.pack(order + "HHIHH", 0x0112, 3, 1, way, 0)
        save(f"{big}{way}", b"Exif\0\0" + mark + struct.pack(order + "HIH", 42, 8, 1) + entries + bytes(4))
save("0none", None)
save("1short", b"Exif\0\0MM\0\x2a\xff\xff\xff\xff")
END
"$prep" convert --from folder --in turned --out upright --shards 1 >out 2>err
audit upright
check "turned photos are counted" of orientation '.status == "warning" and .values.turned == 14'
check "and what to do is said" of orientation '.text | test("exiftran -ai")'
$python - turned/*/*.jpg <<'END'
import sys
from PIL import Image
assert sum(Image.open(path).getexif().get(0x112, 1) != 1 for path in sys.argv[1:]) == 14
END
check "Pillow finds as many" test $? = 0

# ---- damage

shard=train/train-00002-of-00006
damage() { # OFFSET BYTES: writes into a copy's shard
    rm -rf bad && cp -r good bad
    printf "$2" | dd of=bad/$shard bs=1 seek="$1" conv=notrunc 2>/dev/null
    audit bad
}
damage 700 '\377'
check "a wrong checksum is a problem, with status 1" test "$status" = 1 -a "$(jq -r .verdict out)" = problems
check "one record is lost by it, not the shard" of records '.status == "problem" and .values.damaged == 1 and .values.train_images == 161'
check "it is named" found "$shard is corrupt: the checksum of the record at byte 0"
check "the manifest's hash does not agree either" of manifest '.status == "problem" and .values.differ == 1'
damage 0 '\000\000\000\000\000\000\000\200'
check "a length of 2^63 with a wrong checksum" found "the checksum of the record length at byte 0 is wrong"
forged() { # LENGTH: a shard that says so, with the right checksum of the length
    rm -rf bad && cp -r good bad
    $python - "$1" "$top_srcdir" bad/$shard <<'EOF'
import struct, sys
sys.path.insert(0, sys.argv[2] + "/tests/system/data")
sys.dont_write_bytecode = True
import prep_data
length = struct.pack("<Q", int(sys.argv[1]))
with open(sys.argv[3], "r+b") as out:
    out.write(length + struct.pack("<I", prep_data.masked(length)))
EOF
    audit bad
}
forged $((1 << 62))
check "a record longer than the file" found "is 4611686018427387904 bytes long, but only"
forged 9223372036854775808
check "a length of 2^63 with the right checksum" found "is 9223372036854775808 bytes long, but only"
check "costs that shard" of records '.values.train_images == 135'
rm -rf bad && cp -r good bad && truncate -s -100 bad/$shard
audit bad
check "a truncated shard" found "$shard is truncated"
rm -rf bad && cp -r good bad && : >bad/$shard
audit bad
check "an empty shard" found "$shard is empty"
rm bad/$shard
audit bad
check "a missing shard" test "$status" = 1
check "is named" found "shard train-00002-of-00006 is missing"
rm -rf bad && cp -r good bad && rm -r bad/validation
audit bad
check "missing validation shards" of manifest '.status == "problem" and .values.missing == 2'
rm -rf bad && cp -r good bad && rm bad/manifest.json
audit bad
check "no manifest is a warning" of manifest '.status == "warning"'
check "and no reason to fail" test "$status" = 0 -a "$(jq -r .verdict out)" = warnings
mv bad/train/train-00005-of-00006 kept && : >bad/train/train-00005-of-00006 && cp kept bad/train/train-00005-of-00006.bak
audit bad
check "a shard of 0 bytes without a manifest is no problem" test "$status" = 0
check "but a warning, as is a file beside shards" \
    of files '.status == "warning" and (.text | test("shards are empty .0 bytes.: train-00005-of-00006")) and
    (.text | test("ignored: train-00005-of-00006.bak"))'
rm -rf bad && cp -r good bad && rm bad/manifest.json && cp good/manifest.json bad/train/
jq '.classes |= reverse' good/manifest.json >bad/validation/manifest.json
audit bad
check "roles of different manifests need the same classes in the same order" \
    of "class names" '.status == "problem" and (.text | test("in a different order"))'
echo '{"format": 1}' >bad/manifest.json
audit bad
check "an empty manifest is a problem" test "$status" = 1

# ---- what is in the records: shards written by another program

rewrite() { # PYTHON: changes records, a list of (shard, key -> value) of the training
    rm -rf bad && cp -r good bad && rm bad/manifest.json
    $python - "$top_srcdir" "$1" bad/train/* <<'EOF'
import struct, sys
sys.path.insert(0, sys.argv[1] + "/tests/system/data")
sys.dont_write_bytecode = True
import prep_data
example = prep_data.example_class()
records = []
for path in sys.argv[3:]:
    data, at = open(path, "rb").read(), 0
    while at < len(data):
        length, = struct.unpack_from("<Q", data, at)
        records.append([path, example.FromString(data[at + 12:at + 12 + length])])
        at += 16 + length
def label(e):
    return e.features.feature["image/class/label"].int64_list.value
def jpeg(e):
    return e.features.feature["image/encoded"].bytes_list.value
exec(sys.argv[2])
for path in sys.argv[3:]:
    with open(path, "wb") as out:
        for shard, e in records:
            if shard == path:
                payload = e.SerializeToString()
                length = struct.pack("<Q", len(payload))
                out.write(length + struct.pack("<I", prep_data.masked(length)) + payload + struct.pack("<I", prep_data.masked(payload)))
EOF
    audit bad
}
rewrite 'records.sort(key=lambda r: label(r[1])[0])
for i, r in enumerate(records): r[0] = sys.argv[3 + i * 6 // len(records)]'
check "sorted classes are a problem" of mixing '.status == "problem" and .values.score < 0.4 and (.values.verdict | contains("not mixed"))'
rewrite 'for r in records:
    r[0] = r[0][:-10] + str(int(r[0][-10]) % 3 + (3 if label(r[1])[0] % 2 else 0)) + r[0][-9:]'
check "half of the classes in each shard: a score of a half" of mixing '.status == "problem" and (.values.score - 0.5 | fabs) < 0.08'
rewrite 'label(records[5][1])[0] = 0'
check "a label outside the classes" of classes '.status == "problem" and .values.outside == 1'
rewrite 'records = [r for r in records if label(r[1])[0] != 4]'
check "a missing class" of classes '.status == "problem" and .values.missing == 1'
rewrite 'jpeg(records[1][1])[0] = jpeg(records[0][1])[0]; label(records[0][1])[0] = 1; label(records[1][1])[0] = 2'
check "a duplicate within the training, of two classes" of duplicates '.values.train == 1 and .values.of_two_classes == 1'
rewrite 'records += [[records[0][0], r[1]] for r in records[10:20]]'
check "many duplicates are a problem" of duplicates '.status == "problem" and .values.train == 10'
rewrite 'data = open("bad/validation/validation-00000-of-00002", "rb").read(); length, = struct.unpack_from("<Q", data, 0)
jpeg(records[3][1])[0] = jpeg(example.FromString(data[12:12 + length]))[0]'
check "a validation image in the training is a problem" of duplicates '.status == "problem" and .values.validation_in_train == 1'
rewrite 'jpeg(records[3][1])[0] = jpeg(records[3][1])[0][:-200]'
check "a truncated JPEG" of pictures '.status == "problem" and .values.undecodable == 1'
check "is named with its place" found "Premature end of JPEG file"
rewrite 'j = jpeg(records[3][1])[0]; at = j.index(b"\xff\xc0"); jpeg(records[3][1])[0] = j[:at + 5] + b"\xff\xdc\xff\xdc" + j[at + 9:]'
check "a JPEG with 65500 x 65500 pixels in its header" found "65500 x 65500 pixels are over the limit"
rewrite 'del records[3][1].features.feature["image/class/label"]'
check "a record without a label" found "has no image/class/label"
rewrite 'records = [r for r in records if r[0][-10] != "4" or label(r[1])[0] % 3]'
check "shards of unlike sizes" of balance '.status == "warning"'

# ---- a plan

job() { printf '{"model": {"classes": 12}, "data": {"train": "good", "eval": "good"}, "epochs": 1, "batch_per_worker": %s, "eval": {"batch": 10}, "cluster": {"nodes": %s, "workers_per_node": 1}}' "$1" "$2" >job.json; }
job 27 2
audit --plan job.json good
check "a plan that divides the data evenly" \
    of plan '.status == "ok" and .values.dropped_images_per_epoch == 0 and .values.steps_per_epoch == 3'
check "on nodes too" of "plan (nodes)" '.status == "ok" and .values.unused_images_per_epoch == 0'
job 40 1
audit --plan job.json good
check "one that does not, and what that costs" of plan '.status == "warning" and .values.dropped_images_per_epoch == 2 and
    (.values.dropped_percent_of_step - 5 | fabs) < 0.01 and (.values.dropped_percent_of_epoch - 1.2346 | fabs) < 0.001'
job 10 4
audit --plan job.json good
check "shards that nodes cannot share evenly" \
    of "plan (nodes)" '.status == "warning" and .values.least == 27 and .values.most == 54 and .values.unused_images_per_epoch == 54'
check "and the evaluation's idle places" of "plan (validation)" '.values == {images: 40, runs: 1, idle_places: 0, idle_percent: 0}'
jq '.classes |= reverse' good/manifest.json >reversed.json && cp -r good other && mv reversed.json other/manifest.json
jq '.data.eval = "other"' job.json >eval.json
audit --plan eval.json good
check "data of other classes" \
    of plan '.status == "problem" and (.text | test("data.eval: has the classes of data.train in a different order"))'
jq '.model.classes = 11' job.json >few.json
audit --plan few.json good
check "more classes than the model has" of plan '.status == "problem" and (.text | test("data has 12 classes"))'
job 500 2
audit --plan job.json good
check "a batch larger than the data" of plan '.status == "problem"'
check "has status 1" test "$status" = 1
echo '{"mode": 1}' >job.json
audit --plan job.json good
check "an invalid job id is a usage error" test "$status" = 2
audit nowhere
check "a folder that is not there" test "$status" = 3
audit
check "no folder" test "$status" = 2
mkdir -p folder/a && touch folder/a/x.jpg
audit folder
check "class folders are not what it looks at" grep -q "contains no TFRecord shards" err

done_testing
