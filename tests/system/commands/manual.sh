#!/usr/bin/env bash
# Commands in the manual pages are complete after rendering: mdoc's macros drop quotes.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"
needs mandoc
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# The source as it is meant: without the macro, its escapes as characters.
meant() { # PAGE
    sed -nE 's/^\.(Dl|D1) (\$ )?//p' "$1" | sed 's/\\(dq/"/g; s/\\-/-/g; s/\\e/\\/g; s/\\&//g; s/\\~/ /g' | tr -s ' '
}

for page in "$top_srcdir"/man/*.[1358]; do
    name=$(basename "$page")
    # One paragraph a line, so that what was wrapped is found again.
    mandoc -T ascii -O width=1000 "$page" | sed 's/.\x08//g' | tr -s ' ' >"$dir/text"
    while IFS= read -r command; do
        ok "$name: $command" grep -qF -- "$command" "$dir/text"
        ok "$name: bash takes it" bash -n -c "$command"
    done < <(meant "$page")
    while IFS= read -r json; do
        ok "$name: $json is JSON" jq -e . <<<"$json"
    done < <(grep -oE '\{"[^{}]*\}' "$dir/text" | sort -u)
    is "$(grep -oE '\{[a-z_]+: [^{}]*\}' "$dir/text")" "" "$name: no document has lost its quotes"
done
mandoc -T ascii -O width=1000 "$top_srcdir/man/traind.8" | sed 's/.\x08//g' >"$dir/text"
query=$(sed -nE 's/^ *sqlite3 traind.db "(select .*)"$/\1/p' "$dir/text")
cat "$top_srcdir"/schema/migrations/*.sql >"$dir/schema.sql"
# By itself the shell of newer SQLite does not let migrations change how a table is declared; traind does.
ok "traind.8: its query can be run" \
    sqlite3 -bail "$dir/traind.db" ".dbconfig defensive off" ".read '$dir/schema.sql'" "${query:?is not in traind(8)}"
like "$(mandoc -T ascii -O width=1000 "$top_srcdir/man/trainctl.1" | sed 's/.\x08//g')" '\{"key": "epochs", "min": 1, "max": 9, "eta": 3\}' \
    "trainctl.1: a sweep's budget"
done_testing
