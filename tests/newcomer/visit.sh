#!/usr/bin/env bash
# A newcomer's first hour, in a bare Debian as setup/in-debian makes one: clone, ./quickstart, README and tutorial by pasting, and removal.
# Started by newcomer.sh as root in the clone.
#
# Usage: visit.sh root|user
#
# TAP. NEWCOMER_FACTOR (2): see paste.sh; NEWCOMER_SECONDS (60) and NEWCOMER_TOP1 (0.8): what quickstart's training has to take at most, and reach.
set -u
here=$(cd "$(dirname "$0")" && pwd)
who=${1:?root or user}
n=0 failed=0
check() { # NAME COMMAND...
    local name=$1
    shift
    n=$((n + 1))
    if "$@"; then
        echo "ok $n - $name"
    else
        failed=$((failed + 1))
        echo "not ok $n - $name"
    fi
}

mkdir -p /srv
git clone --quiet --bare /root/traind /srv/traind.git
cp -r "$here" /srv/newcomer
chmod -R a+rX /srv
if [ "$who" = root ]; then
    home=/root
    as() { (cd "$home" && env HOME="$home" bash -c "$1"); }
else
    { apt-get update && apt-get install -y --no-install-recommends sudo; } >/srv/sudo.log 2>&1 || { tail /srv/sudo.log; echo "Bail out! no sudo"; exit 1; }
    useradd --create-home --shell /bin/bash ada
    echo 'ada ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/ada
    home=~ada
    as() { su --login ada --command "cd && $1"; }
fi
clone=$home/src/traind # not the one of setup/in-debian
as "git config --global --add safe.directory /srv/traind.git; mkdir src && git clone --quiet file:///srv/traind.git src/traind"
as 'find . -path ./src -prune -o -path ./traind -prune -o -type f -print | sort' >/srv/before

start=$SECONDS
as 'cd src/traind && ./quickstart --yes' </dev/null >/srv/quickstart.log 2>&1
check "./quickstart --yes succeeds" test $? = 0
seconds=$((SECONDS - start))
sed 's/^/# /' /srv/quickstart.log | tail -n 60
echo "# $(wc -l </srv/quickstart.log) lines, $seconds s in all"
check "its output is short: at most 40 lines, and those of the progress" test "$(grep -cv "^job 1 " /srv/quickstart.log)" -le 40
job() { as "sqlite3 src/traind/_state/traind.db 'select $1 from job where id = 1'"; }
echo "# trained for $(job 'round(ttt_seconds, 1)') s, top-1 $(job top1), $(job 'round(images_per_sec)') images/s"
check "it has trained a network to $(job 'round(100 * top1, 2)') % (at least ${NEWCOMER_TOP1-0.8})" \
    test "$(job "top1 >= ${NEWCOMER_TOP1-0.8}")" = 1
check "in $(job 'round(ttt_seconds, 1)') s (at most ${NEWCOMER_SECONDS-60})" test "$(job "ttt_seconds <= ${NEWCOMER_SECONDS-60}")" = 1

as "cd src/traind && PASTE_LOG=~/paste.log /srv/newcomer/paste.sh --factor ${NEWCOMER_FACTOR-2} README.md doc/tutorial.md" >/srv/paste.out 2>&1
status=$?
sed 's/^/    /' /srv/paste.out
check "README and tutorial can be pasted" test $status = 0

check "nothing is left in the clone that git does not ignore" test -z "$(as 'cd src/traind && git status --porcelain')"
check "trainctl works in a new shell" as 'src/traind/_install/bin/trainctl list'
as 'cd src/traind && ./quickstart --remove --yes' </dev/null >/srv/remove.log 2>&1
check "./quickstart --remove --yes succeeds" test $? = 0
sed 's/^/# /' /srv/remove.log
left() {
    as 'cd src/traind && git status --porcelain --ignored | grep -v _try/'
    as 'find . -path ./src -prune -o -path ./traind -prune -o -type f -print | sort' | comm -13 /srv/before - | grep -v -e ./paste.log -e ./.gitconfig -e ./.sudo_as_admin_successful -e ./.cache/ccache
    for process in /proc/[0-9]*/exe; do
        readlink "$process" | grep "^$clone"
    done
}
left=$(left)
[ -z "$left" ] || sed 's/^/# left: /' <<<"$left"
check "and leaves nothing behind" test -z "$left"
echo "1..$n"
[ $failed = 0 ]
