#!/usr/bin/env bash
# doc/tutorial.md, command by command.
# shellcheck source=tests/system/commands/pages.sh.inc
. "${top_srcdir:?run it by make check}/tests/system/commands/pages.sh.inc"
run_page "$top_srcdir/doc/tutorial.md" 's|4096|128|'
out=$(cat "$work/out")
like "$out" '^images_per_sec +[0-9.]+ images/s' "the plan predicts from what was measured"
like "$out" 'did you mean "epochs"' "a mistake is named"
like "$out" 'exit code 2' "and in the exit code"
is "$(sqlite3 "$here/_state/traind.db" "select state from sweep")" succeeded "the sweep has trained"
like "$out" 'lr.base +0.4 +0.1' "the comparison names what was changed"
done_testing
