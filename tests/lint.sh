#!/usr/bin/env bash
# The rules of CONTRIBUTING.md that a tool can check: shell scripts, man pages, the format of C files,
# and no paths of a developer's machine.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"
cd "$top_srcdir" || exit 1

files() { # below the top, without what is built or installed
    find . -name '_*' -prune -o -name b -prune -o -name node_modules -prune -o -name build-aux -prune -o -name autom4te.cache -prune -o -name .git -prune -o -name 'traind-*' -prune \
        -o -type f "$@" -print | sort
}

sources_of() { # SCRIPT: what it sources, and what that does
    local one
    for one in $(sed -n 's/^ *# shellcheck source=//p' "$1"); do
        echo "$one"
        sources_of "$one"
    done
}

# To have shellcheck read what a script sources takes four times as long. It need not where a variable is used there, and that is all.
clean() { # DIALECT SCRIPT
    local found used
    found=$(shellcheck -f gcc -s "$1" -S warning "$2" 2>/dev/null) && return
    used=$(sources_of "$2" | sort -u | xargs -r grep -ohE '\$[{]?[A-Za-z0-9_]+' | tr -d '${' | sort -u | paste -s -d '|')
    [ -n "$found" ] && ! grep -vqE "warning: ($used) appears unused" <<<"$found" || shellcheck -x -s "$1" -S warning "$2"
}

if command -v shellcheck >/dev/null; then
    for script in ./bootstrap ./quickstart ./runtests ./setup/in-debian ./setup/lib.sh ./setup/lists ./setup/peer-debian13 $(files -name '*.sh'); do
        ok "shellcheck $script" clean bash "$script"
    done
    for script in ./etc/slurm/*.in; do
        ok "shellcheck $script" clean sh "$script"
    done
else
    skip "shellcheck" "not installed"
fi

if command -v mandoc >/dev/null; then
    for page in man/*.[1358]; do
        ok "mandoc $page" mandoc -T lint -W warning "$page"
    done
else
    skip "mandoc" "not installed"
fi

# Other versions lay out tables and macros otherwise.
if ! clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
    skip "C files are formatted by .clang-format" "needs clang-format 14, as in Debian 12"
else
    unformatted() {
        local out
        out=$(files -name '*.[ch]' ! -name '*.pb-c.*' ! -name migrations.c ! -name config.h | xargs clang-format --dry-run 2>&1 |
            grep -oE '^[^:]+\.[ch]:' | sort -u)
        printf '%s\n' "$out"
        [ -z "$out" ]
    }
    ok "C files are formatted by .clang-format" unformatted
fi

# A script that setup/lists takes for something else, or a C file outside the folders that it names, would not run.
unlisted() {
    local script out=
    for script in $(grep -rlE --include='*.sh' '^done_testing' tests | grep -vE '^tests/(analyze|soak|tsan|tap)' | sort) \
        $(find tests/unit -name '*.c' ! -name data_fixture.c | sort) tests/api/cases/*.cases; do
        grep -qxE "(SHELL_TESTS|ALONE_TESTS|[a-z_]+_unit_SOURCES) \+= $script" lists.mk || out+=" $script"
    done
    echo "${out:+in no list of tests in lists.mk:$out}"
    [ -z "$out" ]
}
ok "every test is run" unlisted

foreign_paths() {
    ! files ! -name '*.md' ! -name lint.sh \( -name '*.[ch158]' -o -name '*.sh' -o -name '*.am' -o -name '*.inc' -o -name '*.ac' -o -name '*.json' -o -name '*.mjs' -o -name '*.js' \) |
        xargs grep -nE '(^|[^A-Za-z0-9_}])/(work|home)/[a-z]|/tmp/wt|registry\.npmjs|deb\.debian\.org'
}
ok "no file names a path of somebody's machine, or a registry's host" foreign_paths

# `http/server.c` stands for daemon/http/server.c. Names in capitals are to be replaced; one file is made by the build.
dangling_paths() {
    local path sources out=
    sources=$(files -name '*.[ch]')$'\n'
    for path in $(grep -ohE '`[a-z0-9_./-]+/[a-z0-9_.-]+\.[ch]`' doc/*.md README.md | tr -d '`' | sort -u); do
        case $path$sources in common/system/install_paths.h* | *"/$path"$'\n'*) ;; *) out+=" $path" ;; esac
    done
    echo "${out:+in doc/, but not in the sources:$out}"
    [ -z "$out" ]
}
ok "the documents name sources that are there" dangling_paths

# Everything between ranks goes through libtraincomm.
direct_mpi() {
    ! grep -nE '<mpi\.h>|\bMPI_[A-Z]' worker/*.[ch] worker/{check,data,kernels,layers,model,optim,start,watch}/*.[ch]
}
ok "the worker has no MPI but libtraincomm" direct_mpi

# json_real and "f" of json_pack give NULL for a number that is not finite: common/json.h has what to take instead.
unheld_numbers() {
    ! grep -rnE --include='*.c' '\bjson_real\(|"[^"]*(s\*?:f|[[,] ?f[],}])[^"]*"' common client daemon launch prep worker |
        grep -v '^common/json\.c:.*json_real(value)'
}
ok "numbers of JSON are made by json_number" unheld_numbers

# Functions of up to 100 lines; files of at least 80, unless they are a table or have their own reason.
sources() {
    files -name '*.c' ! -name '*.pb-c.c' ! -name migrations.c | grep -E '^\./(common|launch|daemon|client|prep|worker)/'
}
long_functions() {
    sources | xargs awk 'FNR == 1 { start = 0 } /^{/ { start = FNR } /^}/ { if (start && FNR - start > 100) print FILENAME ":" start; start = 0 }'
}
small_files='common/assert_always.c|common/job/job_docs.c|common/job/job_state.c|common/number.c|common/xalloc.c|daemon/export/export.c|daemon/http/access/role.c|daemon/http/handlers/job_json.c|daemon/settings.c|prep/audit/audit_mixing.c'
short_files() {
    sources | xargs awk 'FNR == 1 && lines && lines < 80 { print name } { lines = FNR; name = FILENAME } END { if (lines < 80) print name }' | grep -vE "^\./($small_files)$"
}
is "$(long_functions)" "" "no function has more than 100 lines"
is "$(short_files)" "" "no file has less than 80 lines but tables and those named here"
done_testing
