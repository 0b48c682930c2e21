#!/usr/bin/env bash
# The daemon under ThreadSanitizer: the scripts below with a traind that is compiled for it in ./tsan-build. A race ends the daemon, and so fails
# the script. make check-tsan; minutes, so not in make check. TSAN_TESTS chooses other scripts.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"
build=$top_builddir/tsan-build
mkdir -p "$build"

compile() {
    [ "$build/config.status" -nt "$top_srcdir/configure" ] ||
        (cd "$build" && "$top_srcdir/configure" --quiet --disable-hardening --with-march=native CFLAGS='-g -O1 -fsanitize=thread' LDFLAGS=-fsanitize=thread) || return
    make -s -C "$build" -j 2 BUILT_SOURCES= traind || { make -s -C "$build" -j 2 all && make -s -C "$build" traind; }
}
races() { # SCRIPT
    local run=bash
    [[ $1 != *.cases ]] || run="/usr/bin/python3 -B $top_srcdir/tests/api/run_cases.py"
    rm -f "$build"/report.*
    TRAIND=$build/traind TSAN_OPTIONS="exitcode=66 log_path=$build/report" timeout 1200 $run "$top_srcdir/$1" >"$build/log" 2>&1
    ! grep -h -A 12 'WARNING: ThreadSanitizer' "$build"/report.* 2>/dev/null && grep -qE '^ok [0-9]+' "$build/log"
}
ok "traind is compiled for ThreadSanitizer" compile
# None under libfaketime (tests/api/jobs/faults.sh): it has races of its own, and hides from the sanitizer that a wait gives its mutex back.
scripts="tests/api/cases/jobs.cases tests/api/http/stream.sh tests/api/cases/run.cases tests/api/cases/queue.cases tests/api/jobs/sweep.sh tests/api/cases/sweeps.cases tests/api/jobs/archive.sh
    tests/api/cases/requests.cases tests/api/cases/labels.cases tests/api/service/reload.sh tests/api/service/lifecycle.sh tests/api/service/settings.sh
    tests/api/notices/notices.sh tests/api/notices/delivery.sh tests/api/notices/mail.sh"
for script in ${TSAN_TESTS:-$scripts}; do
    ok "$script: no two threads touch the same memory unordered" races "$script"
done
done_testing
