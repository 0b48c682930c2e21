#!/usr/bin/env bash
# The preprocessing against independent ones on the same JPEGs and the same crops: torchvision's by torchvision and
# Pillow, tpu's and mlperf's evaluation crops and TF 1's bicubic and bilinear by numpy. Mean absolute difference under 0.5/255 of [0, 1].
# shellcheck source=tests/golden/torch.sh.inc
. "${top_srcdir:?run it by make check}/tests/golden/torch.sh.inc"
compare system/data/preprocess.py bin/preprocess
