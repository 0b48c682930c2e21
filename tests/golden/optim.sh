#!/bin/bash
# LARS against a few lines of numpy, mixup against PyTorch.
set -u
python=${PYTHON3:-/usr/bin/python3}
here=${top_srcdir:-.}/tests/golden
driver=${top_builddir:-.}/tests/golden/optim_driver
if ! "$python" -c 'import torch, torchvision' 2>/dev/null; then
    echo "1..0 # SKIP python3-torch and python3-torchvision are not installed"
    exit 0
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

echo 1..8
number=1
for case in "0 0" "1 0" "0 1" "1 1"; do
    read -r nesterov correct <<<"$case"
    if "$driver" lars 5 "$nesterov" "$correct" "$work/w" "$work/g" "$work/o"; then
        "$python" -B "$here/optim.py" lars $number 5 "$nesterov" "$correct" "$work/w" "$work/g" "$work/o" ||
            echo "not ok $number - LARS: comparison stopped"
    else
        echo "not ok $number - LARS: optim_driver failed"
    fi
    number=$((number + 1))
done
for case in "0.3 0" "0.85 0.1"; do
    read -r lambda smoothing <<<"$case"
    if loss=$("$driver" mixup 8 "$lambda" "$smoothing" "$work/w" "$work/b" "$work/o"); then
        "$python" -B "$here/optim.py" mixup $number "$lambda" "$smoothing" "$loss" "$work/w" "$work/b" "$work/o" ||
            echo "not ok $number - mixup: comparison stopped"
    else
        echo "not ok $number - mixup: optim_driver failed"
    fi
    number=$((number + 2))
done
