#!/bin/bash
# A private function is named after what its file is about, so that its name in a backtrace or a search tells which one it
# is: few static functions share their name with one of another file.
set -u
# shellcheck source=tests/tap.sh
. "${top_srcdir:?is set by make check}/tests/tap.sh"
cd "$top_srcdir" || exit 1

most_percent=2
# The same thing in each program, or Criterion's fixtures.
meant='main|usage|set_up|tear_down|setup|teardown'

# functions FOLDER...: "name file" for each static function
functions() {
    find "$@" -name '*.[ch]' ! -name '*.pb-c.*' -print0 |
        xargs -0 grep -HoE '^static [^=;(]*\b[A-Za-z_0-9]+\(' |
        sed -E 's/^([^:]*):.*[^A-Za-z_0-9]([A-Za-z_0-9]+)\($/\2 \1/' | grep -vE "^($meant|__attribute__|_Atomic) " | sort -u
}

# shared: of "name file", those whose name is in another file too
shared() {
    awk '{ files[$1] = files[$1] " " $2; count[$1]++; }
         END { for (name in count) if (count[name] > 1) print count[name], name files[name] }' | sort -rn
}

few_shared() { # few_shared NAME FOLDER...
    local name=$1 all common
    shift
    all=$(functions "$@")
    common=$(shared <<<"$all")
    ok "$name: at most $most_percent % of the private functions share their name with another file" \
        awk -v most="$most_percent" -v all="$(wc -l <<<"$all")" '
            { n += $1; print }
            END { printf "%d of %d\n", n, all; exit !(all > 100 && n * 100 <= most * all) }' <<<"$common"
}

few_shared "programs" common launch daemon client prep worker
few_shared "tests" tests
done_testing
