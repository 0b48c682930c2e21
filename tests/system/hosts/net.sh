#!/bin/bash
# Several hosts on one machine: a network namespace each, with its own host name and sshd, on a bridge that is in a
# namespace too. Nothing is changed outside of them.
#
#   net.sh up DIR NAME N     hosts NAME1..N at 10.87.0.1..N, device eth0; files in DIR (made)
#   net.sh down DIR          ends all that runs there, by process id, and removes it all; may be repeated
#   net.sh run DIR HOST COMMAND...     runs it on a host, in place of this process
#   net.sh link DIR HOST up|down       its cable
#   net.sh rate DIR HOST RATE|off [QUEUE]   limits its link both ways, as in 100mbit; what a short queue (6kb) cannot hold is dropped
#   net.sh pids DIR HOST     who runs there
#
# DIR/ssh is the launch agent: ssh from one host to another with keys of their own.
set -u
NET=10.87.0
me=$(readlink -f "$0")
die() { echo "${0##*/}: $*" >&2; exit 1; }

enter() { # HOST COMMAND...
    exec ip netns exec "$1" unshare --uts --mount /bin/sh -c \
        'echo "$1" >/proc/sys/kernel/hostname && mount --bind "$2" /etc/hosts && shift 2 && exec "$@"' sh "$1" "$dir/hosts" "${@:2}"
}

make_host() { # I
    local h=$name$1
    ip netns add "$h" && ip -n "${name}sw" link add name "p$1" type veth peer name eth0 netns "$h" || return 1
    ip -n "${name}sw" link set "p$1" master switch0 && ip -n "${name}sw" link set "p$1" up
    ip -n "$h" link set lo up && ip -n "$h" addr add "$NET.$1/24" dev eth0 && ip -n "$h" link set eth0 up
}

make_ssh() {
    ssh-keygen -q -t ed25519 -N '' -f "$dir/key" && cp "$dir/key.pub" "$dir/authorized" && chmod 600 "$dir/authorized"
    # A private home: bash reads ~/.bashrc for each command over ssh.
    mkdir "$dir/home"
    cat >"$dir/sshd_config" <<END
SetEnv HOME=$dir/home
ListenAddress 0.0.0.0
HostKey $dir/key
AuthorizedKeysFile $dir/authorized
PermitRootLogin yes
StrictModes no
UsePAM no
PidFile none
END
    cat >"$dir/ssh" <<END
#!/bin/sh
exec ssh -F none -i $dir/key -o BatchMode=yes -o ConnectTimeout=15 -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR "\$@"
END
    chmod +x "$dir/ssh"
}

up() {
    local i
    mkdir -p "$dir" && echo "$name" >"$dir/name" || die "cannot write $dir"
    ip netns add "${name}sw" || die "no network namespace can be made"
    echo 127.0.0.1 localhost >"$dir/hosts"
    for ((i = 1; i <= count; i++)); do echo "$NET.$i $name$i" >>"$dir/hosts"; done
    ip -n "${name}sw" link add name switch0 type bridge && ip -n "${name}sw" link set switch0 up || die "no bridge can be made"
    make_ssh || die "no keys can be made"
    mkdir -p /run/sshd
    for ((i = 1; i <= count; i++)); do
        make_host $i || die "no host $name$i can be made"
        "$me" run "$dir" "$name$i" /usr/sbin/sshd -f "$dir/sshd_config" || die "no sshd on $name$i"
    done
}

down() {
    local h left
    for h in $(ip netns list | awk '{print $1}' | grep -xE "$name(sw|[0-9]+)"); do
        left=$(ip netns pids "$h")
        [ -z "$left" ] || kill -KILL $left 2>/dev/null
        ip netns del "$h"
    done
    rm -rf "$dir"
}

command=${1:-} dir=${2:-}
[ -n "$dir" ] || die "see the comment on its first lines"
shift 2
case $command in
up) name=$1 count=$2 && up ;;
down) [ ! -e "$dir/name" ] || { name=$(cat "$dir/name") && down; } ;;
run) enter "$@" ;;
link) ip -n "$1" link set eth0 "$2" ;;
rate)
    name=$(cat "$dir/name") h=$1 rate=$2 queue="burst 64kb latency 50ms"
    [ -z "${3-}" ] || queue="burst 6kb limit $3"
    for end in "$h eth0" "${name}sw p${h#"$name"}"; do
        set -- $end
        tc -n "$1" qdisc del dev "$2" root 2>/dev/null
        [ "$rate" = off ] || tc -n "$1" qdisc add dev "$2" root tbf rate "$rate" $queue || die "no limit on $1"
    done
    ;;
pids) ip netns pids "$1" ;;
*) die "unknown command $command" ;;
esac
