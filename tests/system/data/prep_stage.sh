#!/bin/bash
# train-prep stage: shards to a node's own disk, as a Slurm prolog calls it.
# shellcheck source=tests/system/data/prep_lib.sh
. "${top_srcdir:?is set by make check}/tests/system/data/prep_lib.sh"
trap 'cd /; umount "$work/tiny" "$work/narrow" 2>/dev/null; rm -rf "$work"' EXIT
fashion=/usr/share/datasets/fashion-mnist
[ -d $fashion ] || skip_all "needs the Debian package dataset-fashion-mnist"

said() { jq -es "map(select(.type == \"done\")) | length == 1 and (.[0] | $1)" out; }

mkdir idx
for f in train-images-idx3 train-labels-idx1 t10k-images-idx3 t10k-labels-idx1; do
    zcat $fashion/$f-ubyte.gz | head -c $((16 + 3000 * 784)) >idx/$f-ubyte
done
# headers: 3000 images and labels
for f in idx/*images*; do printf '\x00\x00\x0b\xb8' | dd of=$f bs=1 seek=4 conv=notrunc 2>/dev/null; truncate -s $((16 + 3000 * 784)) $f; done
for f in idx/*labels*; do printf '\x00\x00\x0b\xb8' | dd of=$f bs=1 seek=4 conv=notrunc 2>/dev/null; truncate -s 3008 $f; done
run convert --from idx --in idx --out data --shards 7 --eval-shards 2
check "there are data to stage" test "$status" = 0

# ---- all of it, to one node

run stage --from data --to all --json
check "all shards are copied" said '.copied == 9 and .kept == 0'
check "each is reported" bash -c '[ "$(jq -s "map(select(.type == \"copied\")) | length" out)" = 9 ]'
check "the copy is the data set" diff -r --exclude='.*' data all
run stage --from data --to all --json
check "a second call copies nothing" said '.copied == 0 and .kept == 9'
printf 'X' | dd of=all/train/train-00003-of-00007 bs=1 seek=5000 conv=notrunc 2>/dev/null
truncate -s -1 all/validation/validation-00001-of-00002
rm all/train/train-00000-of-00007
echo half >all/train/.train-00005-of-00007.tmp
run stage --from data --to all --json
check "a corrupted, a truncated and a lost copy are copied again" said '.copied == 3 and .kept == 6'
check "and what was half-written is gone" diff -r --exclude=.stage.lock data all

# ---- shared out

for nodes in 2 3; do "$prep" stage --from data --to of$nodes --hosts 'n[1-2]' --host n2 --nodes $nodes >out 2>err; done
check "a node of two has its part" test "$(find of2/train -name '*-of-*' | wc -l)" = 3
check "where --hosts are not all --nodes, all is copied" diff -r --exclude='.*' data of3
for node in 0 1 2; do "$prep" stage --from data --to n$node --node $node --nodes 3 >out 2>err; done
check "node i has the training shards s with s % n == i" test "$(ls n1/train | tr '\n' ' ')" = "train-00001-of-00007 train-00004-of-00007 "
check "together the nodes have each shard once" test "$(find n? -name "train-*-of-*" | wc -l)" = 7
check "every node has all of the validation" test "$(find n? -name "validation-*-of-*" | wc -l)" = 6
check "the manifest names the part" bash -c "jq -e '.stage == {node: 1, nodes: 3}' n1/manifest.json"
check "a staged part passes the audit" "$prep" audit n1
run stage --from data --to n1 --node 2 --nodes 3 --json
check "as another node what is not needed any more goes" \
    bash -c '[ "$(ls n1/train | tr "\n" " ")" = "train-00002-of-00007 train-00005-of-00007 " ]'
run stage --from data --to n1 --node 0 --nodes 3 --keep
check "unless it is to be kept" test "$(ls n1/train | wc -l)" = 5
check "a part is not staged on" refused 6 "is a staged copy, perhaps of a part" stage --from n2 --to x

# ---- another data set in its place

run convert --from idx --in idx --out other --shards 3 --eval-shards 3 --seed 2
check "there is another data set" test "$status" = 0
run stage --from data --to change
check "too little space for it" refused 7 "TB too few" stage --from other --to change --keep-free 100T
check "leaves the old one as it was" diff -r --exclude='.*' data change
"$prep" stage --from other --to change --bandwidth $(($(jq '[.train.shards[].bytes, .validation.shards[].bytes] | add' other/manifest.json) / 60)) >out 2>err &
pid=$!
eventually test -e change/train/train-00000-of-00003
kill -INT $pid
wait $pid
check "an interrupted change leaves nothing that looks complete" test ! -e change/manifest.json
run stage --from other --to change
check "and the next one ends with the new data set" diff -r --exclude='.*' other change
run stage --from data --to part
run stage --from data --to part --node 1 --nodes 3
check "a part of an existing copy is not copied again, and reported as a part" \
    bash -c 'jq -e ".stage == {node: 1, nodes: 3}" part/manifest.json'
if [ "$(id -u)" = 0 ] && mkdir narrow && mount -t tmpfs -o size=10m none narrow 2>/dev/null; then
    run stage --from data --to narrow/x
    check "the space of what goes is room for what comes" "$prep" stage --from other --to narrow/x
    umount narrow
else
    skip "the space of what goes" "needs root and mount"
fi

# ---- bandwidth, several processes, interruption

bytes=$(jq '[.train.shards[].bytes, .validation.shards[].bytes] | add' data/manifest.json)
begin=$(date +%s%N)
run stage --from data --to slow --bandwidth $((bytes / 2))
took=$((($(date +%s%N) - begin) / 1000000))
check "bandwidth: half the bytes a second take two seconds" test $took -ge 1800
pids=
for i in 1 2 3; do
    "$prep" stage --from data --to together --bandwidth $((bytes * 2)) --json >together.$i 2>&1 &
    pids="$pids $!"
done
failed=0
for pid in $pids; do wait "$pid" || failed=1; done
check "several processes at once all end well" test $failed = 0
check "and one of them has copied" test "$(grep -h '"type":"done"' together.? | jq -s 'map(.copied) | sort == [0, 0, 9]')" = true
"$prep" stage --from data --to killed --bandwidth $((bytes / 60)) >out 2>err &
pid=$!
eventually test -e killed/train/train-00000-of-00007
kill -KILL $pid
wait $pid 2>/dev/null
check "a killed one leaves nothing that looks complete" test ! -e killed/manifest.json
run stage --from data --to killed --json
check "and the next one keeps what is whole" said '.copied + .kept == 9 and .kept >= 1'
check "to the same end" diff -r --exclude='.*' data killed

# ---- whose fault it is

check "no such data" refused 6 "nowhere/manifest.json does not exist" stage --from nowhere --to x
cp -r data wrong && printf 'X' | dd of=wrong/train/train-00002-of-00007 bs=1 seek=5000 conv=notrunc 2>/dev/null
check "a shard that differs from the manifest" refused 6 "train-00002-of-00007 does not match the manifest" stage --from wrong --to y
check "is not left in scratch" test ! -e y/train/train-00002-of-00007 -a ! -e y/manifest.json
truncate -s -10 wrong/train/train-00001-of-00007
check "a truncated shard" refused 6 "train-00001-of-00007 is shorter than" stage --from wrong --to z
rm wrong/train/train-00001-of-00007
check "a missing shard" refused 6 "cannot open wrong/train/train-00001-of-00007" stage --from wrong --to z
sed 's|train/train-00000-of-00007|train/../../../../escape|' data/manifest.json >wrong/manifest.json
check "a manifest that leads elsewhere" refused 6 "is not a train-prep manifest" stage --from wrong --to z
echo '{' >wrong/manifest.json
check "a broken manifest" refused 6 "cannot be read: not valid JSON at line" stage --from wrong --to z
check "a data set that was not staged is not touched" refused 7 "contains other data" stage --from data --to data
touch file
check "scratch that is no folder" refused 7 "file" stage --from data --to file/scratch
check "space left for others" refused 7 "TB too few" stage --from data --to s --keep-free 1000000T
if [ "$(id -u)" = 0 ] && mkdir tiny && mount -t tmpfs -o size=3m none tiny 2>/dev/null; then
    check "too little space is reported before anything is copied" refused 7 "tiny/x has 3.1 MB free" stage --from data --to tiny/x
    check "and nothing has been" test "$(find tiny -name '*-of-*' | wc -l)" = 0
    umount tiny
else
    skip "too little space" "needs root and mount"
fi
check "no --to" refused 2 "--to is missing" stage --from data
check "a node beyond the nodes" \
    refused 2 "--node 3 is out of range: with --nodes 3 it must be from 0 to 2" stage --from data --to x --node 3 --nodes 3
check "an invalid size" refused 2 "expected a size like" stage --from data --to x --bandwidth fast

done_testing
