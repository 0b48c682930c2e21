#!/usr/bin/env bash
# train-prep convert --max-side, --quality and --reencode: what is encoded, what keeps its bytes, and what a later run goes on with.
# shellcheck source=tests/system/data/prep_lib.sh
. "${top_srcdir:?is set by make check}/tests/system/data/prep_lib.sh"
need_python

$python - <<'END'
import os, random
from PIL import Image
random.seed(1)
os.makedirs("in/train/a"), os.makedirs("in/train/b")
def picture(mode, width, height):
    small = Image.frombytes(mode, (9, 7), bytes(random.randrange(256) for _ in range(63 * len(mode))))
    return small.resize((width, height), Image.BICUBIC)
def save(name, mode, width, height, quality=96, **more):
    picture(mode, width, height).save(f"in/train/{name}", quality=quality, **more)
exif = Image.Exif()
exif[0x0112] = 6 # turn by 90 degrees
save("a/large.jpg", "RGB", 200, 150, exif=exif, icc_profile=b"a profile")
save("a/tall.jpg", "RGB", 100, 301)
save("a/grey.jpg", "L", 160, 120)
Image.effect_noise((160, 120), 60).save("in/train/a/noise.jpg", quality=96)
save("a/cmyk.jpg", "CMYK", 160, 120)
save("a/exact.jpg", "RGB", 200, 60, exif=exif)
save("b/small.jpg", "RGB", 59, 300)
save("b/rough.jpg", "RGB", 50, 50, 20)
save("b/large.png", "RGB", 120, 240)
save("b/small.png", "L", 30, 40)
END
made() { # FOLDER: name, size, channels, quantisation, metadata and bytes of each image, as JSON by name
    rm -rf files
    "$prep" extract --out files "$1" >/dev/null && $python - <<'END'
import glob, json, os
from PIL import Image
out = {}
for path in glob.glob("files/*"):
    image = Image.open(path)
    out[os.path.basename(path).split("-", 1)[1]] = {
        "size": image.size, "mode": image.mode, "table": sum(image.quantization[0]), "bytes": os.path.getsize(path),
        "exif": 0x0112 in image.getexif(), "profile": "icc_profile" in image.info,
        "sampling": [layer[1:3] for layer in image.layer]}
print(json.dumps(out))
END
}
of() { # JQ-EXPRESSION of what made printed
    jq -e "$1" made.json
}
kept() { # FOLDER NAME...: these have the bytes they had in the source
    local name
    for name in "${@:2}"; do
        cmp files/*-"$name" in/train/?/"$name" || return
    done
}
tables() { # QUALITY: sum of libjpeg's table
    $python -c "
import io
from PIL import Image
out = io.BytesIO()
Image.new('L', (8, 8)).save(out, 'jpeg', quality=$1)
print(sum(Image.open(out).quantization[0]))"
}

run convert --from folder --in in --out shrunk --shards 2 --max-side 60 --quality 90
check "larger images are reduced" test "$status" = 0
made shrunk >made.json
check "their short side is the given one, and they keep their shape" of \
    '."large.jpg".size == [80, 60] and ."tall.jpg".size == [60, 181] and ."grey.jpg".size == [80, 60] and ."cmyk.jpg".size == [80, 60] and ."large.png".size == [60, 120]'
check "with the given quality, colour at half resolution" of \
    "([.\"large.jpg\", .\"tall.jpg\", .\"cmyk.jpg\", .\"large.png\"] | all(.table == $(tables 90) and .sampling[0] == [2, 2] and .mode == \"RGB\")) and .\"grey.jpg\".table == $(tables 90)"
check "grey stays grey" of '."grey.jpg".mode == "L" and ."small.png".mode == "L"'
check "images as large or smaller keep their bytes, metadata included" kept exact.jpg small.jpg rough.jpg
check "which those that are encoded lose" of '."exact.jpg".exif and (."large.jpg" | .exif or .profile | not)'
check "a small PNG only changes its format" of ".\"small.png\".size == [30, 40] and .\"small.png\".table == $(tables 100)"
check "the pixels are those of Pillow's antialiased resize at the same quality" $python - <<'END'
import glob, io
from PIL import Image, ImageChops, ImageStat
def differs(name, how): # on average, in levels
    ours = Image.open(glob.glob("files/*-" + name)[0])
    out = io.BytesIO()
    Image.open("in/train/a/" + name).resize(ours.size, how).save(out, "jpeg", quality=90)
    return max(ImageStat.Stat(ImageChops.difference(Image.open(out), ours)).mean)
for name in "large.jpg", "tall.jpg", "grey.jpg", "noise.jpg":
    print(name, differs(name, Image.BILINEAR))
    assert differs(name, Image.BILINEAR) < 1.5
print("without antialiasing", differs("noise.jpg", Image.NEAREST))
assert differs("noise.jpg", Image.NEAREST) > 15
END
check "the manifest records both" jq -e '.resize == 60 and .quality == 90 and .reencode == false' shrunk/manifest.json
run audit shrunk
check "audit says so" grep -q "^manifest .*all shards match.*; images made with max-side 60, quality 90$" out
run audit --json shrunk
check "also to scripts" jq -e '.checks[] | select(.check == "manifest") | .values == {differ: 0, missing: 0, resize: 60, quality: 90, reencode: false}' out
run convert --from folder --in in --out same --shards 2 --resize 60 --quality 90
check "--resize is the same" diff -r shrunk same

run convert --from folder --in in --out all --shards 2 --reencode --quality 90 --json
check "all images are encoded" test "$status" = 0
made all >made.json
check "at their size" of '."large.jpg".size == [200, 150] and ."small.jpg".size == [59, 300]'
check "with the given quality" of "([.[\"large.jpg\", \"tall.jpg\", \"grey.jpg\", \"cmyk.jpg\", \"exact.jpg\", \"small.jpg\", \"large.png\", \"small.png\"]] | all(.table == $(tables 90)))"
check "except those that would become larger" kept rough.jpg
run audit all
check "audit reports that" grep -q "^manifest .*all shards match.*; images made with max-side 0, quality 90, reencode$" out

check "a quality without anything to encode" refused 2 "--max-side or --reencode" convert --from folder --in in --out x --shards 2 --quality 90
check "a side of no pixels" refused 2 "--max-side" convert --from folder --in in --out x --shards 2 --max-side 0

# An image that cannot be decoded ends the run; what is finished then belongs to these options.
mkdir -p damaged && cp -r in/train damaged/
bytes=$(stat -c %s in/train/b/small.jpg)
(head -c $((bytes / 2)) in/train/b/small.jpg && head -c $((bytes - bytes / 2)) /dev/zero) >damaged/train/b/small.jpg
cp damaged/train/b/small.jpg cut.jpg
half=(convert --from folder --in damaged --out half --shards 9 --threads 1)
for seed in 1 2 3 4 5; do # until the damaged image is not the first
    run "${half[@]}" --seed $seed --max-side 40 --quality 90
    [ -s half/.convert.jsonl ] && break
done
check "a damaged image to reduce is named" grep -q "damaged/train/b/small.jpg: " err
check "and nothing looks complete" test "$status" = 1 -a ! -e half/manifest.json -a -s half/.convert.jsonl
check "another side does not go on with what is finished" refused 1 "with max-side 40, not 41" "${half[@]}" --seed $seed --max-side 41 --quality 90
check "nor does another quality" refused 1 "with quality 90, not 80" "${half[@]}" --seed $seed --max-side 40 --quality 80
check "nor is the rest encoded" refused 1 "with reencode false, not true" "${half[@]}" --seed $seed --max-side 40 --quality 90 --reencode
cp in/train/b/small.jpg damaged/train/b/
run "${half[@]}" --seed $seed --max-side 40 --quality 90
check "the same command continues once the image is whole" grep -q "resuming an earlier run" err
run convert --from folder --in in --out whole --shards 9 --seed $seed --max-side 40 --quality 90
check "to the same bytes as without" diff -r half whole

# The other sources: of pixels, and of tars
$python "$top_srcdir/tests/system/data/prep_data.py" cifar .
run convert --from cifar --in cifar-10-binary.tar.gz --out cifar --shards 1 --max-side 16 --quality 90
made cifar >made.json
check "images of pixels are reduced too" of "length > 0 and all(.[]; .size == [16, 16] and .table == $(tables 90))"
done_testing
