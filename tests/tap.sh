# TAP for shell tests: source it, call ok/is/like/skip, end with done_testing.
# shellcheck shell=bash
set -u
: "${top_srcdir:?run it by make check}" "${top_builddir:?run it by make check}"

tap_count=0
tap_failed=0

# To start, jq 1.6 takes four times as long as gojq, and the tests ask it thousands of times. gojq sorts the keys of objects and has
# no -S: where jq itself is needed, call "command jq".
if [ -x /usr/bin/gojq ]; then
    jq() { /usr/bin/gojq "$@"; }
    export -f jq
fi

# report STATUS NAME [DETAIL...]: 0 passes; the details are shown of what did not
report() {
    local status=$1 name=$2
    shift 2
    tap_count=$((tap_count + 1))
    if [ "$status" = 0 ]; then
        printf 'ok %d - %s\n' "$tap_count" "$name"
        return
    fi
    tap_failed=$((tap_failed + 1))
    printf 'not ok %d - %s\n' "$tap_count" "$name"
    [ $# = 0 ] || printf '%s\n' "$@" | head -c 4000 | awk '{ print "#   " $0 }'
}

# ok NAME COMMAND...: passes if the command succeeds; it runs in this shell, and what it prints goes to the log
ok() {
    local tap_name=$1 tap_status=0 # names that the command, which runs in this shell, does not set
    shift
    "$@" 2>&1 || tap_status=$?
    report $tap_status "$tap_name" "failed: $*"
}

# is GOT WANTED NAME
is() {
    [ "$1" = "$2" ]
    report $? "$3" "got:      $1" "expected: $2"
}

# Nobody writes into it: to wait for a line of it is to sleep, without a process.
exec {tap_never}<> <(:)
tap_sleep() {
    read -rt "$1" -u "$tap_never" || :
}

# Waits until the command succeeds, which runs in this shell: for ten minutes, as the machine may be busy. Ten looks a second at first,
# two once it has taken long: a look costs a process or more, which others would use better.
eventually() {
    local began=$SECONDS waited
    until "$@"; do
        waited=$((SECONDS - began))
        [ $waited -lt 600 ] || return 1
        if [ $waited -lt 2 ]; then tap_sleep 0.1; elif [ $waited -lt 10 ]; then tap_sleep 0.25; else tap_sleep 0.5; fi
    done
}

# ticks PID: of processor time that the process has used; there are $(getconf CLK_TCK) in a second
ticks() {
    awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$1/stat"
}

# not_for_coverage REASON: skips the test in a build of ./runtests --coverage.
not_for_coverage() {
    case $("${top_builddir:?}/config.status" --config 2>/dev/null) in *--coverage*) skip_all "$1" ;; esac
}

# write_script PATH: it becomes the script on the standard input, to be called. It may be replaced while other processes
# call it: they never see half a file, or one that is busy.
write_script() {
    cat >"$1.new"
    chmod +x "$1.new"
    mv "$1.new" "$1"
}

# like TEXT ERE NAME: the extended regular expression is found in a line of the text
like() {
    local tap_line tap_status=1
    if [ ${#1} -gt 4000 ]; then
        grep -qE -- "$2" <<<"$1"
        tap_status=$?
    else # the same, without a process
        while [ $tap_status != 0 ] && IFS= read -r tap_line; do
            [[ $tap_line =~ $2 ]] && tap_status=0
        done <<<"$1"
    fi
    report $tap_status "$3" "got:      $1" "expected: /$2/"
}

# skip NAME WHY
skip() {
    tap_count=$((tap_count + 1))
    printf 'ok %d - %s # SKIP %s\n' "$tap_count" "$1" "$2"
}

# skip_all WHY: ends the script
skip_all() {
    printf '1..0 # SKIP %s\n' "$1"
    exit 0
}

# needs TOOL...: skips the test where a program is not installed
needs() {
    local tap_tool
    for tap_tool in "$@"; do
        PATH=$PATH:/usr/sbin:/sbin command -v "$tap_tool" >/dev/null || skip_all "needs $tap_tool"
    done
}

# own_mounts: goes on in a mount namespace of its own, or skips the test
own_mounts() {
    [ -z "${TRAIND_TEST_NAMESPACE-}" ] || return 0
    ! unshare -m sh -c 'mount -t tmpfs none /mnt' 2>/dev/null || TRAIND_TEST_NAMESPACE=1 exec unshare -m "$BASH" "$0"
    skip_all "needs mounts (root)"
}

# private_folder: makes the folder $work, which is removed when the script ends
private_folder() {
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
}

done_testing() {
    printf '1..%d\n' "$tap_count"
    [ "$tap_failed" -eq 0 ]
    exit
}
