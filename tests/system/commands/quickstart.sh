#!/usr/bin/env bash
# ./quickstart as far as it needs no build and no training of its own: its options, its message after a failure, --stop and --remove, in a folder
# as it leaves one, with the real daemon and a job that trains.
# shellcheck source=tests/system/lib.sh
. "${top_srcdir:?run it by make check}/tests/system/lib.sh"
needs jq curl sqlite3 mpirun script npm
daemon=
clean_up() {
    [ -z "$daemon" ] || { kill "$daemon" && wait "$daemon"; } 2>/dev/null
    rm -rf "$work"
}
trap clean_up EXIT
unset TRAINCTL_SERVER TRAINCTL_CONTEXT TRAINCTL_TOKEN TRAIND_STATE http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY
export XDG_CACHE_HOME=$work/cache XDG_CONFIG_HOME=$work/config TRAIND_PRESETS=$top_srcdir/etc/presets

tree=$work/tree
mkdir -p "$tree/setup"
cp "$top_srcdir/quickstart" "$tree"
cp "$top_srcdir/setup/lib.sh" "$tree/setup"
touch "$tree/setup/packages.build" "$tree/setup/packages.quickstart" # nothing is missing
cd "$tree" || exit
run() { # ARGUMENT...: without a terminal; sets $said and $status
    said=$(./quickstart "$@" </dev/null 2>&1)
    status=$?
}
run_typing() { # LINE ARGUMENT...: on a terminal
    said=$(script -qec "./quickstart ${*:2}" /dev/null <<<"$1" | tr -d '\r')
}

# ---- options
run --help
is "$status $(awk 'length > 80' <<<"$said")" "0 " "--help keeps to 80 columns"
for name in $(sed -n 's/^  \(JOB  \)\? *\([a-z0-9-]*\)  *ResNet-.*/\2/p' <<<"$said"); do
    jq '.data.train = "synthetic" | .data.eval = "synthetic" | .data += {train_images: 60000, eval_images: 10000}' \
        "$top_srcdir/etc/examples/$name.json" >"$work/job.json"
    ok "its job $name can be planned" "$top_builddir/trainctl" plan "$work/job.json"
done
is "$name" fashion-94 "and these are all"
run nothing
is "$status" 2 "an unknown job is refused"
run --cancel
is "$status" 2 "--cancel alone, too"

# ---- a failure: there is nothing to build
run --no-run
ok "a failed build ends it, in a few lines" test $status -ne 0 -a "$(wc -l <<<"$said")" -le 12
like "$said" 'compiling into ./_install \.\.\. failed' "which name the phase"
like "$said" 'bootstrap: No such file' "... show the end of the log"
like "$said" "The whole log: $tree/_build/quickstart.log" "... and where it is"
ok "the log has it" grep -q 'bootstrap: No such file' _build/quickstart.log
rm -r _build

# ---- nothing to stop or to remove
run --stop
like "$status $said" '^0 traind is not running' "--stop without a daemon"
run --remove --yes
is "$status $said" "0 There is nothing to remove." "--remove where nothing was made"

# ---- what ./quickstart leaves: programs, data, the daemon, a job that trains for long
mkdir -p _install/bin _state _data/fashion-mnist _data/mine _build/quickstart
cp "$top_builddir/traind" "$top_builddir/trainctl" _install/bin
touch configure _build/quickstart/config.status _build/quickstart.log
printf '%s\n' libb liba >_state/installed-packages
printf '%s\n' "worker = $top_builddir/tests/bin/train-worker" "node_check_seconds = 0" "slots = 2" >"$work/traind.conf"
_install/bin/traind --config "$work/traind.conf" --state "$tree/_state" --listen 127.0.0.1:0 >"$work/daemon.log" 2>&1 &
daemon=$!
echo $daemon >_state/traind.pid
listens() { curl -sf -o /dev/null "$(cat _state/listen 2>/dev/null)/healthz"; }
ok "the daemon listens" eventually listens
client() { _install/bin/trainctl "$@"; }
ok "its address is kept" bash -c '. ./quickstart && keep_context'
cat >"$work/long.json" <<END
{"name": "long", "model": {"arch": "cnn"}, "data": {"train": "synthetic", "train_images": 100000}, "batch_per_worker": 2, "steps": 1000000,
 "cluster": {"workers_per_node": 1, "threads_per_worker": 1}}
END
ok "trainctl finds the daemon from anywhere" env -C / "$tree/_install/bin/trainctl" submit "$work/long.json"
steps() { client metrics --points 2 1 2>/dev/null | grep -q '^ *[1-9]'; }
ok "a job trains" eventually steps
worker=$(pgrep -f "train-worker --job $tree/_state/" | head -n 1)
ok "it has a worker" test -n "$worker"

# ---- --remove asks first
run --remove
like "$status $(tail -n 1 <<<"$said")" '^1 .*without a terminal, --remove needs --yes' "--remove without a terminal needs --yes"
run_typing n --remove
like "$said" 'These jobs have not ended and are cancelled: 1' "it names the job"
like "$said" 'nothing was removed' "and takes no for an answer"
ok "all is there" test -d _state -a -d _install -a -d _data/fashion-mnist -a -e configure -a -d "/proc/$worker"

# ---- --stop leaves the training alone
run --stop
like "$status $said" "^0 traind \\(pid $daemon\\) is stopped" "--stop stops the daemon"
like "$said" 'These jobs have not ended: 1' "names the job"
like "$said" 'quickstart --stop --cancel' "and explains how to end it"
wait $daemon 2>/dev/null
daemon=
ok "which goes on" test -d "/proc/$worker"

# ---- --remove, with the daemon stopped and the training on its way
mkdir -p "$work/cache/traind"
mkdir -p _build/dev && touch _build/dev/config.status # another build, which needs configure
run --remove --yes
is $status 0 "--remove --yes"
like "$said" 'apt-get autoremove --purge liba libb$' "it explains how to remove the packages"
is "$(ls -A | paste -s -d ' ') $(ls _data _build | paste -s -d ' ')" "_build _data configure quickstart setup _build: dev  _data: mine" \
    "what it did not make stays"
gone() { [ ! -d "/proc/$worker" ]; }
ok "the training was cancelled" eventually gone
is "$("$top_builddir/trainctl" --json context | jq -c .contexts)" "{}" "trainctl forgets the address"
is "$(find "$work/config" "$work/cache" -name '*traind*' 2>/dev/null)" "" "nothing is left in the user's folders"
rm -r _build
run --remove --yes
is "$status $(ls -A | paste -s -d ' ')" "0 _data quickstart setup" "without another build configure goes, too"
done_testing
