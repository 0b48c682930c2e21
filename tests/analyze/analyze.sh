#!/usr/bin/env bash
# cppcheck, clang's static analyzer and gcc's on the programs' sources, as configured here: nothing is found. make analyze; minutes, so not in
# make check. What is said and is not so stands in the files *.suppress, each with its reason. ANALYZE=cppcheck, clang or gcc for
# one of them; ANALYZE_FILES names files for clang's.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"
cd "$top_srcdir" || exit 1
folders='common launch daemon client prep worker'
flags=(-D_GNU_SOURCE -I. -I"$top_builddir")
# shellcheck disable=SC2207
packages=($(pkg-config --cflags jansson sqlite3 libmicrohttpd inih libprotobuf-c libisal libxxhash libarchive libpng matio libcurl ncursesw smartcols libsystemd libsodium openblas ompi-c))

by_cppcheck() {
    cppcheck --quiet --std=c11 --enable=warning,portability,performance --inline-suppr --suppressions-list=tests/analyze/cppcheck.suppress --error-exitcode=1 \
        --include=tests/analyze/macros.h \
        -D_GNU_SOURCE -I. -I"$top_builddir" --template='{file}:{line}: {id}: {message}' -i worker/kernels -i worker/layers $folders
}

# The checks of memory, null pointers, uninitialised values and misuse of the C library, over paths through each file. One file at a time: of
# several, the check of va_list takes the second's for the first's. Not: functions that are insecure in careless hands, padding, loops over
# floating point, malloc(0), MPI's waits (clang 14 crashes on worker/comm/gradients.c).
by_clang() {
    local status
    # The file stands between two kinds of options. None of these has a space in it.
    { [ -z "${ANALYZE_FILES-}" ] || printf '%s\0' $ANALYZE_FILES; [ -n "${ANALYZE_FILES-}" ] || find $folders -name '*.c' ! -name '*.pb-c.c' -print0; } |
        options="-std=gnu11 -DTRAIND_ENGINE -fopenmp -march=x86-64-v4 ${flags[*]} ${packages[*]}" xargs -0 -P "${ANALYZE_JOBS:-2}" -n 1 sh -c '
            [ "$1" = common/error.c ] || options="-include tests/analyze/clang.h $options"
            exec clang-tidy --quiet \
                --checks="-*,clang-analyzer-*,-clang-analyzer-security.*,-clang-analyzer-optin.mpi.*,-clang-analyzer-optin.performance.Padding,-clang-analyzer-optin.portability.UnixAPI" \
                "$1" -- $options' sh >"$work/clang" 2>"$work/clang.err"
    status=$?
    # A file that does not compile, or a tool that does not start, is not one without findings.
    [ "$status" = 0 ] || { grep 'error:' "$work/clang" || grep -vE '^[0-9]+ warnings? generated|^Suppressed|^$' "$work/clang.err"; } | sort -u | head -n 20
    sed -nE "s|^($PWD/)?(\./)?([^ :]*):[0-9]+:[0-9]+: warning: .*\[clang-analyzer-(.*)\]\$|\4 \3\t&|p" "$work/clang" | sort -u |
        grep -vFf <(sed '/^#/d; s/$/\t/' tests/analyze/clang.suppress) | cut -f 2- | tee "$work/clang.found"
    [ "$status" = 0 ] && [ ! -s "$work/clang.found" ]
}

# Not the kernels and layers: of vectors as wide as registers gcc 12 takes each shift for an overflow, and each pointer for NULL. Leaks it sees
# wherever something is stored in the caller's struct; they are left to LeakSanitizer in the tests.
by_gcc() {
    find $folders -name '*.c' ! -name '*.pb-c.c' ! -path 'worker/kernels/*' ! -path 'worker/layers/*' -print0 |
        xargs -0 -P "${ANALYZE_JOBS:-2}" -n 1 gcc -std=gnu11 -O1 -fanalyzer -Wno-analyzer-malloc-leak -DTRAIND_ENGINE -fopenmp -march=x86-64-v3 "${flags[@]}" "${packages[@]}" \
            -c -o /dev/null 2>"$work/gcc"
    sed -nE 's/^([^ :]*):[0-9]+:[0-9]+: warning: .*\[-Wanalyzer-(.*)\]$/\2 \1\t&/p' "$work/gcc" | sort -u |
        grep -vFf <(sed '/^#/d; s/$/\t/' tests/analyze/gcc.suppress) | cut -f 2- | tee "$work/gcc.found"
    grep 'error:' "$work/gcc"
    [ ! -s "$work/gcc.found" ] && ! grep -q 'error:' "$work/gcc"
}
private_folder
if [ "${ANALYZE-cppcheck}" = cppcheck ]; then ok "cppcheck finds nothing" by_cppcheck; fi
if [ "${ANALYZE-clang}" = clang ]; then ok "clang's analyzer finds nothing" by_clang; fi
if [ "${ANALYZE-gcc}" = gcc ]; then ok "gcc's analyzer finds nothing" by_gcc; fi
done_testing
