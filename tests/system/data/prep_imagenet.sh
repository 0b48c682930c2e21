#!/bin/bash
# train-prep convert from small tars like ImageNet's and CIFAR's; an independent reader reads the shards.
# shellcheck source=tests/system/data/prep_lib.sh
. "${top_srcdir:?is set by make check}/tests/system/data/prep_lib.sh"
need_python

data() { $python "$top_srcdir/tests/system/data/prep_data.py" "$@"; }
same_tree() { diff -r "$1" "$2"; }
all_are() { # FILE JQ-EXPRESSION: true of every record, of which there are some
    jq -es "length > 0 and all($2)" "$1"
}

mkdir in
data imagenet in
data cifar .

# ---- ImageNet

run convert --from imagenet --in in --out a --shards 6 --eval-shards 2 --threads 2
check "ImageNet's tars are converted" test "$status" = 0
data read a/train/* >train.jsonl
data read a/validation/* >validation.jsonl
check "an independent reader finds every training image, once" \
    test "$(jq -r '."image/filename"' train.jsonl | sort -u | wc -l)" = 162 -a "$(wc -l <train.jsonl)" = 162
check "and every validation image" \
    test "$(jq -r '."image/filename"' validation.jsonl | sort -u | wc -l)" = 40 -a "$(wc -l <validation.jsonl)" = 40
check "the keys are imagenet_to_gcs's, and image/class/text" all_are train.jsonl \
    'keys - ["shard", "mode", "middle", "bytes", "quality"] == ["image/channels", "image/class/label", "image/class/synset",
     "image/class/text", "image/colorspace", "image/encoded", "image/filename", "image/format", "image/height", "image/width"]'
check "labels count from 1 in the order of the synsets" all_are train.jsonl \
    '(."image/class/synset"[1:] | tonumber) == 1440764 + 37 * (."image/class/label" - 1)'
check "a training image's class is its tar's" all_are train.jsonl '."image/filename"[:9] == ."image/class/synset"'
check "validation labels follow the ground truth through meta.mat" all_are validation.jsonl \
    '."image/class/label" == ((."image/filename"[15:23] | tonumber) - 1) * 7 % 12 + 3 - (if ((."image/filename"[15:23] | tonumber) - 1) * 7 % 12 + 3 >= 12 then 12 else 0 end) + 1'
check "the words are meta.mat's" all_are validation.jsonl \
    '."image/class/text" == (."image/class/label" - 1 | "thing \(.), object \(.)")'
check "all is JPEG, the PNG and the CMYK ones too, but grey stays grey" all_are train.jsonl \
    '."image/encoded"[:4] == "/9j/" and ((.mode == "RGB" and ."image/channels" == 3) or (.mode == "L" and ."image/channels" == 1))'
check "what was re-encoded has quality 100, the rest its own" test \
    "$(jq -r 'select(.quality == 64) | ."image/filename"' train.jsonl | sort | tr '\n' ' ')" = \
    "n01440875_10002.JPEG n01440949_10000.JPEG n01441023_10004.JPEG "
check "the colours of the re-encoded PNG and CMYK images are right" all_are train.jsonl \
    'if .quality == 64 then ((."image/class/label" - 1) * 100 + (."image/filename"[10:15] | tonumber) - 10000) as $n |
     (.middle[0] - $n * 7 % 256 | fabs) < 4 and (.middle[1] - 128 | fabs) < 4 and (.middle[2] - 120 | fabs) < 4 else true end'
check "other images keep their bytes" bash -c 'tar -xOf in/ILSVRC2012_img_train.tar n01440801.tar | tar -xO n01440801_10003.JPEG >x.jpg &&
    n=$("'"$prep"'" show --json a | jq -r "select(.name == \"n01440801_10003.JPEG\") | .record") && "'"$prep"'" extract --out ex a && cmp ex/$(printf %09d "$n")-* x.jpg'
check "shard sizes differ by at most one" test "$(jq -r .shard train.jsonl | uniq -c | awk '{ print $1 }' | sort -u | tr '\n' ' ')" = "27 "
check "every shard holds most classes" \
    bash -c '[ "$(jq -r "\"\(.shard) \(.[\"image/class/label\"])\"" train.jsonl | sort -u | wc -l)" -gt 60 ]'
run convert --from imagenet --in in --out b --shards 6 --eval-shards 2 --threads 1
check "one thread gives the same bytes as two" same_tree a b
mkdir other && cp in/*.tar other/ && cp in/labels.txt other/imagenet_2012_validation_synset_labels.txt
run convert --from imagenet --in other --out c --shards 6 --eval-shards 2
check "the labels as a list of synsets are taken" test "$status" = 0
labels() { data read "$1"/validation/* | jq -c '[."image/filename", ."image/class/label"]' | sort; }
check "and say the same" test "$(labels c)" = "$(labels a)"
rm other/imagenet* && cp in/solution.csv other/LOC_val_solution.csv
sed 's/^\(n[0-9]*\)$/\1 words of \1/' in/labels.txt | sort -u >other/LOC_synset_mapping.txt
run convert --from imagenet --in other --out d --shards 6 --eval-shards 2
check "so are Kaggle's" test "$(labels d)" = "$(labels a)"
check "with their words" bash -c "'$prep' show --json d | jq -es 'all(.text | test(\"^words of n0144\"))'"
mkdir -p unpacked && cp in/*.tar unpacked/ && tar -xzf in/ILSVRC2012_devkit_t12.tar.gz -C unpacked
run convert --from imagenet --in unpacked --out u --shards 6 --eval-shards 2
check "an unpacked development kit will do" same_tree a u
mkdir reordered && cp in/*kit* reordered/ && mkdir t v && tar -xf in/ILSVRC2012_img_train.tar -C t && tar -xf in/ILSVRC2012_img_val.tar -C v
(cd t && tar --format=pax -cf ../reordered/ILSVRC2012_img_train.tar --sort=name .)
(cd v && tar --format=ustar -cf ../reordered/ILSVRC2012_img_val.tar --sort=name .)
run convert --from imagenet --in reordered --out r --shards 6 --eval-shards 2
check "the order and the kind of the tars do not matter" same_tree a r
# ---- unpacked, as imagenet_to_gcs and preprocess_imagenet leave it: class folders for training, one flat folder for validation
mkdir -p raw/train
for tar in t/*.tar; do
    mkdir "raw/train/$(basename "$tar" .tar)" && tar -xf "$tar" -C "raw/train/$(basename "$tar" .tar)"
done
cp -r v raw/validation && cp in/labels.txt raw/synset_labels.txt
run convert --from folder --in raw --out raw-out --shards 6 --eval-shards 2
check "the unpacked layout with a flat validation folder is taken" test "$status" = 0
check "each validation image has the label of its line" test "$(labels raw-out)" = "$(labels a)"
run audit raw-out
check "train-prep audit finds nothing wrong" test "$status" = 0
sed -i 1d raw/synset_labels.txt
check "too few labels" refused 2 "labels" convert --from folder --in raw --out raw-x --shards 6 --eval-shards 2
rm raw/synset_labels.txt
check "no labels" refused 3 "put synset_labels.txt" convert --from folder --in raw --out raw-x --shards 6 --eval-shards 2
mkdir short && cp in/*.tar short/ && cp in/labels.txt short/synset_labels.txt
run convert --from imagenet --in short --out s --shards 6 --eval-shards 2
check "the labels' short name is known beside the tars too" test "$(labels s)" = "$(labels a)"
run convert --from imagenet --in in --out small --shards 6 --eval-shards 2 --resize 24
data read small/train/* >small.jsonl
check "--resize makes the short side that long and keeps the shape" all_are small.jsonl \
    '([."image/width", ."image/height"] | min) == 24 and (."image/width" | . >= 24 and . <= 40)'
mkdir only && cp in/ILSVRC2012_img_train.tar only/
run convert --from imagenet --in only --out o --shards 2
check "the training tar alone will do" test "$status" = 0 -a ! -e o/validation
check "a class without a name is shown by its synset" bash -c "'$prep' show --json o | jq -es 'all(.text | test(\"^n0144\"))'"

# ---- ImageNet, broken

check "no tar at all" refused 3 "ILSVRC2012_img_train.tar" convert --from imagenet --in t --out x --shards 1
mkdir bad && cp in/* bad/ && rm bad/*kit*
check "a validation tar without its truth" refused 3 "put ILSVRC2012_devkit_t12.tar.gz" convert --from imagenet --in bad --out x --shards 1
tar -xzf in/*kit* -O ILSVRC2012_devkit_t12/data/ILSVRC2012_validation_ground_truth.txt >bad/ILSVRC2012_validation_ground_truth.txt
check "a ground truth without meta.mat" refused 3 "but not meta.mat" convert --from imagenet --in bad --out x --shards 1
tar -xzf in/*kit* -O ILSVRC2012_devkit_t12/data/meta.mat >bad/meta.mat
sed -i '7s/.*/1001/' bad/ILSVRC2012_validation_ground_truth.txt
check "a label outside the classes" \
    refused 2 'line 7 of ILSVRC2012_validation_ground_truth.txt is "1001"' convert --from imagenet --in bad --out x --shards 1
head -c 300 bad/meta.mat >m && mv m bad/meta.mat
check "a truncated meta.mat" refused 1 "meta.mat cannot be read" convert --from imagenet --in bad --out x --shards 1
rm bad/meta.mat
sed '3s/.*/n99999999/' in/labels.txt >bad/imagenet_2012_validation_synset_labels.txt
check "a class that is not in the training tar" \
    refused 2 "to class n99999999, which ILSVRC2012_img_train.tar does not have" convert --from imagenet --in bad --out x --shards 1
sed '3s/.*/a cat/' in/labels.txt >bad/imagenet_2012_validation_synset_labels.txt
check "a label that is no synset" \
    refused 2 'line 3 of imagenet_2012_validation_synset_labels.txt is "a cat"' convert --from imagenet --in bad --out x --shards 1
head -n 39 in/labels.txt >bad/imagenet_2012_validation_synset_labels.txt
check "too few labels" refused 2 "it has 39 labels" convert --from imagenet --in bad --out x --shards 1
(cat in/labels.txt && echo n01440764) >bad/imagenet_2012_validation_synset_labels.txt
check "too many labels" \
    refused 2 "holds 40 images, but imagenet_2012_validation_synset_labels.txt has 41 labels" convert --from imagenet --in bad --out x --shards 1
cp in/labels.txt bad/imagenet_2012_validation_synset_labels.txt
for cut in 300000 512 100 401408; do
    head -c $cut in/ILSVRC2012_img_train.tar >bad/ILSVRC2012_img_train.tar
    check "a training tar cut off at $cut bytes" refused 1 "ILSVRC2012_img_train.tar" convert --from imagenet --in bad --out x --shards 1
done
cp in/ILSVRC2012_img_train.tar bad/ && head -c 50000 in/ILSVRC2012_img_val.tar >bad/ILSVRC2012_img_val.tar
check "a truncated validation tar" refused 1 "ILSVRC2012_img_val.tar is truncated" convert --from imagenet --in bad --out x --shards 1
gzip -c in/ILSVRC2012_img_train.tar >bad/ILSVRC2012_img_train.tar
check "a compressed tar" \
    refused 1 "is a gzip file, not a tar archive: a compressed one is not read" convert --from imagenet --in bad --out x --shards 1
tar -cf bad/ILSVRC2012_img_train.tar -C v .
check "a training tar that is not a tar" refused 2 "expected a tar for each class" convert --from imagenet --in bad --out x --shards 1
check "none of these has written anything" test ! -e x

# ---- CIFAR

run convert --from cifar --in cifar-10-binary.tar.gz --out c10 --shards 3
data read c10/*/* >c10.jsonl
check "CIFAR-10 is converted from its archive" test "$status" = 0 -a "$(wc -l <c10.jsonl)" = 117
check "pixels and labels go together" all_are c10.jsonl '(."image/filename" | capture("(?<r>[a-z]+)-0*(?<n>[0-9]+)[.]") |
    (.n | tonumber) + (if .r == "test" then 100 else 0 end)) as $n | ."image/class/label" == $n % 10 + 1 and
    (.middle[0] - $n * 3 % 256 | fabs) < 3 and (.middle[1] - ($n * 3 + 40) % 256 | fabs) < 3 and (.middle[2] - ($n * 3 + 80) % 256 | fabs) < 3'
check "with the names of the classes" all_are c10.jsonl '."image/class/text" == "ten\(."image/class/label" - 1)"'
tar -xzf cifar-10-binary.tar.gz
run convert --from cifar --in cifar-10-batches-bin --out c10b --shards 3
check "the unpacked folder gives the same bytes" same_tree c10 c10b
mkdir hundred && mv cifar-100-binary.tar.gz hundred/
run convert --from cifar --in hundred --out c100 --shards 3 --pad 4
data read c100/*/* >c100.jsonl
check "CIFAR-100 takes the fine labels" all_are c100.jsonl '(."image/filename" | capture("(?<r>[a-z]+)-0*(?<n>[0-9]+)[.]") |
    (.n | tonumber) + (if .r == "test" then 200 else 0 end)) as $n | ."image/class/label" == $n % 100 + 1 and ."image/width" == 40'
truncate -s -1 cifar-10-batches-bin/data_batch_3.bin
check "a truncated CIFAR file" \
    refused 1 "data_batch_3.bin in cifar-10-batches-bin is truncated" convert --from cifar --in cifar-10-batches-bin --out x --shards 1
truncate -s +1 cifar-10-batches-bin/data_batch_3.bin
printf '\012' | dd of=cifar-10-batches-bin/data_batch_3.bin bs=1 seek=3073 conv=notrunc 2>/dev/null
check "a label outside CIFAR's classes" \
    refused 2 "record 1 of data_batch_3.bin has the label 10" convert --from cifar --in cifar-10-batches-bin --out x --shards 1
head -c $(($(stat -c %s cifar-10-binary.tar.gz) / 2)) cifar-10-binary.tar.gz >hundred/cifar-10-binary.tar.gz
check "a truncated archive" \
    refused 1 "cifar-10-binary.tar.gz is truncated" convert --from cifar --in hundred/cifar-10-binary.tar.gz --out x --shards 1

done_testing
