#!/usr/bin/env bash
# The life of jobs while the programs' calls with visible effects are delayed (delays.c): nothing depends on who is first. make check-delays
# runs all scripts with a daemon that way.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"
private_folder
"${CC:-cc}" -D_GNU_SOURCE -O1 -shared -fPIC -o "$work/delays.so" "$top_srcdir/tests/delays/delays.c" -ldl || skip_all "needs a C compiler"
LD_PRELOAD=$work/delays.so /usr/bin/python3 -B "$top_srcdir/tests/api/run_cases.py" "$top_srcdir/tests/api/cases/run.cases"
