#!/usr/bin/env bash
# Numbers at their limits: losses that are not finite, one image at a time, equal pixels, missing classes.
# shellcheck source=tests/system/lib.sh
. "${top_srcdir:?run it by make check}/tests/system/lib.sh"
small_job '.model.stem = "small" | .data.eval = "\($data)/validation" | .batch_per_worker = 4 | .eval.batch = 25 |
    .lr += {scaling: "none", base: 0.01} | .checkpoint = {every_steps: 2, every_epochs: 0}'

# strict FILE...: JSON as RFC 8259 has it, which knows no NaN and no Infinity; of events.jsonl, each line
strict() {
    python3 - "$@" <<'END'
import json, sys
def refuse(word):
    raise ValueError(word)
for path in sys.argv[1:]:
    text = open(path).read()
    for part in text.splitlines() if path.endswith("l") else [text]:
        json.loads(part, parse_constant=refuse)
END
}
finite() { # RUN: all losses are numbers, and those of the evaluation
    jq -se 'map(select(.type == "step" or .type == "eval") | .loss) | length == 5 and all(type == "number")' "$1/attempt-1/events.jsonl" >"$work/answer"
}
warnings() { # RUN
    jq -r 'select(.type == "warning") | .message' "$1/attempt-1/events.jsonl"
}

# ---- a loss that is not a number
trial 2 diverges '.lr.base = 1e12 | .steps = 8 | .eval.every_epochs = 0 | .data.eval = null | .checkpoint.every_steps = 1'
fails_with $? "a run that diverges fails"
events=$work/diverges/attempt-1/events.jsonl
step=$(jq -r 'select(.type == "step" and (.loss == null or .grad_norm == null)) | .step' "$events" | head -n 1)
like "$(failed_event "$work/diverges")" "diverged at step $step, the (loss|norm of the gradients) was (not a number|infinite)" \
    "it names the first step whose loss or gradients are not finite"
is "$(grep -c -e '-nan' <<<"$output")" 0 "a NaN loss has no sign in the log"
is "$(jq -r 'select(.type == "step") | .step' "$events" | tail -n 1)" "$step" "which is its last"
mapfile -t documents < <(find "$work/diverges" -name '*.json' -o -name '*.jsonl')
ok "its ${#documents[@]} files of JSON have no NaN" strict "${documents[@]}"

# ---- one image at a time
job "$work/one.json" '.batch_per_worker = 1'
like "$("$top_builddir/trainctl" plan "$work/one.json" | tr -s '\n ' ' ')" 'with batch_per_worker 1, batch norm normalises each image by itself' \
    "the plan warns of one image at a time"
worker 2 "$work/one.json" "$work/one"
is $? 0 "and it trains"
ok "with finite losses" finite "$work/one"
is "$(warnings "$work/one")" "" "all classes are in the evaluation: no warning"

# ---- pixels that are all the same
mkdir "$work/flat"
cp "$work"/idx/*labels* "$work/flat/"
for images in train:96 t10k:50; do
    {
        head -c 16 "$work/idx/${images%:*}-images-idx3-ubyte"
        head -c $((${images#*:} * 784)) /dev/zero
    } >"$work/flat/${images%:*}-images-idx3-ubyte"
done
"$top_builddir/tests/bin/train-prep" convert --from idx --in "$work/flat" --out "$work/black" --shards 2 --eval-shards 1 >"$work/answer" 2>&1
job "$work/black.json" ".data = {\"train\": \"$work/black/train\", \"eval\": \"$work/black/validation\"}"
worker 2 "$work/black.json" "$work/black-run"
is $? 0 "images of one colour train"
ok "with finite losses" finite "$work/black-run"

# ---- classes that are not there: numbered in sorted order, b must not take the place of another
extracted=$work/extracted
mkdir "$extracted"
"$top_builddir/tests/bin/train-prep" extract --out "$extracted" "$work/data/train" >"$work/answer" 2>&1
mapfile -t jpegs < <(find "$extracted" -type f | sort)
for class in a b c; do
    mkdir -p "$work/folders/train/$class" "$work/folders/eval/$class"
done
for ((i = 0; i < 48; i++)); do
    class=abc name=$i.jpg
    case $i in 0) name="=1+1.jpg" ;; 3) name="'@x.jpg" ;; 6) name="'x.jpg" ;; esac
    cp "${jpegs[i]}" "$work/folders/train/${class:i % 3:1}/$name"
    [ $((i % 3)) = 1 ] || cp "${jpegs[i]}" "$work/folders/eval/${class:i % 3:1}/$name"
done
job "$work/folders.json" ".data = {\"train\": \"$work/folders/train\", \"eval\": \"$work/folders/eval\"} | .model.classes = 3 | .eval.predictions = true"
worker 2 "$work/folders.json" "$work/folders-run"
is $? 0 "a class without images in the evaluation is an empty folder"
is "$(cut -d, -f2 "$work/folders-run/attempt-1/predictions.csv" | sort | uniq -c | tr -s ' \n' ' ')" " 16 0 16 2 1 label " \
    "the other classes keep their numbers"
is "$(tail -n +2 "$work/folders-run/attempt-1/predictions.csv" | cut -d, -f1 | tr -d '"' | sort)" "$(find "$work/folders/eval" -name '*.jpg' -printf '%f\n' | sed "s/^'*[=@]/'&/" | sort)" \
    "each image is named by its file, without a formula for a spreadsheet"
like "$(warnings "$work/folders-run")" '^data.eval has no images of 1 of the 3 classes, the first of them is 1: accuracies are those of the other classes$' "and a warning names the missing one"
ok "with finite losses" finite "$work/folders-run"

rmdir "$work/folders/eval/b"
output=$("$top_builddir/trainctl" plan "$work/folders.json" 2>&1)
is $? 2 "without the folder the plan is refused"
like "$(tr -s '\n ' ' ' <<<"$output")" 'data.eval.* has no folder of class b, which data.train has: .* make an empty folder of that name' \
    "and names the missing class and the remedy"
worker 2 "$work/folders.json" "$work/refused"
like "$(failed_event "$work/refused")" 'data.eval, .*/folders/eval: has no folder of class b' "the worker refuses it too"
mkdir "$work/folders/eval/"{b,bird}
output=$("$top_builddir/trainctl" plan "$work/folders.json" 2>&1)
like "$(tr -s '\n ' ' ' <<<"$output")" 'data.eval.* has a folder of class bird, which data.train does not have' \
    "as is a class that the training does not have"

done_testing
