#!/usr/bin/env bash
# A daemon at work for SOAK_SECONDS (6; make soak: 7200): what it takes of memory, descriptors, disk and time must not rise (soak.py).
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"
work=$(mktemp -d /tmp/soak.XXXXXX)
end() {
    local pid
    for pid in $(grep -lsz "^TRAIND_ATTEMPT_DIR=$work" /proc/[0-9]*/environ | cut -d/ -f3); do kill -KILL "$pid" 2>/dev/null; done
    rm -rf "$work"
}
trap end EXIT
export TMPDIR=$work XDG_CACHE_HOME=$work/cache OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 TRAIND_PRESETS=$top_srcdir/etc/presets
unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY TRAIND_STATE
seconds=${SOAK_SECONDS:-6}
/usr/bin/python3 "$top_srcdir/tests/soak/soak.py" --seconds "$seconds" --fill $((seconds < 20 ? 0 : seconds < 600 ? 400 : 8000)) \
    --traind "$top_builddir/traind" --worker "$top_builddir/tests/bin/train-worker" --work "$work"
