#!/bin/bash
# train-prep as a user runs it: conversions, their results, and every refusal.
# shellcheck source=tests/system/data/prep_lib.sh
. "${top_srcdir:?is set by make check}/tests/system/data/prep_lib.sh"

u32() { printf '\\x%02x\\x%02x\\x%02x\\x%02x' $(($1 >> 24 & 255)) $(($1 >> 16 & 255)) $(($1 >> 8 & 255)) $(($1 & 255)); }

# idx FOLDER STEM IMAGES LABELS: grey 4x4 images, image i all of i mod 256 but for its label; label i mod 5.
idx() {
    mkdir -p "$1"
    {
        printf '%b' "$(u32 0x803)$(u32 "$3")$(u32 4)$(u32 4)"
        awk -v n="$3" 'BEGIN { for (i = 0; i < n; i++) for (k = 0; k < 16; k++) printf "\\x%02x", (i * 3 + k * 5) % 256 }' |
            xargs -0 printf '%b'
    } >"$1/$2-images-idx3-ubyte"
    {
        printf '%b' "$(u32 0x801)$(u32 "$4")"
        awk -v n="$4" 'BEGIN { for (i = 0; i < n; i++) printf "\\x%02x", i % 5 }' | xargs -0 printf '%b'
    } >"$1/$2-labels-idx1-ubyte"
}

same_tree() { diff -r "$1" "$2"; }
count() { "$prep" show --json "$@" | wc -l; }
names() { "$prep" show --json "$@" | sed 's/.*"name":"\([^"]*\)".*/\1/'; }

idx small train 103 103
idx small t10k 11 11
gzip -k small/train-images-idx3-ubyte
rm small/train-images-idx3-ubyte

# ---- conversion

run convert --from idx --in small --out a --shards 5 --eval-shards 2 --seed 7
check "convert --from idx succeeds" test "$status" = 0
check "shards have the agreed names" test -f a/train/train-00004-of-00005 -a -f a/validation/validation-00001-of-00002
check "nothing else is left" test "$(find a -type f | wc -l)" = 8
check "every training image is kept" test "$(names a | sort -u | wc -l)" = 103
check "every validation image is kept" test "$(names --role validation a | sort -u | wc -l)" = 11
sizes() { "$prep" show --json a | jq -r .file | uniq -c | awk '{ print $1 }' | sort -u | tr '\n' ' '; }
check "shard sizes differ by at most one" test "$(sizes)" = "20 21 "
mixed() { "$prep" show --json a | jq -r '"\(.file) \(.class)"' | sort -u | cut -d" " -f1 | uniq -c | awk '{ print $1 }' | sort -u; }
check "every shard holds all classes" test "$(mixed)" = 5
check "the manifest's hash is xxh128 of the shard" \
    bash -c '! command -v xxhsum >/dev/null || grep -q "$(xxhsum -q -H2 a/train/train-00000-of-00005 | cut -d" " -f1)" a/manifest.json'
run convert --from idx --in small --out b --shards 5 --eval-shards 2 --seed 7
check "the same input and seed give the same bytes" same_tree a b
run convert --from idx --in small --out c --shards 5 --eval-shards 2 --seed 8
check "another seed gives another order" bash -c '! cmp -s a/train/train-00000-of-00005 c/train/train-00000-of-00005'
check "labels go with their images" bash -c "'$prep' show --json a | sed 's/.*\"class\":\([0-9]*\).*train-\([0-9]*\).*/\1 \2/' |
    awk '{ if (\$2 % 5 != \$1) exit 1; n++ } END { exit n != 103 }'"

# ---- an existing folder

check "an existing conversion is not touched" refused 1 "is not empty" convert --from idx --in small --out a --shards 5
check "and is still whole" same_tree a b
run convert --from idx --in small --out c --shards 3 --seed 7 --force --json
check "convert --json reports what was made" \
    test "$(jq -c '[.out, .train_shards, .validation_shards, .train_images > 0, .images_per_sec > 0]' out)" = '["c",3,1,true,true]'
check "--force replaces it whole" test "$status" = 0 -a "$(ls c/train | wc -l)" = 3 -a "$(count c)" = 103
mkdir other && echo precious >other/notes.txt
check "a folder with other things is refused" refused 1 "other/notes.txt" convert --from idx --in small --out other --shards 5
mkdir -p cut/train && echo half >cut/train/.train-00000-of-00005.tmp
run convert --from idx --in small --out cut --shards 5 --eval-shards 2 --seed 7
check "what an interrupted run left is replaced" same_tree a cut
mkdir busy
exec 9<busy && flock 9
check "two runs do not write into one folder" refused 1 "another train-prep is writing" convert --from idx --in small --out busy --shards 5
exec 9<&-

# ---- class folders

run extract --out jpegs a
check "extract writes every image" test "$status" = 0 -a "$(ls jpegs | wc -l)" = 103
check "show takes a record" test "$("$prep" show --json --record 7 a | jq -c .record)" = 7
check "or a range" test "$("$prep" show --json --record 7-9 a | jq .record | tr '\n' ' ')" = "7 8 9 "
check "or all from one on" test "$("$prep" show --json --record 101- a | jq .record | tr '\n' ' ')" = "101 102 "
check "and a class" test "$("$prep" show --json --class 4 a | jq -s -c '[length, (map(.class) | unique)]')" = "[20,[4]]"
check "and at most two of them" \
    test "$("$prep" show --json --class 4 --record 50- --limit 2 a | jq -s 'map(select(.class == 4 and .record >= 50)) | length')" = 2
check "a record that is not there" refused 3 "there is no record 103: a holds the records 0 to 102" show --record 100-103 a
check "a class that is not there" refused 3 "none of the records 0 to 102 is of class 5" show --class 5 a
check "prints no header" test ! -s out
check "an invalid range" refused 2 "expected N, N-M or N-" show --record 9-7 a
check "the table's columns are aligned" \
    test "$("$prep" show a | sed -E 's/^( *[a-z0-9]+  [^ ]+ +[a-z0-9]+ +[a-z0-9]+ +[a-z0-9]+ +[a-z0-9]+)  .*/\1/' | awk '{ print length }' | sort -u | wc -l)" = 1
run extract --json --class 2 --limit 3 --out three a
check "extract chooses in the same way and lists its files" \
    test "$(jq -r 'select(.class == 2) | .path' out | sort)" = "$(find three -type f | sort)"
check "extract does not overwrite" refused 1 "exists already" extract --out jpegs a
mkdir -p folder/train/{b,a,C} folder/validation/b
i=0
for f in jpegs/*; do
    set -- b a C
    shift $((i % 3))
    cp "$f" "folder/train/$1/$((i * 7919 % 1000)).jpg"
    i=$((i + 1))
done
cp jpegs/000000000-* folder/validation/b/x.JPEG
run convert --from folder --in folder --out f --shards 4
check "convert --from folder succeeds" test "$status" = 0 -a "$(count f)" = 103
check "classes are numbered in bytewise order" bash -c "tr -d ' \n' <f/manifest.json | grep -qF '\"classes\":[\"C\",\"a\",\"b\"]'"
check "a validation folder keeps the training's numbers" \
    bash -c "'$prep' show --json --role validation f | grep -q '\"class\":2,\"text\":\"b\"'"
check "the JPEG's bytes are kept" bash -c "'$prep' extract --role validation --out v f && cmp v/* folder/validation/b/x.JPEG"
cp -r folder beside && mkdir -p beside/tf_records/deeper && mv beside/validation beside/val
run convert --from folder --in beside --out bf --shards 4
check "another folder beside train and val is left alone" same_tree f/train bf/train
check "and val is the validation" same_tree f/validation bf/validation
mkdir -p vehicles/{train,tram} && cp folder/train/a/* vehicles/train/ && cp folder/train/b/* vehicles/tram/
run convert --from folder --in vehicles --out vf --shards 1
check "a class may be called train" bash -c "tr -d ' \n' <vf/manifest.json | grep -qF '\"classes\":[\"train\",\"tram\"]'"
mkdir moved && cp -r folder/train/b moved/b && cp -r folder/train/C moved/C && cp -r folder/train/a moved/a
run convert --from folder --in moved --out g --shards 4
check "the order does not depend on the file system, nor on train/" same_tree f/train g/train

# ---- bad input

check "no command" refused 2 "Usage"
check "an unknown command" refused 2 "unknown command bake" bake
check "a mistyped command" refused 2 "did you mean show" shwo
check "an unknown option" refused 2 "there is no option --wings" convert --wings
check "a missing option" refused 2 "--shards is missing" convert --from idx --in small --out x
check "a bad number" refused 2 "expected a whole number from 1" convert --from idx --in small --out x --shards 0
check "an unknown kind" refused 2 "expected imagenet, folder, idx or cifar" convert --from tar --in small --out x --shards 1
check "a missing input" refused 3 "nowhere" convert --from idx --in nowhere --out x --shards 1
check "more shards than images" refused 2 "more than the 103 images" convert --from idx --in small --out x --shards 104
mkdir empty
check "no idx files" refused 3 "there is no train-images-idx3-ubyte[.gz]" convert --from idx --in empty --out x --shards 1
mkdir -p parts/train parts/test systems && cp -r folder/train/* systems/ && cp "$(find folder/train -type f | head -1)" parts/train/1.jpg && cp parts/train/1.jpg parts/test/
check "folders named train and test are no classes" refused 2 "parts/train as the training data and parts/test as the evaluation data" \
    convert --from folder --in parts --out x --shards 1
mkdir systems/lost+found systems/nobody
run convert --from folder --in systems --out sf --shards 2
check "nor are a file system's folders" test "$status" = 0 -a "$(jq -r '.classes | index("lost+found")' sf/manifest.json)" = null
check "which is reported" grep -q "warning: systems: .* and are ignored: lost+found" err
check "as is a class without images" grep -q "warning: systems: .* no images and count as classes all the same: nobody" err
check "which counts" test "$(jq -r '.classes | index("nobody")' sf/manifest.json)" != null
mkdir systems/nobody/inside
check "classes are not nested" refused 2 "systems/nobody/inside is a folder, but class folders may contain only images" \
    convert --from folder --in systems --out x --shards 1
cp -r f beside-f && cp beside-f/train/train-00000-of-00004 beside-f/train/train-00000-of-00004.bak
run show beside-f
check "a copy beside shards is not read" test "$status" = 0 -a "$(grep -c . out)" = $(("$(count f)" + 1))
check "which is reported" \
    grep -q "warning: beside-f/train: these files are not shards of the data set and are ignored: train-00000-of-00004.bak" err
rm beside-f/train/train-00003-of-00004
check "and hides no missing one" refused 3 "shard train-00003-of-00004 is missing" show beside-f
check "an empty folder" refused 2 "no data set in empty" convert --from folder --in empty --out x --shards 1
idx counts train 10 9
check "counts that differ" refused 2 "10 train images, but 9 labels" convert --from idx --in counts --out x --shards 1
cp -r small magic && cp magic/train-labels-idx1-ubyte magic/t10k-images-idx3-ubyte
check "a bad magic number" refused 2 "magic number is 0x00000801, expected 0x00000803" convert --from idx --in magic --out x --shards 1
cp -r small cutgz && truncate -s -20 cutgz/train-images-idx3-ubyte.gz
check "a truncated gzip" refused 1 "train-images-idx3-ubyte.gz is truncated" convert --from idx --in cutgz --out x --shards 1
cp -r small badgz && printf '\377\377' | dd of=badgz/train-images-idx3-ubyte.gz bs=1 seek=60 conv=notrunc 2>/dev/null
check "a corrupt gzip" refused 1 "train-images-idx3-ubyte.gz is " convert --from idx --in badgz --out x --shards 1
cp -r small longer && echo more >>longer/train-labels-idx1-ubyte
check "bytes after the end" refused 2 "longer than its header specifies" convert --from idx --in longer --out x --shards 1
cp -r small half && rm half/t10k-labels-idx1-ubyte
check "images without labels" refused 3 "t10k-labels" convert --from idx --in half --out x --shards 1
printf 'a\nb\nc\nd\n' >four
"$prep" convert --from idx --in small --out padded --shards 1 --pad 2 >/dev/null 2>&1
check "--pad puts rows and columns around each image" bash -c "'$prep' show padded --json --limit 1 | jq -e '.width == 8 and .height == 8'"
check "--pad is not for folders" refused 2 "--pad is for --from idx" convert --from folder --in . --out y --shards 1 --pad 2
check "a label beyond the names of the classes" refused 2 "found label 4, but four names only 4" \
    convert --from idx --in small --out x --shards 1 --classes four
cp -r folder png && printf '\211PNG\r\n\032\n' >png/train/a/cat.JPEG
check "a broken PNG named .JPEG" \
    refused 1 "png/train/a/cat.JPEG: a PNG that cannot be read" convert --from folder --in png --out y --shards 2
check "nothing half-written looks complete" test "$(find y -name 'train-*' -o -name manifest.json | wc -l)" = 0
printf 'GIF89a, no JPEG' >png/train/a/cat.JPEG
check "a file that is no JPEG inside" refused 1 "png/train/a/cat.JPEG: Not a JPEG file" convert --from folder --in png --out y2 --shards 2
head -c -20 "folder/train/b/$(ls folder/train/b | head -1)" >png/train/a/cat.JPEG
check "a truncated JPEG" refused 1 "png/train/a/cat.JPEG: Premature end of JPEG file" convert --from folder --in png --out y3 --shards 2
run convert --from folder --in png --out fifty --shards 50 --eval-shards 1 --threads 1
check "shards before it are finished" test -s fifty/.convert.jsonl
check "but the same command would meet it again" bash -c '! grep -q "goes on from there" err'
# SOF0 of 65500 x 65500: where a small file wants 12 GB of memory
cp "folder/train/b/$(ls folder/train/b | head -1)" png/train/a/cat.JPEG
sof=$(LC_ALL=C grep -abo -m 1 -P '\xff\xc0' png/train/a/cat.JPEG | head -1 | cut -d: -f1)
printf '\377\334\377\334' | dd of=png/train/a/cat.JPEG bs=1 seek=$((sof + 5)) conv=notrunc 2>/dev/null
check "a JPEG of 65500 x 65500 pixels" \
    refused 2 "65500 x 65500 pixels are over the limit" convert --from folder --in png --out y4 --shards 2
# a scan more than 2,600 times: a small file that would take minutes
$python - png/train/a/cat.JPEG <<'END'
import io, sys
from PIL import Image
out = io.BytesIO()
Image.effect_noise((512, 512), 50).save(out, "jpeg", progressive=True)
jpeg = out.getvalue()
first = end = jpeg.index(b"\xff\xda")
while jpeg[end] != 0xff or jpeg[end + 1] in (0, 0xda):
    end += 1
open(sys.argv[1], "wb").write(jpeg[:end] + 2649 * jpeg[first:end] + jpeg[end:])
END
check "a JPEG of 2,649 scans" \
    refused 2 "png/train/a/cat.JPEG: a progressive JPEG of more than 100 scans" convert --from folder --in png --out y5 --shards 2
check "one that would be decoded" refused 2 "more than 100 scans" convert --from folder --in png --out y6 --shards 2 --resize 64
cp -r folder text && echo hello >text/train/a/readme.txt
check "a file that is no JPEG by name" refused 2 "readme.txt is not a JPEG file" convert --from folder --in text --out x --shards 2
mkdir -p stranger/validation/zebra && cp -r folder/train stranger/ && cp folder/validation/b/* stranger/validation/zebra
check "a validation class unknown to training" refused 2 "the class zebra" convert --from folder --in stranger --out x --shards 2
cp -r a damaged && printf '\0' | dd of=damaged/train/train-00002-of-00005 bs=1 seek=300 conv=notrunc 2>/dev/null
check "show names a damaged record" refused 1 "train-00002-of-00005 is corrupt" show damaged

# ---- no space: a small file system, where that can be had
complete_names() { find "$1" -name 'train-*' -o -name 'validation-*' -o -name manifest.json | wc -l; }
if [ "$(id -u)" = 0 ] && mkdir full && mount -t tmpfs -o size=48k none full 2>/dev/null; then
    check "a full disk" refused 1 "No space left" convert --from idx --in small --out full/x --shards 5 --eval-shards 2 --seed 7 --threads 1
    check "nothing half-written looks complete" test "$(complete_names full)" = 0
    check "the finished shards are reported as kept" grep -q "of 7 shards are finished" err
    mount -o remount,size=1m full
    run convert --from idx --in small --out full/x --shards 5 --eval-shards 2 --seed 7
    check "with more space the same command goes on" grep -q "resuming an earlier run" err
    check "to the same bytes" same_tree a full/x
    umount full
else
    skip "a full disk" "needs root and mount"
fi

# ---- interrupted, killed, and gone on with
if [ -f /usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz ]; then
    # 16,000 of its training images: long enough to be met at work
    mkdir fm-in
    fm_cut() { # FILE HEADER BYTES
        {
            printf '%b' "$2"
            zcat "/usr/share/datasets/fashion-mnist/$1.gz" | tail -c "+$((${#2} / 4 + 1))" | head -c "$3"
        } >"fm-in/$1"
    }
    fm_cut train-images-idx3-ubyte "$(u32 0x803)$(u32 16000)$(u32 28)$(u32 28)" $((16000 * 784))
    fm_cut train-labels-idx1-ubyte "$(u32 0x801)$(u32 16000)" 16000
    fm=(convert --from idx --in fm-in --shards 24 --pad 2)
    ended_by() { # SIGNAL SHARDS THREADS: sent once so many are finished; sets $status
        "$prep" "${fm[@]}" --out fm --threads "$3" >out 2>err &
        pid=$!
        until [ "$(cat fm/.convert.jsonl 2>/dev/null | wc -l)" -gt "$2" ] || ! kill -0 "$pid" 2>/dev/null; do
            tap_sleep 0.02
        done
        kill "-$1" "$pid" 2>/dev/null
        wait "$pid" 2>/dev/null
        status=$?
    }
    run "${fm[@]}" --out whole --threads 2
    for _ in $(seq 20); do # on a busy machine it may have ended before the signal
        rm -rf fm
        ended_by TERM 2 1
        [ $status = 0 ] || break
    done
    check "a signal ends it with 130" test $status = 130
    check "and leaves nothing that looks complete" test "$(complete_names fm)" = 0
    check "another seed does not go on with it" refused 1 "with seed 1, not 2" \
        "${fm[@]}" --out fm --seed 2
    mkdir only && cp small/train* only/
    check "nor does other input" refused 1 "different input" convert --from idx --in only --out fm --shards 24 --pad 2
    cp -r fm begun
    for _ in $(seq 20); do
        ended_by KILL $(($(wc -l <fm/.convert.jsonl) + 2)) 2
        [ $status = 0 ] || break
        rm -rf fm
        cp -r begun fm
    done
    check "so does a kill -9" test $status = 137
    printf '{"file": "train/train-000' >>fm/.convert.jsonl # what a torn write leaves
    run "${fm[@]}" --out fm --threads 1
    check "after a kill -9 the same command goes on" grep -q "resuming an earlier run" err
    check "to the same bytes as without, whatever the threads" same_tree whole fm
else
    skip "interrupted" "the package dataset-fashion-mnist is not installed"
fi

done_testing
