#!/usr/bin/env bash
# The programs as they are built: what configure adds against the exploitation of memory errors is in each of them.
# shellcheck source=tests/tap.sh
. "${top_srcdir:=$(cd "$(dirname "$0")/../../.." && pwd)}/tests/tap.sh"
: "${top_builddir:=$(pwd)}"

needs readelf objdump
flags=$(sed -n 's/^HARDEN_[CL][A-Z]*FLAGS = //p' "$top_builddir/Makefile" | tr '\n' ' ')
[ -n "${flags// /}" ] || skip_all "configured with --disable-hardening"
elf() { # libtool's programs are scripts before they are installed
    local name=$top_builddir/$1
    [ ! -e "$(dirname "$name")/.libs/$(basename "$name")" ] || name=$(dirname "$name")/.libs/$(basename "$name")
    readlink -f "$name"
}
has() { # FLAG: configure found it
    [[ " $flags " == *" $1"* ]]
}

marked() { # FILE
    [ "$(objdump -d --no-show-raw-insn "$1" | grep -c endbr64)" -ge 10 ]
}

for name in traind trainctl train-worker train-prep worker/comm/libtraincomm.so worker/libtrainengine.so; do
    file=$(elf "$name")
    ok "$name is built" test -f "$file"
    if has -Wl,-z,now; then
        like "$(readelf -dW "$file")" 'FLAGS.*(BIND_NOW|NOW)' "$name: symbols are bound at the start"
        like "$(readelf -lW "$file")" 'GNU_RELRO' "$name: and what they are bound by is read-only then"
    fi
    like "$(readelf -lW "$file")" 'GNU_STACK +0x[0-9a-f]+ 0x[0-9a-f]+ 0x[0-9a-f]+ 0x[0-9a-f]+ 0x[0-9a-f]+ RW ' \
        "$name: its stack is not executable"
    case $name in *.so) ;; *) like "$(readelf -hW "$file")" 'Type: +DYN' "$name: it can be loaded anywhere" ;; esac
    symbols=$(readelf -W --dyn-syms "$file" | awk '{ print $8 }')
    ! has -fstack-protector-strong || like "$symbols" '__stack_chk_fail' "$name: its stacks are guarded"
    ! has -D_FORTIFY_SOURCE || like "$symbols" '^__[a-z]+_chk' "$name: copies into buffers are checked"
    # The whole file is marked only if the C library was built for it too.
    ! has -fcf-protection || ok "$name: places that are jumped to are marked" marked "$file"
done
done_testing
