#!/usr/bin/env bash
# Where a plugin of Slurm measures energy, a job is charged what it tells: a real cluster whose plugin for RAPL reads made-up registers.
# shellcheck source=tests/system/slurm/slurm.sh.inc
. "${top_srcdir:?run it by make check}/tests/system/slurm/slurm.sh.inc"
[ -d /dev/cpu ] || skip_all "there is no /dev/cpu in whose place registers could stand"
export TRAIND_PRESETS=$top_srcdir/etc/presets TRAIN_POWERCAP=$work/none

# Registers as RAPL's: 0x606 has the units (of energy 2^-0 J), 0x611 the counter of a package, 0x619 that of its memory.
for cpu in $(seq 0 $(($(nproc --all) - 1))); do
    mkdir -p "$work/msr/$cpu"
    touch "$work/msr/$cpu/msr"
done
cat >"$work/rise.py" <<'END'
import os, struct, sys, time
files = [os.open(path, os.O_RDWR) for path in sys.argv[1:]]
joules = 1000
while True:
    for f in files:
        for place, value in (0x606, 3), (0x611, joules), (0x619, 0), (0x639, 0), (0x1000, 0):
            os.pwrite(f, struct.pack("<Q", value), place)
    joules += 50
    time.sleep(0.1)
END
/usr/bin/python3 "$work/rise.py" "$work"/msr/*/msr &
rising=$!
until [ "$(stat -c %s "$work/msr/0/msr")" -gt 4096 ]; do sleep 0.1; done
trap 'kill $rising 2>/dev/null; end_cluster; end_runs; clean_up' EXIT
printf '%s\n' AcctGatherEnergyType=acct_gather_energy/rapl AcctGatherNodeFreq=1 JobAcctGatherType=jobacct_gather/linux JobAcctGatherFrequency=1 >"$work/slurm.conf"
export SLURM_CLUSTER_MSR=$work/msr
SLURM_CLUSTER_CONF=$work/slurm.conf start_cluster 1
grace=300 start_slurm_daemon # of a job that it was told to end, Slurm tells no energy

one='.cluster.nodes = 1 | .cluster.workers_per_node = 1'
slurm_job "measured" 100000 "$one"
ok "a job trains" eventually has_events "$id" 3
# Of its first reading the plugin tells one joule, and then how far the counter has risen since: 0 if that waits for a processor.
measured() { sstat -a -n -P -j "$(slurm "$id" job_id)" -o JobID,ConsumedEnergyRaw 2>/dev/null | grep -q '\.batch|0*[1-9][0-9]'; }
ok "the plugin measures" eventually measured
call -X POST "/v1/jobs/$id/cancel"
ok "and ends when it is asked to" ends "$id" cancelled
like "$(cat "$state/jobs/$id/attempt-1/slurm-energy")" '\.batch\|[1-9][0-9]' "its script has asked what it took"
is "$(job "$id" energy_source)" measured "it is measured"
is "$(job "$id" joules)" "$(sed -n 's/.*\.batch|//p' "$state/jobs/$id/attempt-1/slurm-energy" | head -n 1)" "at what the plugin counted"
ok "the daemon stops in order" stop_daemon
end_cluster
kill $rising

# ------------------------------------------------------------------ without a plugin

rm -rf "$work/cluster"
unset SLURM_CLUSTER_MSR
start_cluster 1
restart_runs
slurm_job "not measured" 2 "$one"
ok "a job where nothing is measured ends" ends "$id" succeeded
is "$(job "$id" energy_source) $(job "$id" joules)" "none null" "and its energy is not known, rather than zero"
ok "its script has asked for nothing" test ! -e "$state/jobs/$id/attempt-1/slurm-energy"
ok "the daemon stops in order" stop_daemon
done_testing
