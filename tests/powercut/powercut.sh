#!/usr/bin/env bash
# The store when the power is cut at each sync of a file. POWER_LIVES and POWER_SEED choose more lives and others; make torture runs 500.
set -u
: "${top_srcdir:?run it by make check}" "${top_builddir:?}"
exec "$top_builddir/tests/powercut/powercut" --lives "${POWER_LIVES:-1}" --seed "${POWER_SEED:-1}"
