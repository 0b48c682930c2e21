#!/usr/bin/env bash
# The PyTorch that make bench compares with: setup/peer-debian13 makes its folder, tests/bench/run measures both versions in all modes, and
# nothing is left running or mounted. debootstrap, the system that it makes, the PyTorch and trainctl are small scripts.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"
needs unshare setpriv python3 jq
own_mounts
private_folder
chmod 755 "$work"
unset DEBIAN_CLONE DEBIAN_FRESH DEBIAN_MIRROR DEBIAN_ARCHIVES
mkdir "$work/tree" "$work/bin" "$work/build" "$work/stubs"
cp -r "$top_srcdir/setup" "$work/tree"
mkdir -p "$work/tree/tests"
cp -r "$top_srcdir/tests/bench" "$work/tree/tests"

# ---- what stands for the programs

# A python3 with PyTorch: its version, a step of a second or less in the modes that work, and one that has not ended when the test does.
stub_python() { # FILE VERSION COMPILE
    write_script "$1" <<END
#!/bin/sh
shift
case \$1 in
versions)
    printf '{"torch": "%s", "torchvision": "0.1", "onednn": "oneDNN 1", "compile": %s}\\n' $2 '$3'
    exit
    ;;
esac
case $2:\$5 in
1.13.0:contiguous) step=4 ;;
1.13.0:channels_last) step=8 ;;
2.6.0:contiguous) step=2 ;;
2.6.0:channels_last) step=1 ;;
2.6.0:contiguous-compiled) step=1.05 ;;
*)
    echo 'ImportError: no compiler' >&2
    exit 1
    ;;
esac
while read -r steps; do
    [ "\$2" != resnet18 ] || [ \$step = 4 ] || sleep 600
    echo "{\"seconds\": [\$step], \"images\": 32, \"memory_bytes\": \${step%.*}000}"
done
END
}
stub_python "$work/python3" 1.13.0 null
stub_python "$work/stubs/python3" 2.6.0 '"torch.compile avx2"'
for program in dpkg update-ca-certificates; do
    write_script "$work/stubs/$program" <<<'#!/bin/sh'
done
write_script "$work/stubs/apt-get" <<'END'
#!/bin/sh
echo "$*" >>/root/apt-get
case "$*" in
*" install "*) ! test -e /root/interrupt && mv /root/python3 /usr/bin/python3 ;;
esac
END
# A system of these scripts and of the programs that they and the real scripts need.
write_script "$work/bin/debootstrap" <<END
#!/bin/bash
system=\${!#}
mkdir -p "\$system"/{dev,etc/apt/apt.conf.d,proc,root,run,sys,tmp,var/cache/apt/archives,usr/bin,usr/lib,usr/lib64}
ln -s usr/bin usr/lib usr/lib64 "\$system"
for program in awk basename bash cat dirname env grep id mkdir mktemp mv rm sed sh sleep tee test umount; do
    file=\$(type -P \$program)
    cp -L "\$file" "\$system/usr/bin/\$program"
    ldd "\$file" | grep -o '/[^ ]*' | xargs -I{} cp -L --parents -n {} "\$system"
done
cp "$work/stubs"/* "\$system/usr/bin"
mv "\$system/usr/bin/python3" "\$system/root"
echo VERSION_ID=13 >"\$system/etc/os-release"
[ ! -e "$work/interrupt" ] || touch "\$system/root/interrupt"
END
write_script "$work/build/trainctl" <<'END'
#!/bin/sh
echo '{"images_per_sec": 64, "memory_bytes_per_worker": 500, "gflops": 1, "peak_gflops": 1}'
END

# ---- setup/peer-debian13
PATH=$work/bin:$PATH
folder=$work/peer
peer_debian13() { # ARGUMENT...: sets $said and $status
    said=$(cd "$work" && tree/setup/peer-debian13 "$@" </dev/null 2>&1)
    status=$?
}
said=$(cd "$work" && setpriv --reuid=65534 --regid=65534 --clear-groups tree/setup/peer-debian13 --yes peer 2>&1)
is "$? $said" "1 peer-debian13: only root can create a Debian system in a folder" "it needs root"
peer_debian13 --nothing
is $status 2 "an unknown option is refused"
mkdir -p "$work/mine/system"
peer_debian13 --yes mine
is "$status $said" "1 peer-debian13: $work/mine is not one that setup/peer-debian13 made: name another folder" "so is a folder that it did not make"
ok "which stays" test -d "$work/mine/system"
PATH=/usr/bin:/bin peer_debian13 --yes peer
is "$status $said" "1 peer-debian13: debootstrap not found: apt-get install debootstrap" "debootstrap is missing"
peer_debian13 peer
ok "it asks" test $status = 1
like "$said" "^Download about [0-9]+ MB .* $folder\? \[y/N\] .*nothing was done" "how much it downloads and where it goes"
ok "and does nothing without an answer" test ! -e "$folder"

run_bench() { # ARGUMENT...: sets $said and $status
    said=$(cd "$work" && PYTHON3=$work/python3 top_builddir=$work/build tree/tests/bench/run --rounds 2 "$@" 2>&1)
    status=$?
}
run_bench --peer "$folder" --rows resnet50-224
like "$said" "there is no PyTorch 2.6 in $folder: setup/peer-debian13, as root, installs it" "make bench says how to install a newer PyTorch"
is "$(jq -c '.rows[0] | [.peer, .ratio, [.torch[] | [.torch, .mode, .value, .best]]]' "$work/bench.json")" \
    '[8,8,[["1.13.0","contiguous",8,true],["1.13.0","channels_last",4,false]]]' "and compares with this machine's"

# Interrupted: the first installation fails, the second goes on in the same system.
mkdir "$folder"
touch "$work/interrupt"
peer_debian13 --yes peer
like "$status $said" "^1 .*not finished; run it again to go on" "an installation that fails is reported"
run_bench --peer "$folder" --rows resnet50-224
like "$said" "PyTorch in $folder is not complete: run setup/peer-debian13 $folder again" "make bench does not use what is not complete"
rm "$folder/system/root/interrupt"
peer_debian13 --yes peer
is $status 0 "the next run finishes it"
like "$said" "^$folder is complete: .*\"torch\": \"2.6.0\"" "and says what is there"
is "$(grep -c ' install ' "$folder/system/root/apt-get")" 2 "in the same system"
like "$(cat "$folder/system/root/apt-get")" ' install .* g\+\+ .*libsleef-dev' "which gets what torch.compile needs"
is "$(ls "$folder")" "$(printf '%s\n' complete peer-debian13 system system.lock)" "what was downloaded is removed"
peer_debian13 peer
like "$status $said" "^0 $folder is complete: " "then there is nothing to do or to ask"

# ---- both versions in one run
run_bench --peer "$folder" --rows resnet50-224 memory
is "$(jq -c '.rows[0] | [.peer, .ratio, [.torch[] | [.torch, .mode, .value, .best, .failed]]]' "$work/bench.json")" \
    '[32,2,[["1.13.0","contiguous",8,true,null],["1.13.0","channels_last",4,false,null],["2.6.0","contiguous",16,false,null],["2.6.0","channels_last",32,true,null],["2.6.0","contiguous-compiled",30.476190476190474,false,null],["2.6.0","channels_last-compiled",null,false,"ImportError: no compiler"]]]' \
    "the newer one counts, all modes are listed, and those that fail with the reason"
like "$said" '^resnet50-224 .* 64 +8 +32 +32 +2\.000 .* aim|must|below$' "the versions stand side by side in the table"
like "$said" 'resnet50-224: PyTorch 2\.6\.0: .*channels_last 32\*, contiguous-compiled 30\.48, channels_last-compiled fails \(ImportError: no compiler\)' \
    "with their modes below it"
is "$(jq -c '.rows[1] | [.traind, .peer, .ratio]' "$work/bench.json")" '[500,1000,0.5]' "of memory the least counts"
is "$(jq -c '[.machine.torch, (.machine.pythons[] | .where)]' "$work/bench.json")" "[\"2.6.0\",\"this machine\",\"$folder\"]" "the file names both"
run_bench --peer "$folder" --modes contiguous --torch "train resnet50 224 32"
is "$status $(grep ^PyTorch <<<"$said" | paste -s -d ,)" "0 PyTorch 1.13.0: contiguous 8*,PyTorch 2.6.0: contiguous 16*" "PyTorch alone, in one mode"
is "$(grep -c "$work" /proc/mounts)" 0 "nothing stays mounted"

# ---- stopped in the middle of a step
(cd "$work" && exec env PYTHON3="$work/python3" top_builddir="$work/build" tree/tests/bench/run --peer "$folder" --modes contiguous \
    --torch "train resnet18 224 32") >"$work/said" 2>&1 &
run=$!
inside() { # the script that is its python3, not the shell that starts it
    pgrep -f "^(/usr)?(/bin/)?sh (/usr)?/bin/python3 tests/bench/peer.py train resnet18" >/dev/null
}
ended() {
    ! kill -0 $run 2>/dev/null
}
eventually eval 'inside || ended'
kill -TERM $run
wait $run
is "$? $(tail -n 1 "$work/said")" "1 bench: stopped by a signal" "SIGTERM stops it"
ok "and the PyTorch in the folder" eventually eval '! inside'
is "$(grep -c "$work" /proc/mounts)" 0 "nothing stays mounted"

# ---- parts are removed
rm -r "$folder/system/usr/bin"
run_bench --peer "$folder" --rows resnet50-224
like "$said" "parts of $folder were removed: remove all of it and run setup/peer-debian13 $folder again" "make bench says what to do if parts were removed"
peer_debian13 --yes peer
is "$status $said" "1 peer-debian13: parts of the system in $folder were removed: rm -r $folder, and run this again" "so does setup/peer-debian13"
done_testing
