#!/usr/bin/env bash
# What libtraincomm sends between machines, counted by Open MPI's pml_monitoring; that other MPI libraries and layouts give the same
# bits; and that a rank that is killed ends the others. Machines are parts of this one that count as such.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_pml=ob1,monitoring OMPI_MCA_osc=^monitoring,ucx
private_folder
many=$top_builddir/tests/mpi/gradients_many
gradients=$((300007 * 4)) # its bytes

run() { # RANKS OF-A-MACHINE ARGUMENT...
    local ranks=$1 each=$2
    shift 2
    TRAINCOMM_HOST_RANKS=$each mpirun --oversubscribe --bind-to none "${options[@]}" -np "$ranks" "$many" "$@" 2>&1
}

between() { [ "$1" -ge "$2" ] && [ "$1" -le "$3" ]; }

# ---- bytes and messages
options=(--mca pml_monitoring_enable 1 --mca pml_monitoring_enable_output 3 --mca pml_monitoring_filename "$work/sent")
sent() { # RANKS OF-A-MACHINE BYTES FILE: sums so many bytes; to FILE "RANK BYTES MESSAGES" of those that were sent
    rm -f "$work"/sent.*
    run "$1" "$2" "$3" >"$work/out"
    awk '$1 == "E" { bytes[$2] += $4; messages[$2] += $6 } END { for (i in messages) print i, bytes[i], messages[i] }' "$work"/sent.*.prof >"$4"
}
if [ "${TRAIND_TEST_LONG-}" = yes ]; then shapes="2x1 2x2 3x1 3x2 4x1 4x2 7x1 7x2 8x1 8x2 16x1 16x2"; else shapes="2x1 3x2 4x2 7x1 16x1"; fi
for shape in $shapes; do
    machines=${shape%x*} each=${shape#*x}
    # Less what MPI sends for itself to begin and end.
    sent $((machines * each)) $each 0 "$work/none"
    sent $((machines * each)) $each $gradients "$work/once"
    read -r bytes messages < <(awk -v each=$each 'NR == FNR { b[$1] = $2; m[$1] = $3; next }
        { machine[int($1 / each)] += $2 - b[$1]; if ($3 - m[$1] > most) most = $3 - m[$1] }
        END { for (i in machine) if (machine[i] > bytes) bytes = machine[i]; print bytes + 0, most + 0 }' "$work/none" "$work/once")
    least=$((2 * (machines - 1) * gradients / machines))
    ok "$machines machines of $each: no machine sends more than 2 (n - 1) / n times the gradients ($bytes bytes, $least are needed)" \
        between "$bytes" $((least * 99 / 100)) $((least * 105 / 100))
    ok "... and no rank more than two messages to each other machine ($messages)" between "$messages" 1 $((2 * (machines - 1)))
done

# ---- bits
options=()
declare -A hash
for layout in 4x1 4x2 4x4 6x1 6x2 7x1 12x2 21x1; do
    ranks=${layout%x*} each=${layout#*x}
    run "$ranks" "$each" hash >"$work/$layout"
    hash[$layout]=$(awk '{ print $1, $2 }' "$work/$layout")
    like "$(tr '\n' ' ' <"$work/$layout")" '^fp32 [0-9a-f]{16} [0-9]+ bf16 [0-9a-f]{16} [0-9]+ $' "$ranks ranks, $each a machine: summed"
    is "$(run "$ranks" "$each" hash | awk '{ print $1, $2 }')" "${hash[$layout]}" "... and again the same"
    awk -v n=$((ranks / each)) '$3 > 2 * log(n) / log(2) + 4 { bad = 1 } END { exit bad }' "$work/$layout"
    report $? "... within 2 log2 n + 4 rounds of messages" "$(cat "$work/$layout")"
done
fp32() { head -n 1 <<<"${hash[$1]}"; }
is "$(fp32 4x1) $(fp32 4x2)" "$(fp32 4x4) $(fp32 4x4)" "four ranks add in pairs wherever they are"
is "$(fp32 6x1)" "$(fp32 6x2)" "and so do six"

# The library and the test, compiled for another MPI.
compiled() {
    local include
    include=$(dirname "$(find "$top_builddir" -maxdepth 1 -name config.h)")
    mpicc.mpich -w -std=gnu11 -O2 -fopenmp -D_GNU_SOURCE -include "$include/config.h" -I"$top_srcdir" -I"$include" -o "$work/mpich" \
        "$top_srcdir"/worker/comm/*.c "$top_srcdir/tests/mpi/gradients_many.c" -lm -lpthread
}
if command -v mpicc.mpich mpirun.mpich >"$work/out"; then
    ok "compiled for MPICH" compiled
    for layout in 4x1 4x2 4x4 6x2 7x1 12x2; do
        is "$(TRAINCOMM_HOST_RANKS=${layout#*x} mpirun.mpich -n "${layout%x*}" "$work/mpich" hash 2>&1 | awk '{ print $1, $2 }')" "${hash[$layout]}" \
            "MPICH gives the same bits for $layout"
    done
else
    skip "MPICH gives the same bits" "needs mpich and libmpich-dev"
fi

# ---- a rank that is gone, at any time
for calls in 0 7 15 29; do
    run 4 1 die $calls >"$work/out"
    ok "killed after $calls calls: the run ends" test $? -ne 0
    like "$(cat "$work/out")" '[Ss]ignal 9|SIGKILL|signal: 9|Killed' "... and mpirun names the signal"
done
done_testing
