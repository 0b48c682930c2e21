#!/bin/bash
# The optimisers and mixup against PyTorch, LARS against a few lines of numpy.
set -u
python=${PYTHON3:-/usr/bin/python3}
here=${top_srcdir:-.}/tests/golden
driver=${top_builddir:-.}/tests/golden/optim_driver
# To import PyTorch takes two seconds.
if ! "$python" -c 'import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, ("torch", "torchvision"))))' 2>/dev/null; then
    echo "1..0 # SKIP python3-torch and python3-torchvision are not installed"
    exit 0
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

"$python" -B "$here/optim.py" "$driver" "$work"
