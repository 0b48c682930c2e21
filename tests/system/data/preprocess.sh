#!/bin/bash
# The preprocessing against independent ones on the same JPEGs and the same crops: torchvision's by torchvision and
# Pillow, tpu's and mlperf's evaluation crops and TF 1's bicubic and bilinear by numpy. Mean absolute difference under 0.5/255 of [0, 1].
set -u
python=/usr/bin/python3
# To import PyTorch takes two seconds.
if ! $python -c 'import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, ("torch", "torchvision", "PIL", "numpy"))))' 2>/dev/null; then
    echo "1..0 # SKIP python3-torch, python3-torchvision or python3-pil is not installed"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
$python "${top_srcdir:?}/tests/system/data/preprocess.py" "${top_builddir:?}/tests/bin/preprocess" "$work"
