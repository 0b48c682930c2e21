#!/bin/bash
# No circle of calls between source files: what a file calls must not call it back, over however many others; and x.c defines what x.h declares.
# Read from the object files, where a call is a relocation of its own; the address of a function in a table of callbacks is not one.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"
cd "$top_builddir" || exit 1
needs readelf nm

objects() {
    find common launch daemon client prep worker -name '*.o' ! -path '*/.libs/*'
}

# definitions: "function file" of every function that other files can call. An object of folder/file.c is folder/PROGRAM-file.o.
definitions() {
    objects | xargs nm -A --defined-only | awk '$2 == "T" { split($1, at, ":"); print $3, at[1] }' |
        sed -E 's|([^ /]*-)?([^/-]*)\.o$|\2|'
}

# calls: "file function" of every call to a function of another file
calls() {
    objects | xargs readelf -rW 2>/dev/null | awk '
        /^File: / { file = $2 }
        /^Relocation section/ { text = $3 ~ /\.text/ }
        text && $3 ~ /R_(X86_64_PLT32|AARCH64_CALL26|AARCH64_JUMP26)/ { print file, $5 }' |
        sed -E 's|([^ /]*-)?([^/ -]*)\.o |\2 |' | sort -u
}

defined=${TMPDIR:-/tmp}/calls.$$
definitions >"$defined"
arrows=$(calls | awk 'NR == FNR { file[$1] = $2; next } ($2 in file) && file[$2] != $1 { print $1, file[$2] }' "$defined" - | sort -u)
circles() {
    tsort 2>&1 >/dev/null | sed -n 's/^tsort: //p' | grep -v 'input contains a loop' | sort -u
}
ok "calls between files are found" test "$(grep -c . <<<"$arrows")" -gt 500
is "$(circles <<<"$arrows")" "" "no circle of calls"
like "$(printf '%s\n' "$arrows" 'daemon/store/sql daemon/store/store_open' | circles | tr '\n' ' ')" 'daemon/store/sql .*daemon/store/store_open ' \
    "a call that closes a circle is found"

# declarations: "header function" of every prototype in a header. Two headers are for several files: that of the installed library, and job.h, whose
# functions look into the struct of job_manager_internal.h, which includes it.
declarations() {
    find common launch daemon client prep worker -name '*.h' ! -path '*/comm/traincomm.h' ! -path '*/job/job.h' -print0 |
        (cd "$top_srcdir" && xargs -0 grep -HoE '^[a-z][^=(]*\b[a-z_0-9]+\(') | grep -vE '^[^:]*:(static|typedef|#)' |
        sed -E 's/^([^:]*)\.h:.*[^a-z_0-9]([a-z_0-9]+)\($/\1 \2/' | sort -u
}

# elsewhere DEFINITIONS: of "header function", those that another file than header.c defines
elsewhere() {
    awk 'NR == FNR { file[$1] = $2; at[$1, $2]; next } ($2 in file) && !(($2, $1) in at) { print $1 ".h", $2, file[$2] ".c" }' "$1" -
}
ok "declarations are found" test "$(cd "$top_srcdir" && declarations | wc -l)" -gt 500
is "$(cd "$top_srcdir" && declarations | elsewhere "$defined")" "" "what x.h declares, x.c defines"
like "$(echo 'daemon/store/store sql_row' | elsewhere "$defined")" 'store.h sql_row .*sql.c' "what is defined elsewhere is found"
rm -f "$defined"
done_testing
