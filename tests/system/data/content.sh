#!/bin/bash
# What files are by their content: PNG of all kinds as Pillow and TensorFlow read it, also in class folders that are trained from;
# JPEGs that are cut; files that are something else than their place asks for; texts with a byte order mark.
# shellcheck disable=SC2034
# shellcheck source=tests/system/data/prep_lib.sh
. "${top_srcdir:?is set by make check}/tests/system/data/prep_lib.sh"
need_python
make_by() { "$python" "$top_srcdir/tests/system/data/content.py" "$@"; }
worker() {
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1 \
        mpirun --oversubscribe --bind-to none -np 1 "$top_builddir/tests/bin/train-worker" "$@"
}

# ---- PNG

make_by make_pngs pngs
run convert --from folder --in pngs --out pngs-out --shards 1
check "PNG files are converted, whatever the case and kind of their names' endings" test "$status" = 0
"$prep" show --json pngs-out >pngs.jsonl
"$prep" extract --out pngs-read pngs-out >/dev/null
check "depths, colours, palettes, interlacing, gamma, profiles, transparency: the pixels are Pillow's" \
    make_by check_pngs pngs-read pngs.jsonl
for end in 20 8 60; do
    mkdir -p "short/$end/train/a"
    head -c "-$end" pngs/train/all/c2d8i0.png >"short/$end/train/a/x.png" 2>/dev/null ||
        head -c "-$end" "$(find pngs/train/all -name 'c2d8i0.*')" >"short/$end/train/a/x.png"
    check "a PNG without its last $end bytes" refused 1 "a/x.png: a PNG that cannot be read: it is truncated" \
        convert --from folder --in "short/$end" --out short-out --shards 1
done

# ---- training from class folders: the same pixels give the same run

make_by make_twins twins
grey='"model": {"arch": "cnn", "classes": 2}, "batch_per_worker": 4, "epochs": 2'
colour='"model": {"arch": "resnet18", "width": 0.0625, "classes": 2, "image_size": 32, "stem": "small"}, "batch_per_worker": 4, "epochs": 2'
for kind in jpeg png mixed; do
    for model in grey colour; do
        cat >job.json <<END
{"seed": 3, ${!model}, "data": {"train": "$work/twins/$kind"}, "cluster": {"workers_per_node": 1, "threads_per_worker": 1},
 "checkpoint": {"disable": true}}
END
        worker --job job.json --run-dir "run-$kind-$model" >"run-$kind-$model.log" 2>&1
        result=$?
        check "class folders of $kind files train, $model" test $result = 0
        jq -c 'select(.type == "step") | [.step, .loss]' "run-$kind-$model/attempt-1/events.jsonl" >"$kind-$model.steps"
    done
done
check "there are steps" test "$(wc -l <jpeg-colour.steps)" = 12
for model in grey colour; do
    check "PNG files give the losses of JPEGs of the same pixels, $model" cmp jpeg-$model.steps png-$model.steps
    check "and so do both in one folder, $model" cmp jpeg-$model.steps mixed-$model.steps
done
cp -r twins/png twins/broken
truncate -s -20 twins/broken/b/01.png
jq ".data.train = \"$work/twins/broken\"" job.json >broken.json
worker --job broken.json --run-dir run-broken >run-broken.log 2>&1
check "a broken PNG in a class folder is named" \
    grep -q "using another one: .*/broken/b/01.png: a PNG that cannot be read: it is truncated" run-broken.log
check "and counted" grep -q "could not be decoded" run-broken.log
check "show has the size of a PNG" test "$("$prep" show --json twins/png | jq -r .width | sort -u)" = 48

# ---- JPEGs that are cut, and those that only look so

make_by make_jpegs jpegs
run convert --from folder --in jpegs/whole --out whole-out --shards 1
check "whole JPEGs with thumbnails, second pictures, trailing bytes" test "$status" = 0
for file in jpegs/cut/train/a/*; do
    name=${file##*/}
    mkdir -p "one/$name/train/a"
    cp "$file" "one/$name/train/a"
    check "a cut JPEG, ${name%.jpg}" refused 1 "a/$name: " convert --from folder --in "one/$name" --out "one-$name" --shards 1
done

# ---- what is something else

make_by make_kinds kinds
# is_not KIND WORDS: for a shard, an IDX file of convert, an image
is_not() {
    check "in place of a shard: $1" refused 1 "train-00000-of-00001 is $2, not a TFRecord file" show "kinds/shards/$1"
    run audit "kinds/shards/$1"
    check "so says audit: $1" grep -qF "train-00000-of-00001 is $2, not a TFRecord file" out
    [ "$1" = gzip ] || check "in place of an IDX file: $1" refused 2 "train-images-idx3-ubyte is $2, not an IDX file" \
        convert --from idx --in "kinds/idx/$1" --out x --shards 1
    case $1 in jpeg | png) return ;; esac
    check "in place of an image: $1" refused 1 "c/x.jpg: Not a JPEG file: it is $2" \
        convert --from folder --in "kinds/images/$1" --out x --shards 1
}
is_not lfs "a Git LFS pointer"
is_not html "an HTML or XML page"
is_not gzip "a gzip file"
is_not zlib "a zlib stream"
is_not zip "a ZIP archive"
is_not torch "a PyTorch file"
is_not torch_old "a PyTorch file"
is_not tar "a tar archive"
is_not text "a text file"
is_not gif "a GIF image"
is_not bmp "a BMP image"
is_not webp "a WebP image"
is_not tiff "a TIFF image"
is_not png "a PNG image"
is_not jpeg "a JPEG image"
check "compressed shards: what to do" refused 1 "a compressed one is not read; decompress it with gzip -d" show kinds/shards/gzip
mv kinds/images/gif/c/x.jpg kinds/images/gif/c/x.gif
check "a GIF by its name" refused 2 "c/x.gif is not a JPEG file or a PNG file: its name should end in .jpg, .jpeg or .png; it is a GIF image" \
    convert --from folder --in kinds/images/gif --out x --shards 1
# no_weights KIND WORDS
no_weights() {
    cat >job.json <<END
{"mode": "eval", "model": {"arch": "cnn", "init": "$work/kinds/init/$1.safetensors"}, "data": {"eval": "$work/twins/png"},
 "cluster": {"workers_per_node": 1, "threads_per_worker": 1}}
END
    "$top_builddir/trainctl" plan job.json >out 2>err
    check "trainctl plan says of model.init: $1" grep -qF -- "$2" <<<"$(tr -s ' \n' '  ' <err)$(tr -s ' \n' '  ' <out)"
}
no_weights lfs "$work/kinds/init/lfs.safetensors is a Git LFS pointer, not a safetensors file: fetch the file itself with git lfs pull"
for kind in torch torch_old pickle hdf5 onnx; do
    no_weights $kind "convert it to safetensors, as under EXAMPLES in train-job(5)"
done
no_weights html "is an HTML or XML page, not a safetensors file"
no_weights gzip "is a gzip file, not a safetensors file"

# ---- byte order marks

mark='\357\273\277'
marked() { { printf '%b' "$mark" && cat "$1"; } >"$2"; }
wide() { { printf '\377\376' && iconv -f UTF-8 -t UTF-16LE "$1"; } >"$2"; }
cat >job.json <<END
{"data": {"train": "synthetic"}, "cluster": {"workers_per_node": 1, "threads_per_worker": 1}}
END
marked job.json marked.json
wide job.json wide.json
"$top_builddir/trainctl" plan --json job.json >plain.out
"$top_builddir/trainctl" plan --json marked.json >marked.out
check "a job with a byte order mark" cmp plain.out marked.out
check "there is a plan" test -s plain.out
"$top_builddir/trainctl" plan wide.json >out 2>err
check "one in UTF-16" test $? = 2
check "differs from other faults" grep -q "UTF-16 or UTF-32 by its byte order mark; save it as UTF-8" err
mkdir -p flat/train/{n01,n02} flat/validation
cp twins/jpeg/a/00.jpg flat/train/n01 && cp twins/jpeg/b/01.png flat/train/n02
cp twins/jpeg/a/00.jpg flat/validation/1.jpg && cp twins/png/b/01.png flat/validation/2.png
printf 'n02\nn01\n' >labels
marked labels flat/synset_labels.txt
run convert --from folder --in flat --out flat-out --shards 1
check "synset_labels.txt with a byte order mark, for JPEG and PNG files" test "$status" = 0
check "the labels are right" \
    test "$("$prep" show --json --role validation flat-out | jq -r '"\(.name) \(.class)"' | sort | tr '\n' ,)" = "1.jpg 1,2.png 0,"
wide labels flat/synset_labels.txt
check "one in UTF-16" refused 2 "synset_labels.txt: the text is in UTF-16" convert --from folder --in flat --out flat-no --shards 1
done_testing
