#!/usr/bin/env bash
# A real Slurm cluster on this machine, in a private folder: munged, slurmctld and N slurmd, each node with processes, a hostname
# (n1, n2, ...), a /tmp of Slurm's, a /dev/shm and an /etc/hosts of its own. Nothing of the system's own Slurm or munge is touched.
#
#   cluster.sh start DIR [N]        N nodes (2), all idle when it returns; DIR is empty or absent. ". DIR/env.sh" makes
#                                         sbatch, squeue, scontrol ... talk to it
#   cluster.sh stop DIR             ends it with all that runs on it; DIR stays (logs in DIR/log). Nothing runs: fine
#   cluster.sh status DIR           0: all is up; 1: nothing is; 2: something is not
#   cluster.sh kill DIR NAME...     as when the power fails: slurmctld, munged, or a node with all its processes
#   cluster.sh end DIR NAME...      as an administrator stops it: it may store what it has to (of a slurmctld that is killed,
#                                         the last seconds are lost: it may not know of jobs that run)
#   cluster.sh revive DIR NAME...   what was killed or ended starts again, with what it had stored
#
# start says "skip: WHY" and exits with 77 where the machine cannot do it. Settings, all optional, read by start:
#   SLURM_CLUSTER_CPUS=4          of each node; may exceed those of the machine
#   SLURM_CLUSTER_MEMORY=4000     MB of each node
#   SLURM_CLUSTER_PROLOG, _EPILOG, _TASK_PROLOG, _PROLOG_SLURMCTLD: paths of programs
#   SLURM_CLUSTER_CONF=FILE       lines for slurm.conf; they replace those with the same key
#   SLURM_CLUSTER_MSR=DIR         replaces /dev/cpu on each node: N/msr for the plugin that reads RAPL
#   SLURM_CLUSTER_SCRATCH=DIR     the existing folder DIR/NODE replaces DIR on each node, as its own disk
set -u

name=slurm_cluster
fail() {
    echo "$name: $*" >&2
    exit 1
}
cannot() {
    echo "skip: $*"
    exit 77
}
usage() {
    sed -n '5,12p' "$0" >&2
    exit 2
}

# ------------------------------------------------------------------ processes, known by pid and start

started() { # PID: field 22 of /proc/PID/stat; fails when it has ended
    local stat
    stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
    stat=${stat##*) }
    case $stat in [ZX]*) return 1 ;; esac
    cut -d' ' -f20 <<<"$stat"
}

is_same() { # PID START
    [ -n "$2" ] && [ "$(started "$1")" = "$2" ]
}

lives() { # NAME
    local pid start
    read -r pid start 2>/dev/null <"$dir/pids/$1" && is_same "$pid" "$start"
}

# launch NAME COMMAND...: in the background, in its own session
launch() {
    local what=$1 pid
    shift
    setsid "$@" >>"$dir/log/$what.out" 2>&1 </dev/null 9>&- &
    pid=$!
    echo "$pid $(started $pid)" >"$dir/pids/$what"
}

# signal NAME SIGNAL: and waits for its end; for a minute, then kills it. A node has ended with the first process of its namespace,
# which ends after all others there: until then its port is in use.
signal() {
    local pid start first='' first_start='' how
    lives "$1" || return 0
    read -r pid start <"$dir/pids/$1"
    case $1 in n[0-9]*)
        first=$(pgrep -P "$pid" | head -n 1)
        first_start=$(started "${first:-0}")
        ;;
    esac
    for how in "$2" KILL; do
        if lives "$1"; then kill "-$how" "$pid" 2>/dev/null; fi
        for _ in $(seq 1200); do
            is_same "$pid" "$start" || is_same "$first" "$first_start" || return 0
            sleep 0.05
        done
    done
}

members() { # what runs, nodes first
    local file
    for file in "$dir"/pids/n[0-9]* "$dir"/pids/slurmctld "$dir"/pids/munged; do
        [ -e "$file" ] && echo "${file##*/}"
    done
}

# ------------------------------------------------------------------ each kind

start_munged() {
    launch munged munged -F --force --socket="$dir/munge/socket" --key-file="$dir/munge/key" --log-file="$dir/log/munged.log" \
        --pid-file="$dir/munge/pid" --seed-file="$dir/munge/seed"
    for _ in $(seq 1000); do
        munge -n -S "$dir/munge/socket" 2>/dev/null | unmunge -S "$dir/munge/socket" >/dev/null 2>&1 && return
        lives munged || break
        sleep 0.05
    done
    return 1
}

start_slurmctld() {
    launch slurmctld slurmctld -D -f "$SLURM_CONF"
}

# The node is a process namespace: killing its first process ends all its processes. Its slurmd is not that first process, as
# the first one gets the orphans and has to reap them. Its /dev/shm is its own, as Open MPI names what it shares there by the host and
# the number of Slurm's job, which two clusters have in common.
start_node() { # n1
    launch "$1" unshare --uts --mount --pid --fork --kill-child --mount-proc --propagation slave /bin/sh -c '
        echo "$1" >/proc/sys/kernel/hostname && mount --bind "$2" /etc/hosts && mount -t tmpfs tmpfs /dev/shm || exit 1
        [ -z "${SLURM_CLUSTER_MSR:-}" ] || mount --bind "$SLURM_CLUSTER_MSR" /dev/cpu || exit 1
        [ -z "${SLURM_CLUSTER_SCRATCH:-}" ] || mount --bind "$SLURM_CLUSTER_SCRATCH/$1" "$SLURM_CLUSTER_SCRATCH" || exit 1
        slurmd -D -N "$1" -f "$SLURM_CONF" &
        slurmd=$!
        while kill -0 $slurmd 2>/dev/null; do wait $slurmd; done' sh "$1" "$dir/etc/hosts"
}

revive() {
    case $1 in
    munged) start_munged ;;
    slurmctld) start_slurmctld ;;
    n[0-9]*) start_node "$1" ;;
    *) fail "there is no $1" ;;
    esac
}

# ------------------------------------------------------------------ configuration

# A block of free ports below those that the kernel hands out by itself.
free_ports() { # COUNT
    local taken base port
    taken=" $(ss -Hltn | awk '{sub(/.*:/, "", $4); print $4}' | tr '\n' ' ') "
    for _ in $(seq 100); do
        base=$((16000 + RANDOM % 15000))
        for ((port = base; port < base + $1; port++)); do
            case $taken in *" $port "*) continue 2 ;; esac
        done
        echo "$base"
        return
    done
    return 1
}

# Each node binds to its hostname's address, which must be 127.0.0.1 on each: with others srun hangs inside a batch job.
write_hosts() {
    local i
    cat /etc/hosts
    for ((i = 1; i <= nodes; i++)); do echo "127.0.0.1 n$i"; done
}

# TmpFS with %n: srun --mpi=pmix makes a folder there by job and step, which two nodes in one would share.
# The scheduler's intervals, KillWait and the timeouts are short, as a test waits for them.
write_conf() {
    local host key
    host=$(hostname -s)
    cat <<END
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$dir/munge/socket
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool/%n
TmpFS=$dir/tmp/%n
SlurmctldPidFile=$dir/state/slurmctld.pid
SlurmdPidFile=$dir/spool/%n.pid
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdLogFile=$dir/log/%n.log
PlugStackConfig=$dir/etc/plugstack.conf
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2
ReturnToService=2
MailProg=/bin/true
MinJobAge=300
KillWait=3
WaitTime=300
UnkillableStepTimeout=300
MessageTimeout=30
SlurmctldTimeout=30
SlurmdTimeout=60
TCPTimeout=3
# A restarted controller takes a job for lost if its script has not begun after 10 s, as on a busy machine.
BatchStartTimeout=120
END
    for key in PROLOG EPILOG TASK_PROLOG PROLOG_SLURMCTLD; do
        local variable=SLURM_CLUSTER_$key
        [ -z "${!variable:-}" ] || echo "$(tr -d _ <<<"$key")=${!variable}"
    done
    [ -z "${SLURM_CLUSTER_CONF:-}" ] || cat "$SLURM_CLUSTER_CONF"
    local i
    for ((i = 1; i <= nodes; i++)); do
        echo "NodeName=n$i NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + i)) CPUs=${SLURM_CLUSTER_CPUS:-4}" \
            "RealMemory=${SLURM_CLUSTER_MEMORY:-4000} State=UNKNOWN"
    done
    grep -qi '^PartitionName=' "${SLURM_CLUSTER_CONF:-/dev/null}" ||
        echo "PartitionName=test Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO"
}

# Of lines with the same key the last one counts; Slurm takes the first.
last_of_each_key() {
    tac | awk -F= '/^(NodeName|PartitionName)=/ || !seen[tolower($1)]++' | tac
}

# ------------------------------------------------------------------ commands

check_machine() {
    local program
    [ "$(id -u)" = 0 ] || cannot "a Slurm cluster of one's own needs root"
    for program in munged munge unmunge slurmctld slurmd sinfo scontrol sbatch scancel setsid pgrep ss unshare setpriv; do
        command -v $program >/dev/null ||
            cannot "$program is not installed (packages slurmctld slurmd slurm-client munge iproute2 procps)"
    done
    unshare --uts --mount --pid --fork --kill-child --mount-proc --propagation slave /bin/sh -c \
        'echo n1 >/proc/sys/kernel/hostname' 2>/dev/null || cannot "this machine does not let root make namespaces"
}

stop() {
    local what
    for what in $(members); do
        case $what in
        slurmctld | munged) signal "$what" TERM ;;
        *) signal "$what" KILL ;;
        esac
        rm -f "$dir/pids/$what"
    done
    rm -f "$dir/munge/socket" "$dir/munge/socket.lock" 2>/dev/null
}

all_idle() {
    [ "$(timeout 5 sinfo -h -N -o '%N %T' 2>/dev/null | sort -u | grep -c ' idle$')" = "$nodes" ]
}

wait_until_idle() {
    local what
    for _ in $(seq 1000); do
        all_idle && return
        for what in $(members); do
            lives "$what" || { echo "$what ended" >&2 && return 1; }
        done
        sleep 0.1
    done
    echo "its nodes do not become idle" >&2
    return 1
}

give_up() {
    echo "$name: could not start the cluster; from its logs:" >&2
    tail -n 8 "$dir"/log/* >&2
    stop
}

start() {
    check_machine
    [ -z "$(members)" ] || fail "$dir is in use: stop it first"
    mkdir -p "$dir" || fail "cannot make $dir"
    dir=$(cd "$dir" && pwd -P)
    export SLURM_CONF=$dir/etc/slurm.conf
    rm -rf "${dir:?}"/{etc,munge,state,spool,log,pids,tmp,env.sh}
    umask 022
    mkdir -p "$dir"/{etc,munge,state,spool,log,pids}
    chmod 755 "$dir" # munged refuses a folder that others can write to, and its clients must reach the socket
    local i
    for ((i = 1; i <= nodes; i++)); do
        mkdir -p "$dir/tmp/n$i"
        chmod 1777 "$dir/tmp/n$i"
    done
    trap give_up EXIT
    trap 'exit 1' INT TERM
    (umask 077 && head -c 128 /dev/urandom >"$dir/munge/key")
    port=$(free_ports $((nodes + 1))) || fail "there are no $((nodes + 1)) free ports in a row"
    : >"$dir/etc/plugstack.conf"
    write_hosts >"$dir/etc/hosts"
    write_conf | last_of_each_key >"$SLURM_CONF"
    printf 'export SLURM_CONF=%q\n' "$SLURM_CONF" >"$dir/env.sh"
    start_munged || fail "munged does not answer"
    start_slurmctld
    for ((i = 1; i <= nodes; i++)); do start_node "n$i"; done
    wait_until_idle || fail "it is not up"
    trap - EXIT
    echo "up: $nodes nodes; use it with . $dir/env.sh"
}

status() {
    local what result=0 up=0
    for what in $(members); do
        if lives "$what"; then
            up=1
            echo "$what: up"
        else
            result=2
            echo "$what: down"
        fi
    done
    [ $up = 1 ] || { echo "nothing runs" && return 1; }
    timeout 5 sinfo -N -o '%N %T %E' || result=2
    return $result
}

[ $# -ge 2 ] || usage
command=$1
dir=$2
shift 2
for variable in ${!SLURM_@}; do # of a job that this may run in
    case $variable in SLURM_CLUSTER_*) ;; *) unset "$variable" ;; esac
done
export SLURM_CONF=$dir/etc/slurm.conf
case $command in
start)
    nodes=${1:-2}
    [[ $nodes =~ ^[1-9][0-9]?$ ]] || fail "1 to 99 nodes, not $nodes"
    start
    ;;
stop) stop ;;
status) status ;;
kill)
    for what in "$@"; do signal "$what" KILL; done
    ;;
end)
    for what in "$@"; do signal "$what" TERM; done
    ;;
revive)
    for what in "$@"; do revive "$what" || fail "$what does not start"; done
    ;;
*) usage ;;
esac
