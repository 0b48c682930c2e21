#!/usr/bin/env bash
# Bad training data under real mpirun: each fault ends the run with file and record named, never with a signal.
# shellcheck source=tests/system/lib.sh
. "${top_srcdir:?run it by make check}/tests/system/lib.sh"
small_job '.name = "bad" | .model.stem = "small" | .data.train = "\($data)/../bad" | del(.steps) | .epochs = 1 | .checkpoint.disable = true'
shard=$work/bad/train-00001-of-00002

# fresh: whole shards again
fresh() {
    rm -rf "$work/bad"
    cp -r "$work/data/train" "$work/bad"
}

# put SHARD OFFSET BYTES (as printf has them)
put() {
    printf '%b' "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# refused WORDS NAME
refused() {
    rm -rf "$work/run"
    worker 2 "$work/small.json" "$work/run"
    local status=$?
    is "$((status > 0 && status < 128))" 1 "$2: the run fails, by no signal"
    like "$(failed_event "$work/run")" "$1" "$2: file and record are named"
}

fresh
truncate -s -100 "$shard"
refused 'train-00001-of-00002 is truncated: the record at byte [0-9]+' "a truncated shard"

fresh
put "$shard" 300 '\x01\x02\x03'
refused 'train-00001-of-00002 is corrupt: the checksum of the record at byte 0' "a wrong checksum"

# lengths with right checksums of their own: of 2^63, and of 10 MB in a small file
fresh
put "$shard" 0 '\x00\x00\x00\x00\x00\x00\x00\x80\x95\x08\x67\xb6'
refused 'train-00001-of-00002 is truncated: the record at byte 0 is 9223372036854775808 bytes long' "a length of 2^63"
fresh
put "$shard" 0 '\x80\x96\x98\x00\x00\x00\x00\x00\xc9\x1c\x97\x48'
refused 'train-00001-of-00002 is truncated: the record at byte 0 is 10000000 bytes long, but only' "a record longer than the file"

fresh
job "$work/few.json" '.model.classes = 5'
rm -rf "$work/run"
worker 2 "$work/few.json" "$work/run"
like "$(failed_event "$work/run")" 'train-0000[01]-of-00002, record at byte [0-9]+ \(.*\): the label is [5-9], stored as' \
    "a label outside the classes is named"

# ---- class folders: JPEGs that are cut, all of one class; ranks meet different numbers of them
mkdir "$work/out"
(cd "$work/out" && "$top_builddir/tests/bin/train-prep" extract --out . "$work/data/train" >/dev/null 2>&1)
rm -rf "$work/bad"
mkdir -p "$work/bad/a" "$work/bad/b"
n=0
while IFS= read -r jpeg; do
    n=$((n + 1))
    cp "$jpeg" "$work/bad/$([ $((n % 2)) = 0 ] && echo a || echo b)/$n.jpg"
done < <(find "$work/out" -name '*.jp*g' | sort | head -96)
is "$(find "$work/bad" -name '*.jpg' | wc -l)" 96 "images as files"
truncate -s 200 "$work/bad/a/2.jpg"
rm -rf "$work/run"
worker 2 "$work/small.json" "$work/run"
like "$output" 'cannot decode an image, using another one: .*/a/2.jpg: ' "a cut JPEG is named"
like "$(failed_event "$work/run")" '1 of the 96 images read so far could not be decoded' "and counted over all ranks: 1 of 96 is over 1 %"

# ---- an evaluation of which no image decodes
mkdir -p "$work/none/a" "$work/none/b"
head -c 200 "$work/bad/a/4.jpg" | tee "$work/none/a/1.jpg" "$work/none/a/2.jpg" >"$work/none/b/3.jpg"
cp "$work/bad/a/4.jpg" "$work/bad/a/2.jpg"
job "$work/none.json" ".data.eval = \"$work/none\" | .model.classes = 2"
rm -rf "$work/run"
worker 2 "$work/none.json" "$work/run"
like "$(failed_event "$work/run")" '3 of the 3 images read so far could not be decoded .100 %, the limit is 1 %.' \
    "an evaluation without a decodable image reports whole percent"
is "$(grep -c 'other classes' "$work/run/attempt-1/events.jsonl")" 0 "and no message about other classes"
if /usr/bin/python3 - "$work/bad/a/2.jpg" 2>/dev/null <<'END'
import io, sys
from PIL import Image
out = io.BytesIO()
Image.open(sys.argv[1]).save(out, "jpeg", progressive=True)
jpeg = out.getvalue()
first = end = jpeg.index(b"\xff\xda")
while jpeg[end] != 0xff or jpeg[end + 1] in (0, 0xda):
    end += 1
open(sys.argv[1], "wb").write(jpeg[:end] + 200 * jpeg[first:end] + jpeg[end:])
END
then
    rm -rf "$work/run"
    worker 2 "$work/small.json" "$work/run"
    like "$output" 'cannot decode an image, using another one: .*/a/2.jpg: a progressive JPEG of more than 100 scans' \
        "so is one of too many scans"
else
    skip "a JPEG of too many scans" "needs python3-pil"
fi

# ---- a shard that goes while it is in use
fresh
job "$work/long.json" '.epochs = 2000'
rm -rf "$work/run"
(
    eventually grep -qs '"step"' "$work/run/attempt-1/events.jsonl"
    truncate -s 1000 "$shard"
) &
worker 2 "$work/long.json" "$work/run"
status=$?
wait
is "$((status > 0 && status < 128))" 1 "a shard that shrinks under a run ends it, by no signal"
like "$(failed_event "$work/run")" 'train-00001-of-00002 changed while it is in use: it had [0-9]+ bytes when it was opened and has 1000 now' \
    "with its name and what happened"
done_testing
