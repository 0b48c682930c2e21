#!/usr/bin/env bash
# precision bf16 against PyTorch's bf16 autocast, live: one step's loss and gradients of some of the family, each one's distance from
# PyTorch in double.
# shellcheck source=tests/golden/torch.sh.inc
. "${top_srcdir:?run it by make check}/tests/golden/torch.sh.inc"
compare golden/bf16.py golden/engine_driver
