#!/usr/bin/env bash
# doc/tutorial.md, command by command: its fenced blocks are run as they stand, by one shell, against a real daemon. So that
# it is quick, the data are the first images of Fashion-MNIST and an epoch is 128 of them; and the port is a free one.
set -u
# shellcheck source=tests/tap.sh
. "${top_srcdir:?is set by make check}/tests/tap.sh"
for tool in jq curl sqlite3 ss; do
    command -v $tool >/dev/null || skip_all "needs $tool"
done
# shellcheck source=tests/system/lib.sh
. "$top_srcdir/tests/system/lib.sh"
daemons() { # the page's, by the settings that only its daemon has
    pgrep -f "^[^ ]*traind --config $work/traind.conf "
}
clean_up() {
    local left
    left=$(daemons)
    # shellcheck disable=SC2086
    [ -z "$left" ] || kill $left
    rm -rf "$work"
}
trap clean_up EXIT
page=$top_srcdir/doc/tutorial.md
images=128

mkdir "$work/idx" "$work/bin" "$work/here"
idx $images train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz
idx 64 t10k-images-idx3-ubyte.gz t10k-labels-idx1-ubyte.gz

# The programs as they are built here; the daemon on a port that is free, with the worker of this build. The port is below those that
# the kernel hands out by itself, as it is used minutes later.
taken=" $(ss -Hltn | awk '{sub(/.*:/, "", $4); print $4}' | tr '\n' ' ') "
port=$((16000 + RANDOM % 15000))
while [[ $taken == *" $port "* ]]; do port=$((16000 + RANDOM % 15000)); done
printf '%s\n' "worker = $top_builddir/tests/bin/train-worker" "slots = 2" >"$work/traind.conf"
for program in trainctl train-prep; do
    printf '#!/bin/sh\nexec %s "$@"\n' "$top_builddir/$program" >"$work/bin/$program"
done
printf '#!/bin/sh\nexec %s --config %s --listen 127.0.0.1:%s "$@"\n' "$top_builddir/traind" "$work/traind.conf" "$port" >"$work/bin/traind"
chmod +x "$work"/bin/*
unset TRAINCTL_SERVER TRAINCTL_TOKEN
export PATH=$work/bin:$PATH TRAIND_PRESETS=$top_srcdir/etc/presets XDG_CACHE_HOME=$work/cache
unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY

# The fenced blocks; each is announced by its line, so that a failure is found.
awk '/^```sh$/ {code = 1; print "echo \"@ line " NR + 1 "\""; next} /^```$/ {code = 0} code' "$page" |
    sed -e "s|/usr/share/datasets/fashion-mnist|$work/idx|; s|127.0.0.1:7077|127.0.0.1:$port|g; s|4096|$images|; s|--retry 10 |--retry 600 |; s|export PATH=.PWD/_install/bin:|export PATH=|" >"$work/commands.sh"
blocks=$(grep -c '^echo "@ line' "$work/commands.sh")
ok "the tutorial has commands" test "$blocks" -gt 8
ok "all of them are bash" bash -n "$work/commands.sh"

(cd "$work/here" && bash -eu "$work/commands.sh") >"$work/out" 2>&1
status=$?
sed 's/^/# /' "$work/out" | head -c 12000
is $status 0 "all commands succeed (else the last line shown here is of the one that failed)"
is "$(grep -c '^@ line' "$work/out")" "$blocks" "none is left out"
like "$(cat "$work/out")" '^images_per_sec +[0-9.]+ images/s' "the plan predicts from what was measured"
like "$(cat "$work/out")" 'is not a key of a job document' "a mistake is told with words"
like "$(cat "$work/out")" 'exit code 2' "and by the exit code"
db=$work/here/state/traind.db
is "$(sqlite3 "$db" "select group_concat(state, ' ') from job where id <= 3")" "succeeded succeeded succeeded" "the three jobs have trained"
is "$(sqlite3 "$db" "select state from sweep")" succeeded "so has the sweep"
like "$(cat "$work/out")" 'lr.base +0.4 +0.1 +0.4' "the comparison names what was changed"
has_stopped() { ! daemons; }
ok "the daemon has stopped" eventually has_stopped
done_testing
