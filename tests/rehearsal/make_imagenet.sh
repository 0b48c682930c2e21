#!/usr/bin/env bash
# The pictures of the rehearsal: 1,000 classes in tars like ImageNet's, the same bytes from each run with the same options, also after
# kill -9 at any time and with other threads, and messages where that is not possible.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"
# shellcheck source=tests/rehearsal/font.sh.inc
. "$top_srcdir/tests/rehearsal/font.sh.inc"
private_folder
cd "$work" || exit 1

# ------------------------------------------------------------------ what is made

make_images() { "$maker" "${font[@]}" --side 16 --scale "${scale:-400}" "$@" 2>>log; }
ok "it makes a four hundredth" make_images --threads 2 whole
is "$(ls whole)" "ILSVRC2012_img_train.tar
ILSVRC2012_img_val.tar
imagenet_2012_validation_synset_labels.txt
rehearsal.json" "which is ImageNet's files"
tar -tf whole/ILSVRC2012_img_train.tar >classes
is "$(sort -u classes | wc -l)" 1000 "with a tar for each of 1,000 classes"
is "$(grep -vcE '^n[0-9]{8}\.tar$' classes)" 0 "by the name of its synset"
mkdir train validation
tar -xf whole/ILSVRC2012_img_train.tar -C train
tar -xf whole/ILSVRC2012_img_val.tar -C validation
for class in train/*.tar; do tar -tf "$class"; done >images
is "$(sort -u images | wc -l) $(wc -l <images)" "3203 3203" "and 1,281,167 / 400 images"
is "$(grep -vcE '^n[0-9]{8}_[0-9]+\.JPEG$' images)" 0 "named as there"
is "$(cut -d_ -f1 images | sort | uniq -c | awk '{ print $1 }' | sort -nu | tr '\n' ' ')" "2 3 4 " "1.8 to 3.3 a class, rounded"
is "$(find validation -name 'ILSVRC2012_val_*.JPEG' | wc -l) $(wc -l <whole/imagenet_2012_validation_synset_labels.txt)" "125 125" \
    "and 50,000 / 400 for validation, each with a label"
is "$(sort -u whole/imagenet_2012_validation_synset_labels.txt | wc -l)" 125 "of as many classes"
is "$(sort whole/imagenet_2012_validation_synset_labels.txt | sed 's/$/.tar/' | comm -23 - <(sort classes))" "" "that are among the classes"
is "$(find validation -type f -exec head -c 3 {} \; | od -An -tx1 -v -w3 | sort -u)" " ff d8 ff" "all are JPEGs"
is "$(find validation -type f -exec sha256sum {} + | cut -d' ' -f1 | sort -u | wc -l)" 125 "no two are the same"

# ------------------------------------------------------------------ the same again

ok "one thread makes it again" make_images --threads 1 again
same() { cmp "$1/ILSVRC2012_img_train.tar" "$2/ILSVRC2012_img_train.tar" && cmp "$1/ILSVRC2012_img_val.tar" "$2/ILSVRC2012_img_val.tar"; }
ok "with the same bytes" same whole again
ok "a run that finds all makes nothing" make_images again
ok "another seed is other pictures" make_images --seed 2 other
differs() { ! same whole other >/dev/null; }
ok "with other bytes" differs

has_part() { [ -s killed/ILSVRC2012_img_train.tar.part ]; }
killed=0
for _ in 1 2 3; do
    "$maker" "${font[@]}" --side 16 --scale 400 --threads 1 killed 2>>log >/dev/null &
    for _ in $(seq 200); do
        has_part && break
        tap_sleep 0.02
    done
    kill -KILL $! 2>/dev/null && killed=$((killed + 1))
    wait $! 2>/dev/null
done
ok "one that was killed goes on" make_images killed
same whole killed >cmp.out 2>&1
report $? "and ends with the same bytes ($killed kills)" "$(cat cmp.out)"
ok "nothing unfinished is left" test ! -e killed/ILSVRC2012_img_train.tar.part
# As after a kill in the middle of a unit, of a header, and within the validation set.
for cut in 700000 1000000 1234567; do
    mkdir "cut$cut"
    cp whole/rehearsal.json "cut$cut"
    head -c $cut whole/ILSVRC2012_img_train.tar >"cut$cut/ILSVRC2012_img_train.tar.part"
    head -c 100000 whole/ILSVRC2012_img_val.tar >"cut$cut/ILSVRC2012_img_val.tar.part"
    ok "one that was cut off at byte $cut goes on" make_images "cut$cut"
    ok "and has the same bytes" same whole "cut$cut"
done
like "$(cat log)" "[1-9][0-9]* of 3203 images of ILSVRC2012_img_train.tar are there" "it says what it keeps"

# ------------------------------------------------------------------ what cannot be

refused() { # STATUS WORDS ARGUMENT...
    local said status=0
    said=$("$maker" "${@:3}" 2>&1) || status=$?
    is "$status" "$1" "refused: ${*:3}"
    like "$said" "$2" "with the reason"
}
refused 1 "whole was made with other options, which whole/rehearsal.json tells: use those, or another folder" "${font[@]}" --side 17 --scale 400 whole
refused 2 "scale 701: expected a whole number from 1 to 700" "${font[@]}" --scale 701 x
refused 2 "side 15: expected a whole number from 16" "${font[@]}" --side 15 x
refused 3 "there is no font none.ttf: name one with --font, or install Debian's fonts-vlgothic" --font none.ttf x
echo no >no.ttf
refused 3 "no.ttf cannot be read as a font" --font no.ttf --scale 700 y
refused 2 "DIR" "${font[@]}"
done_testing
