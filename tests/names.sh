#!/bin/bash
# A private function begins with a word of its file's name, so that its name in a backtrace or a search tells where it is.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"
cd "$top_srcdir" || exit 1

# The same in each program.
exempt='main|usage'

# functions FILE...: "name file" for each static function
functions() {
    grep -HoE '^static [^=;(]*\b[A-Za-z_0-9]+\(' "$@" |
        sed -E 's/^([^:]*):.*[^A-Za-z_0-9]([A-Za-z_0-9]+)\($/\2 \1/' | grep -vE "^($exempt|__attribute__|_Atomic) " | sort -u
}

# strangers: of "name file", those whose name begins with no word of the file's; singular and plural are the same
strangers() {
    awk '{
        file = $2
        gsub(/.*\/|\.c$/, "", file)
        count = split(file, words, "_")
        split($1, name, "_")
        known = index($1, file "_") == 1
        for (i = 1; i <= count; i++)
            known = known || name[1] == words[i] || name[1] "s" == words[i] || name[1] == words[i] "s"
        if (!known)
            print
    }'
}

mapfile -t files < <(find common launch daemon client prep worker -name '*.c' ! -name '*.pb-c.c')
ok "private functions are found" test "$(functions "${files[@]}" | wc -l)" -gt 1000
is "$(functions "${files[@]}" | strangers)" "" "every private function begins with a word of its file's name"
is "$(printf '%s\n' 'lists_of_jobs daemon/store/job_row.c' 'job_rows daemon/store/job_row.c' | strangers)" "lists_of_jobs daemon/store/job_row.c" \
    "another name is found"
done_testing
