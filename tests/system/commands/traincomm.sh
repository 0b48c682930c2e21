#!/usr/bin/env bash
# libtraincomm as other C programs meet it: installed, found by pkg-config, and used by the example of doc/examples.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"
fashion=/usr/share/datasets/fashion-mnist
[ -d $fashion ] || skip_all "needs the Debian package dataset-fashion-mnist"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
private_folder

# Installed below DESTDIR as a package does, and found by pkg-config.
install() {
    make -C "$top_builddir" DESTDIR="$work/root" install-libLTLIBRARIES install-includeHEADERS install-nodist_pkgconfigDATA >"$work/install.log" 2>&1 ||
        { tail -n 20 "$work/install.log"; false; }
}
ok "the library is installed" install
pc=$(find "$work/root" -name traincomm.pc)
libdir=$(dirname "$(dirname "$pc")")
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR=$work/root LD_LIBRARY_PATH=$libdir

is "$(pkg-config --modversion traincomm)" "$(readlink "$libdir/libtraincomm.so" | sed 's/libtraincomm.so.//')" \
    "the library's file has the version of pkg-config"
is "$(nm -D --defined-only "$libdir/libtraincomm.so" | awk '$2 != "A" && $3 !~ /^traincomm_/')" "" \
    "it exports nothing but its interface"
declared=$(sed -n '/^typedef/d; s/^[a-z].*[ *]\(traincomm_[a-z_]*\)(.*/\1/p' "$(find "$work/root" -name traincomm.h)" | sort -u)
is "$(nm -D --defined-only "$libdir/libtraincomm.so" | awk '$3 ~ /^traincomm_/ { print $3 }' | sort)" \
    "$declared" "and all of it"
is "$(for name in $declared; do grep -q "$name" "$top_srcdir/man/traincomm.3" || echo "$name"; done)" "" \
    "the man page has every function"

read -ra flags < <(pkg-config --cflags --libs traincomm zlib)
ok "the example is compiled by pkg-config" \
    cc -std=gnu11 -O3 -Wall -Wextra -Werror -o "$work/example" "$top_srcdir/doc/examples/fashion-mnist.c" "${flags[@]}" -lm
printf '#include <traincomm.h>\nint main(void) { return traincomm_version()[0] == 0; }\n' >"$work/plain.cc"
if command -v c++ >/dev/null; then
    ok "so is a C++ program" c++ -Wall -Werror -o "$work/plain" "$work/plain.cc" "${flags[@]}"
else
    skip "so is a C++ program" "no C++ compiler"
fi

run() { # RANKS ARGUMENT...
    local ranks=$1
    shift
    output=$(mpirun --oversubscribe --bind-to none -np "$ranks" "$work/example" "$@" 2>&1)
}
# The numbers of the last epoch.
loss() { sed -n 's/^epoch .*loss \([0-9.]*\),.*/\1/p' <<<"$output" | tail -n 1; }
accuracy() { sed -n 's/^epoch .*accuracy \([0-9.]*\) .*/\1/p' <<<"$output" | tail -n 1; }

run 1 $fashion 1
is $? 0 "it trains on one rank"
one_loss=$(loss) one_accuracy=$(accuracy)
run 2 $fashion 1
is $? 0 "and on two"
like "$output" '^all-reduce: 3[0-9.]+ MB in 937 steps' "whose gradients are summed in every step"
awk -v a="$(accuracy)" 'BEGIN { exit !(a >= 80) }'
report $? "the accuracy is 80 % or more" "$output"
awk -v a="$one_loss" -v b="$(loss)" -v x="$one_accuracy" -v y="$(accuracy)" \
    'BEGIN { d = a / b - 1; e = x - y; exit !(d * d < 1e-3 ^ 2 && e * e < 0.5 ^ 2) }'
report $? "one rank and two agree within rounding" "1 rank: loss $one_loss, $one_accuracy %" "$output"

TRAINCOMM_HOST_RANKS=1 run 3 $fashion 1 6400
is $? 0 "three ranks that count as machines"
three=$(loss)
TRAINCOMM_HOST_RANKS=1 run 2 $fashion 1 6400
is $? 0 "and two"
awk -v a="$three" -v b="$(loss)" 'BEGIN { d = a / b - 1; exit !(d * d < 1e-4 ^ 2) }'
report $? "agree" "3 ranks: $three" "2 ranks: $(loss)"

run 2 "$work/none"
is $? 1 "data that are not there end all ranks"
like "$output" "^rank 0 on .*: $work/none: train-images.* cannot be read" "with the words of one"

done_testing
