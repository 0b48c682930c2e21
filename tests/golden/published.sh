#!/usr/bin/env bash
# Weights of torchvision, converted by the command of doc/fine-tuning.md and evaluated in mode eval: on the same photographs as by torchvision
# itself, the classes are the same, and the probabilities but for rounding. The network cannot be downloaded here: its weights are random,
# with statistics of the images.
# shellcheck source=tests/golden/torch.sh.inc
. "${top_srcdir:?run it by make check}/tests/golden/torch.sh.inc"
compare golden/published.py bin/train-worker
