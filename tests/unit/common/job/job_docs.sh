#!/bin/bash
# The committed schema and the man page's list of keys are what the table of job options gives.
set -u
# shellcheck source=tests/tap.sh
. "${top_srcdir:?is set by make check}/tests/tap.sh"
docs=${top_builddir:?is set by make check}/common/job-docs
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$docs" schema > "$tmp/schema"
"$docs" man > "$tmp/keys"
sed -e '1,/begin keys$/d' -e '/end keys$/,$d' "$top_srcdir/man/train-job.5" > "$tmp/committed"

ok "schema/job.schema.json is up to date (make update-docs)" diff "$top_srcdir/schema/job.schema.json" "$tmp/schema"
ok "the keys of man/train-job.5 are up to date (make update-docs)" diff "$tmp/committed" "$tmp/keys"
ok "the list of keys is not empty" grep -q '^.It Cm lr.base$' "$tmp/committed"
for preset in "$top_srcdir"/etc/presets/*.json; do
    ok "$(basename "$preset") is installed" grep -q "etc/presets/$(basename "$preset")" "$top_srcdir/lists.mk"
done
done_testing
