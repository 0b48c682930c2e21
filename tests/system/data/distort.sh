#!/usr/bin/env bash
# The operations of data.auto_augment and the jitters, at each of their strengths, against torchvision's with Pillow: the same bytes.
# shellcheck source=tests/golden/torch.sh.inc
. "${top_srcdir:?run it by make check}/tests/golden/torch.sh.inc"
compare system/data/distort.py bin/distort
