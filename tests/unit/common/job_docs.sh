#!/bin/bash
# The committed schema and the man page's list of keys are what the table of job options gives.
set -u
top_srcdir=${top_srcdir:?is set by make check}
docs=${top_builddir:?is set by make check}/common/job-docs
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
count=0
check() { # check WORDS COMMAND...
    local words=$1
    shift
    count=$((count + 1))
    if "$@" > "$tmp/output" 2>&1; then
        echo "ok $count - $words"
    else
        sed 's/^/# /' "$tmp/output"
        echo "not ok $count - $words"
    fi
}

"$docs" schema > "$tmp/schema"
"$docs" man > "$tmp/keys"
sed -e '1,/begin keys$/d' -e '/end keys$/,$d' "$top_srcdir/man/train-job.5" > "$tmp/committed"

check "schema/job.schema.json is up to date (make update-docs)" diff "$top_srcdir/schema/job.schema.json" "$tmp/schema"
check "the keys of man/train-job.5 are up to date (make update-docs)" diff "$tmp/committed" "$tmp/keys"
check "the list of keys is not empty" grep -q '^.It Cm lr.base$' "$tmp/committed"
if command -v mandoc > "$tmp/output"; then
    check "man/train-job.5 has no mistake of mdoc" mandoc -T lint -W warning "$top_srcdir/man/train-job.5"
else
    count=$((count + 1))
    echo "ok $count - man/train-job.5 has no mistake of mdoc # SKIP mandoc is not installed"
fi
for preset in "$top_srcdir"/etc/presets/*.json; do
    check "$(basename "$preset") is installed" grep -q "etc/presets/$(basename "$preset")" "$top_srcdir/Makefile.am"
done
echo "1..$count"
