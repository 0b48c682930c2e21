#!/usr/bin/env bash
# Paste the ```sh blocks of pages, one after the other, into an interactive shell on its own terminal, as a reader does.
#
# Usage: paste.sh [--factor N] PAGE...
#
# Prints a line of TAP for each block: it fails if one of its commands does, if what it prints does not look like the indented block below it
# (in any numbers; "..." stands for anything), or if it takes longer than N times (2) the time in its first comment ("# about 20 s") and 10 s.
# A factor of 0 takes any time. The shell begins in the current folder; what it shows is kept in $PASTE_LOG.
set -u
factor=2
[ "${1-}" != --factor ] || { factor=$2; shift 2; }
work=$(mktemp -d)
log=${PASTE_LOG:-$work/log}
shell=
end() {
    exec 3>&-
    [ -z "$shell" ] || { kill "$shell"; wait "$shell"; } 2>/dev/null
    rm -rf "$work"
}
trap end EXIT

# blocks PAGE: each as FOLDER/N.sh, with its line in N.line, and what is shown of its output in N.out
blocks() {
    awk -v folder="$2" '
        /^```sh$/ { n++; code = 1; print NR + 1 >(folder "/" n ".line"); next }
        /^```/ { if (code) code = 0; else other = !other; next }
        code { print >(folder "/" n ".sh"); next }
        /^#/ { done = n }
        n && !other && n != done && /^    / { print substr($0, 5) >(folder "/" n ".out") }' "$1"
}

# What lines of output look like, as extended regular expressions: any numbers, any durations, any spaces.
patterns() {
    sed -E 's/^[[:space:]]+|[[:space:]]+$//g; /^(\.\.\.)?$/d
        s/\.\.\./\x01/g
        s/[0-9][0-9,.]* (d|h|min|s|ms)( [0-9]+ (h|min|s))?\b/\x02/g
        s/[0-9]([0-9,.]*[0-9])?/\x03/g
        s/[][\\.*^$+?(){}|\/]/\\&/g
        s/[[:space:]]+/ */g; s/-(-+)/-+/g
        s/\x01/.*/g; s/\x02/[0-9][0-9,.]* (d|h|min|s|ms)( [0-9]+ (h|min|s))?/g; s/\x03/[0-9][0-9,.]*/g'
}

# missing OUTPUT EXPECTED: the first line that does not come, in this order
missing() {
    patterns <"$2" >"$work/patterns"
    awk 'NR == FNR { want[++n] = $0; next } BEGIN { at = 1 } at <= n && $0 ~ want[at] { at++ } END { if (at <= n) print want[at] }' "$work/patterns" "$1"
}

# The time that a block promises, in seconds
promised() {
    sed -nE '1s/^#.* ([0-9]+) (s|min)\b.*/\1 \2/p' "$1" | awk '{ print $2 == "min" ? $1 * 60 : $1 }'
}

cat >"$work/rc" <<RC
[ ! -f ~/.bashrc ] || . ~/.bashrc
stty cols 150 rows 50
PROMPT_COMMAND=
PS0='@@ output'\$'\n'
PS1='\$ '
set -o pipefail
trap 'paste_status=\$?; [ \$paste_status = 141 ] || echo "status \$paste_status: \$BASH_COMMAND" >>"$work/failed"' ERR
RC
mkfifo "$work/keys"
: >"$log"
TERM=xterm HISTFILE='' script -qf -c "bash --rcfile '$work/rc' -i" "$log" <"$work/keys" >/dev/null 2>&1 &
shell=$!
exec 3>"$work/keys"

# ready FROM SECONDS: wait until the shell reads a line; it then asks the terminal to bracket what is pasted. FROM: of the log.
ready() {
    local until=$((SECONDS + $2))
    until tail -c "+$(($1 + 1))" "$log" | grep -aqF $'\e[?2004h'; do
        [ $SECONDS -lt $until ] && kill -0 "$shell" 2>/dev/null || return 1
        sleep 0.1
    done
}
tests=0 failed=0
report() { # ok|not ok, NAME
    tests=$((tests + 1))
    [ "$1" = ok ] || failed=$((failed + 1))
    echo "$1 $tests - $2"
}

ready 0 20 || { echo "Bail out! no shell"; exit 1; }
for page in "$@"; do
    name=$(basename "$page")
    mkdir -p "$work/$name"
    blocks "$page" "$work/$name"
    count=$(find "$work/$name" -name '*.line' | wc -l)
    for ((i = 1; i <= count; i++)); do
        block=$work/$name/$i line=$(cat "$work/$name/$i.line")
        limit=$(promised "$block.sh")
        from=$(wc -c <"$log") start=$(date +%s.%N) reason=
        : >"$work/failed"
        printf '\e[200~%s\e[201~\r' "$(cat "$block.sh")" >&3
        ready "$from" 1800 || reason="does not return"
        took=$(echo "$start $(date +%s.%N)" | awk '{ printf "%.1f", $2 - $1 }')
        tail -c "+$((from + 1))" "$log" | sed 's/\x1b\[[0-9;?]*[a-zA-Z]//g; s/\x1b[()][A-Z0-9]//g; s/\x1b[=>]//g; s/.*\r\(.\)/\1/; s/\r//g' |
            awk '/^@@ output/ { output = 1; next } output' >"$work/output"
        [ -n "$reason" ] || reason=$(head -n 1 "$work/failed")
        if [ -z "$reason" ] && [ -f "$block.out" ]; then
            reason=$(missing "$work/output" "$block.out")
            [ -z "$reason" ] || reason="no line like $reason"
        fi
        if [ -z "$reason" ] && [ -n "$limit" ] && [ "$factor" != 0 ]; then
            reason=$(echo "$took $limit $factor" | awk '$1 > $2 * $3 + 10 { print "takes much longer than promised" }')
        fi
        if [ -z "$reason" ]; then
            report ok "$name:$line: $took s${limit:+ (promised: about $limit s)}"
        else
            report "not ok" "$name:$line: $took s${limit:+ (promised: about $limit s)}: $reason"
            sed 's/^/# /' "$work/output" | tail -n 60
        fi
        [ "$reason" != "does not return" ] || break 2
    done
done
echo "1..$tests"
[ $failed = 0 ] && [ $tests -gt 0 ]
