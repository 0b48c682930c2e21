#!/bin/bash
# The engine against PyTorch, live: logits, losses, weights and running statistics of a ResNet-50; then logits, loss and
# gradients of one step of the whole family.
# Training: batch 16 and 64x64 images leave 64 values a channel in the last stage; at 32x32 it would be 16, and batch norm over so few
# amplifies rounding from step to step. The learning rate rises to 0.0005: at 0.01 the first gradients of a random network throw the weights far, and rounding grows with them.
set -u
python=${PYTHON3:-/usr/bin/python3}
here=${top_srcdir:-.}/tests/golden
driver=${top_builddir:-.}/tests/golden/engine_driver
if ! "$python" -c 'import torch, torchvision' 2>/dev/null; then
    echo "1..0 # SKIP python3-torch and python3-torchvision are not installed"
    exit 0
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

family="resnet18:imagenet resnet34:imagenet resnet101:imagenet resnet152:imagenet resnet50v1:imagenet
        resnet18:small resnet50:small resnext50_32x4d:imagenet resnext101_32x4d:imagenet resnext101_32x8d:imagenet"
count=$(wc -w <<<"$family")
echo 1..$((9 + 3 * count))
number=1
for case in "32 8" "64 4" "224 2"; do
    read -r size n <<<"$case"
    if "$driver" logits "$size" "$n" "$work/w" "$work/b" "$work/o"; then
        "$python" "$here/compare.py" logits $number "$size x $size" "$work/w" "$work/b" "$work/o" ||
            echo "not ok $number - $size x $size: comparison stopped"
    else
        echo "not ok $number - $size x $size: engine_driver failed"
    fi
    number=$((number + 1))
done
for case in "0 1" "0.1 2"; do
    read -r smoothing threads <<<"$case"
    name="label smoothing $smoothing, $threads thread(s)"
    if "$driver" train 64 16 10 "$smoothing" "$threads" "$work/w" "$work/b" "$work/o" >"$work/losses"; then
        "$python" "$here/compare.py" train $number "$name" "$smoothing" "$work/losses" "$work/w" "$work/b" "$work/o" ||
            echo "not ok $number - $name: comparison stopped"
    else
        echo "not ok $number - $name: engine_driver failed"
    fi
    number=$((number + 3))
done
# shellcheck disable=SC2086 # a list
"$python" "$here/compare.py" family $number "$driver" "$work" 64 8 $family || echo "not ok $number - the family: comparison stopped"
