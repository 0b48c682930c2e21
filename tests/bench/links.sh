#!/usr/bin/env bash
# ResNet-50's gradients summed between machines whose links are slow enough for the processors of this one: four network namespaces of
# two ranks each (tests/system/hosts/net.sh), each link limited both ways by tbf. Prints one JSON object: what libtraincomm takes, what
# one MPI_Allreduce of Open MPI and of MPICH takes, and what is exposed behind backward passes, beside the prediction.
#
#   tests/bench/links.sh [--rate RATE] [--rounds N] [--times T,T...] [--peers]        in the build folder
#   tests/bench/links.sh --local        tests/bench/allreduce with MPICH, two ranks on this machine
#
# RATE as tc has it (200mbit). A backward pass is T times as long as the links alone need (0,0.5,1.5), and sleeps: eight ranks share
# these cores. --peers: only what is compared with MPI_Allreduce. A machine sends 153 MB for a sum.
#
# predicted_ms is what trainctl predict ($TRAINCTL) says with what depends on this machine and its load as the same run has measured it
# before: a round of messages (hop_us), what all machines send at once, waiting for nothing (link_mbit), and the sum in a machine's memory
# (node_ms), which is added. nominal_ms is what it says of the links as they are set, of which TCP leaves 1448 bytes of 1514.
set -u
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${top_builddir:-.}" && pwd)
net=$source_dir/tests/system/hosts/net.sh
trainctl=${TRAINCTL:-$build/trainctl}
hosts=4 each=2 rate=200mbit rounds=3 times=0,0.5,1.5 peers_only='' local_only=''
die() { echo "links.sh: $*" >&2; exit 1; }
while [ $# -gt 0 ]; do
    case $1 in
    --rate | --rounds | --times) [ $# -gt 1 ] || die "$1 needs a value" ;;
    esac
    case $1 in
    --rate) rate=$2 && shift 2 ;;
    --rounds) rounds=$2 && shift 2 ;;
    --times) times=$2 && shift 2 ;;
    --peers) peers_only=1 && shift ;;
    --local) local_only=1 && shift ;;
    *) die "unknown option $1; see the comment on its first lines" ;;
    esac
done
work=$(mktemp -d "${TMPDIR:-/tmp}/traind-links-XXXXXX")
lab=$work/lab name=tl$((BASHPID % 100000))h
running=
end() {
    [ -z "$running" ] || kill "$running" 2>/dev/null
    "$net" down "$lab"
    rm -rf "$work" "${TMPDIR:-/tmp}/ompi.$name"[1-9].*
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# The same program for MPICH, which may not be there.
mpich=
if command -v mpicc.mpich mpirun.mpich >"$work/log"; then
    include=$(dirname "$(find "$build" -maxdepth 1 -name config.h)")
    mpicc.mpich -w -std=gnu11 -O2 -fopenmp -D_GNU_SOURCE -include "$include/config.h" -I"$source_dir" -I"$include" -o "$work/mpich" \
        "$source_dir"/worker/comm/*.c "$source_dir/common/number.c" "$source_dir/tests/bench/allreduce.c" -lm -lpthread || die "MPICH cannot compile it"
    mpich=$work/mpich
fi

if [ -n "$local_only" ]; then
    [ -n "$mpich" ] || die "needs MPICH (packages mpich, libmpich-dev)"
    mpirun.mpich -bind-to core -n 2 "$mpich"
    exit
fi

case $rate in
*gbit) mbit=$((${rate%gbit} * 1000)) ;;
*mbit) mbit=${rate%mbit} ;;
*) die "the rate is a whole number of mbit or gbit, not $rate" ;;
esac
[ "$mbit" -gt 0 ] || die "the rate is a whole number of mbit or gbit, not $rate"
[ "$(id -u)" = 0 ] || die "network namespaces need root"
PATH=$PATH:/usr/sbin
for i in ip tc ssh sshd jq; do
    command -v $i >/dev/null || die "needs $i (packages iproute2, openssh-client, openssh-server, jq)"
done

"$net" up "$lab" "$name" $hosts >"$work/log" 2>&1 || die "no hosts can be made here: $(tail -n 1 "$work/log")"
for ((i = 1; i <= hosts; i++)); do
    # One burst holds a packet of TCP's largest segments: a smaller one has the kernel cut them up, which costs more than all else.
    for end in "$name$i eth0" "${name}sw p$i"; do
        set -- $end
        tc -n "$1" qdisc add dev "$2" root tbf rate "${mbit}mbit" burst 256kb latency 50ms || die "no limit on $name$i"
    done
done

on_first() { # COMMAND...: on the first host; stops with this script
    "$net" run "$lab" "${name}1" "$@" >"$work/out" 2>"$work/err" </dev/null &
    running=$!
    wait "$running"
    local status=$?
    running=
    [ $status -eq 0 ] || die "$*: exit status $status: $(tail -n 3 "$work/err")"
    cat "$work/out"
}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
list=$(seq -s , -f "$name%g:$each" $hosts)
open_mpi() { # ARGUMENT...
    on_first mpirun --mca plm_rsh_agent "$lab/ssh" --mca oob_tcp_if_include eth0 --mca btl_tcp_if_include eth0 --mca pml ob1 \
        --mca coll_tuned_priority 100 --mca mpi_yield_when_idle 1 --bind-to none --host "$list" -np $((hosts * each)) "$build/tests/bench/allreduce" "$@"
}
mpich() { # ARGUMENT...
    on_first mpirun.mpich -launcher ssh -launcher-exec "$lab/ssh" -iface eth0 -bind-to none -hosts "$list" -n $((hosts * each)) \
        -genv UCX_TLS tcp,self -genv UCX_NET_DEVICES eth0 "$mpich" "$@"
}

# In turn: sums and calls of either library.
: >"$work/open_mpi" && : >"$work/mpich.json"
for ((i = 0; i < rounds; i++)); do
    open_mpi --fp32 --rounds 1 >>"$work/open_mpi"
    [ -z "$mpich" ] || mpich --fp32 --rounds 1 >>"$work/mpich.json"
done

median='def median: sort | if length % 2 == 1 then .[length / 2 | floor] else (.[length / 2 - 1] + .[length / 2]) / 2 end;'

# What trainctl predicts to be exposed, in ms, behind so many ms of backward, which are two thirds of a step's computing.
goodput=$(jq -n "$mbit * 1448 / 1514")
predicted() { # MS HOP-US LINK-MBIT
    local overlap=true speed
    speed=$(jq -n "$each * 1000 / (1.5 * ([$1, 0.001] | max))") # a batch of 1
    [ "$1" != 0 ] || overlap=false
    jq -n --argjson each $each --argjson overlap $overlap '{model: {arch: "resnet50", classes: 1000, image_size: 224}, batch_per_worker: 1,
        cluster: {workers_per_node: $each, threads_per_worker: 1}, comm: {overlap: $overlap}, data: {train: "/nowhere", train_images: 1281167}}' >"$work/job.json"
    XDG_CACHE_HOME=$work TRAINCTL_SERVER=unix:$work/none "$trainctl" predict --nodes $hosts --jitter 0 --node-speed "$speed" --hop-us "$2" \
        --link-gbit "$(jq -n "$3 / 1000")" --json "$work/job.json" 2>"$work/err" |
        jq -e --argjson n $((hosts * each)) --argjson speed "$speed" --argjson each $each '1000 * ($n / .points[0].images_per_sec.value - $each / $speed)' ||
        die "trainctl predict: $(tail -n 1 "$work/err")"
}
alone=$(jq -n "102.228128 * 2 * ($hosts - 1) / $hosts * 8 * 1000 / $goodput")
: >"$work/behind"
for t in $([ -n "$peers_only" ] || tr , ' ' <<<"$times"); do
    ms=$(jq -n "$t * $alone | round")
    if [ "$ms" = 0 ]; then
        jq -s "$median"'{exposed_ms: map(.sum_ms) | median, hop_us: map(.hop_us) | median, link_mbit: map(.link_mbit) | median, node_ms: map(.node_ms) | median}' "$work/open_mpi" >"$work/step"
    else
        open_mpi --fp32 --rounds "$rounds" --backward "$ms" --sleep >"$work/behind_it"
        jq "{exposed_ms: (.sum_step_ms - $ms), hop_us, link_mbit, node_ms, sum_words}" "$work/behind_it" >"$work/step"
    fi
    read -r hop link < <(jq -r '"\(.hop_us) \(.link_mbit)"' "$work/step")
    says=$(predicted "$ms" "$hop" "$link") && nominal=$(predicted "$ms" 20 "$goodput") || exit 1
    jq "{backward_ms: $ms} + . + {predicted_ms: ($says + .node_ms), nominal_ms: $nominal, ratio: (.exposed_ms / ($says + .node_ms))}" "$work/step" >>"$work/behind"
done
jq -n --slurpfile open "$work/open_mpi" --slurpfile mpich "$work/mpich.json" --slurpfile behind "$work/behind" \
    --argjson mbit "$mbit" --argjson links "$alone" --argjson load "$(cut -d ' ' -f 1 /proc/loadavg)" "$median"'
    def of($runs; $field): $runs | map(.[$field]) | if length > 0 then median else null end;
    {mbit: $mbit, load: $load, links_alone_ms: $links, rounds: ($open | length)}
    + ([["sum_ms", $open, "sum_ms"], ["sum_cpu_ms", $open, "sum_cpu_ms"], ["one_call_ms", $open, "one_call_ms"], ["one_call_cpu_ms", $open, "one_call_cpu_ms"],
        ["mpich_sum_ms", $mpich, "sum_ms"], ["mpich_sum_cpu_ms", $mpich, "sum_cpu_ms"],
        ["mpich_one_call_ms", $mpich, "one_call_ms"], ["mpich_one_call_cpu_ms", $mpich, "one_call_cpu_ms"]]
       | map({(.[0]): of(.[1]; .[2])}) | add)
    + {behind: $behind, off: ($behind | map(.ratio - 1 | fabs) | max)}'
