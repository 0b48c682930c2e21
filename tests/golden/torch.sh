#!/usr/bin/env bash
# The engine against PyTorch, live: logits, losses, weights and running statistics of a ResNet-50; steps with the options of SGD;
# then logits, loss and gradients of one step of the whole family.
# Training: batch 16 and 64x64 images leave 64 values a channel in the last stage; at 32x32 it would be 16, and batch norm over so few
# amplifies rounding from step to step. The learning rate rises to 0.0005: at 0.01 the first gradients of a random network throw the weights far, and rounding grows with them.
# shellcheck source=tests/golden/torch.sh.inc
. "${top_srcdir:?run it by make check}/tests/golden/torch.sh.inc"
compare golden/compare.py golden/engine_driver
