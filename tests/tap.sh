# TAP for shell tests: source it, call ok/is/like/skip, end with done_testing.
# shellcheck shell=bash

tap_count=0
tap_failed=0

pass() {
    tap_count=$((tap_count + 1))
    printf 'ok %d - %s\n' "$tap_count" "$1"
}

# fail NAME [details]
fail() {
    tap_count=$((tap_count + 1))
    tap_failed=$((tap_failed + 1))
    printf 'not ok %d - %s\n' "$tap_count" "$1"
    [ -z "${2-}" ] || printf '%s\n' "$2" | head -n 40 | sed 's/^/# /'
}

# ok NAME COMMAND...: passes if the command succeeds
ok() {
    local name=$1 output
    shift
    if output=$("$@" 2>&1); then pass "$name"; else fail "$name" "$output"; fi
}

# is GOT WANTED NAME
is() {
    if [ "$1" = "$2" ]; then pass "$3"; else fail "$3" "got \"$1\", wanted \"$2\""; fi
}

# like TEXT ERE NAME: the extended regular expression is found in the text
like() {
    if grep -qE -- "$2" <<<"$1"; then pass "$3"; else fail "$3" "no /$2/ in: $1"; fi
}

# unlike TEXT ERE NAME
unlike() {
    if grep -qE -- "$2" <<<"$1"; then fail "$3" "found /$2/ in: $1"; else pass "$3"; fi
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

done_testing() {
    printf '1..%d\n' "$tap_count"
    [ "$tap_failed" -eq 0 ]
    exit
}
