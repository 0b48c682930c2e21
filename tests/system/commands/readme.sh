#!/usr/bin/env bash
# README.md, command by command.
# shellcheck source=tests/system/commands/pages.sh.inc
. "${top_srcdir:?run it by make check}/tests/system/commands/pages.sh.inc"
page=$top_srcdir/README.md
ok "README has at most 80 lines" test "$(wc -l <"$page")" -le 80
run_page "$page" 's|"batch_per_worker": 64, "epochs": 0.5,|"batch_per_worker": 4, "steps": 2,|'
like "$(cat "$work/out")" '"state":"(queued|starting)"' "the answer to a submitted job is short"
like "$(cat "$work/out")" '^ *model.arch|steps' "the comparison names what differs"

# The job keys that it shows.
grep -oE '`"cluster": \{"[^`]*`' "$page" | tr -d '`' >"$work/fragments"
ok "README has fragments of jobs" test -s "$work/fragments"
while IFS= read -r fragment; do
    ok "it is a job's: {$fragment}" "$bin/trainctl" plan --set data.train=synthetic - <<<"{$fragment}"
done <"$work/fragments"
# Files and pages it names are there, and the sections.
for link in $(grep -oE '\]\((doc/[^)]+|CONTRIBUTING.md)\)' "$page" | tr -d '])('); do
    ok "there is ${link%#*}" test -e "$top_srcdir/${link%#*}"
    [ "${link%#*}" = "$link" ] || ok "with the section ${link#*#}" grep -qxiE "#+ $(sed 's/-/[^a-z0-9]+/g' <<<"${link#*#}")" "$top_srcdir/${link%#*}"
done
done_testing
