#!/bin/bash
# precision bf16 against PyTorch's bf16 autocast, live: one step's loss and gradients of some of the family, each one's distance from
# PyTorch in double.
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
"$python" -B "$here/bf16.py" "$driver" "$work"
