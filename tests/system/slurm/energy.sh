#!/usr/bin/env bash
# With energy=yes the prolog lets the user of a job read the counters of energy, and the epilog takes them back: the scripts themselves,
# as slurmd runs them, on a made-up powercap folder.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"
work=$(mktemp -d "${TMPDIR:-/tmp}/traind-energy.XXXXXX")
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
[ "$(id -u)" = 0 ] || skip_all "only root can give files to others"
not_for_coverage "gcov tells another user's programs that they cannot write their counts, on standard error"
needs setpriv
nobody=$(id -u nobody)
other=$(id -u daemon)
setpriv --reuid="$nobody" --regid=nogroup --clear-groups test -x "$top_builddir/tests/bin/train-worker" ||
    skip_all "other users cannot reach $top_builddir/tests/bin/train-worker"

for script in prolog epilog node.sh; do
    sed -e "s|@pkgdatadir@/slurm|$work|; s|@bindir@|$top_builddir/tests/bin|; s|@sysconfdir@|$work|" "$top_srcdir/etc/slurm/$script.in" >"$work/$script"
done
zone() { # ZONE NAME
    mkdir -p "$work/powercap/$1"
    echo "$2" >"$work/powercap/$1/name"
    echo 262143328850 >"$work/powercap/$1/max_energy_range_uj"
    echo 5000000 >"$work/powercap/$1/energy_uj"
    chmod 400 "$work/powercap/$1/energy_uj"
}
zone intel-rapl:0 package-0
zone intel-rapl:0:0 dram
zone intel-rapl:1 package-1
mkdir -p "$work/jobs/1/attempt-1"
echo '{"data": {"train": "synthetic", "train_images": 64}}' >"$work/jobs/1/job.json"
conf() { # ENERGY
    printf '%s\n' "runs=$work/jobs" url=http://127.0.0.1:9 token_file= ca= scratch=/tmp stage= stage_bandwidth= stage_seconds=10 keep_days=7 \
        check_seconds=60 "energy=$1" "powercap=$work/powercap" "spool=$work/spool" "state=$work/state" "bin=$top_builddir/tests/bin" >"$work/traind-node.conf"
}
node() { # SCRIPT JOB UID
    TRAIND_NODE_CONF=$work/traind-node.conf SLURM_JOB_WORK_DIR=$work/jobs/1/attempt-1 SLURM_JOB_ID=$2 SLURM_JOB_UID=$3 SLURM_JOB_GID=$3 \
        SLURMD_NODENAME=n1 SLURM_NODELIST=n1 SLURM_CLUSTER_NAME=test timeout 120 sh "$work/$1" >"$work/out" 2>&1 ||
        { echo "# $1: $(cat "$work/out")" && return 1; }
}
counters() { stat -c '%u %a' "$work"/powercap/*/energy_uj | sort -u | tr '\n' ' '; }
may_read() { setpriv --reuid="$1" --regid="$1" --clear-groups cat "$work/powercap/intel-rapl:0:0/energy_uj" 2>/dev/null; }

conf no
ok "a prolog without energy=yes ends well" node prolog 1 "$nobody"
is "$(counters)" "0 400 " "and leaves the counters root's"
ok "so does its epilog" node epilog 1 "$nobody"

conf yes
ok "a prolog with it ends well" node prolog 2 "$nobody"
is "$(counters)" "$nobody 400 " "only the job's user may read the counters"
is "$(may_read "$nobody") $(may_read "$other")" "5000000 " "who alone can read them"
exec 7< <(setpriv --reuid="$nobody" --regid="$nobody" --clear-groups sh -c 'exec <"$1"; sleep 600 & echo $!; read -r value; while [ ! -e "$2" ]; do sleep 0.05; done; echo "$value"; kill $!' sh \
    "$work/powercap/intel-rapl:0:0/energy_uj" "$work/go")
read -r -u 7 _
ok "a second job, of another user" node prolog 3 "$other"
is "$(counters)" "$other 400 " "gets them"
touch "$work/go"
read -r -u 7 value
is "$value" 5000000 "the first one reads on what it has opened"
ok "the second one ends" node epilog 3 "$other"
is "$(counters)" "$nobody 400 " "and they are the first one's again"
conf no
ok "the first one ends, energy=no by now" node epilog 2 "$nobody"
is "$(counters)" "0 400 " "and they are root's"
ok "nothing is left" test ! -e "$work/state/energy"
conf yes
rm -r "$work/powercap"
ok "a node without counters is as any other" node prolog 4 "$nobody"
ok "to its end" node epilog 4 "$nobody"
done_testing
