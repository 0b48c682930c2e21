#!/bin/bash
# The engine against PyTorch, live: logits, losses, weights and running statistics of a ResNet-50; steps with the options of SGD;
# then logits, loss and gradients of one step of the whole family.
# Training: batch 16 and 64x64 images leave 64 values a channel in the last stage; at 32x32 it would be 16, and batch norm over so few
# amplifies rounding from step to step. The learning rate rises to 0.0005: at 0.01 the first gradients of a random network throw the weights far, and rounding grows with them.
set -u
python=${PYTHON3:-/usr/bin/python3}
here=${top_srcdir:-.}/tests/golden
driver=${top_builddir:-.}/tests/golden/engine_driver
# To import PyTorch takes two seconds.
if ! "$python" -c 'import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, ("torch", "torchvision"))))' 2>/dev/null; then
    echo "1..0 # SKIP python3-torch and python3-torchvision are not installed"
    exit 0
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# threads that wait must not take a busy processor
export OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1
"$python" -B "$here/compare.py" "$driver" "$work"
