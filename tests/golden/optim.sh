#!/usr/bin/env bash
# The optimisers and mixup against PyTorch, LARS and averaged weights against a few lines of numpy.
# shellcheck source=tests/golden/torch.sh.inc
. "${top_srcdir:?run it by make check}/tests/golden/torch.sh.inc"
compare golden/optim.py golden/optim_driver
