#!/bin/bash
# The core of a job's life in made-up worlds (simulate.c): nothing goes wrong in many, and what is taken out of the
# core, or was once wrong around it, is found.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"
simulate=$top_builddir/tests/simulate/simulate

out=$("$simulate" --lives "${SIMULATE_LIVES:-300000}" --seed "${SIMULATE_SEED:-0}" 2>&1)
report $? "${SIMULATE_LIVES:-300000} lives end as they should" "$(head -c 3000 <<<"$out")"
for case in "$top_srcdir"/tests/simulate/cases/*.choices; do
    out=$("$simulate" --replay "$case" 2>&1)
    report $? "$(basename "$case" .choices | tr - ' ')" "$out"
done

out=$("$simulate" --defects 2>&1)
report $? "what was once wrong around the core is found again" "$out"

# How sharp these eyes are does not depend on the build: under sanitizers it is left out.
if [ "${SIMULATE_MUTANTS:-yes}" = yes ]; then
# Rows that can be left out unnoticed: another row does the same with a less precise reason, or there is a second chance.
out=$("$simulate" --mutants 2>&1)
is "$(sed -n -E 's/^without "(.*)": not found$/\1/p' <<<"$out")" "it was cancelled or held meanwhile
the store cannot be written
the node has too few slots now, and it has a checkpoint
it cannot run with fewer workers
its cancellation was requested first" "the other rows of the table are missed when they are left out"
like "$out" 'without "it must end, has not run, and Slurm does not answer": seed' "among them cancelling what Slurm never heard of"
like "$out" 'without "it makes no progress": seed' "and ending what hangs"
fi

committed=$(sed -e '1,/begin life/d' -e '/end life/,$d' "$top_srcdir/doc/job-lifecycle.md")
is "$committed" "$("$simulate" --table)" "doc/job-lifecycle.md shows the table as it is (make update-docs)"
done_testing
