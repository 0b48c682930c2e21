#!/usr/bin/env bash
# The dashboard in Chromium beside LIVE (200) jobs that say a step a second, one of them behind 100,000 steps: time to the first
# paint, and the longest task of the page while it streams, is zoomed, sorted and scrolled. A launcher writes the events in
# place of workers and sleeps; daemon, store, stream and page are the real ones. Prints what tests/browser/speed.mjs measures.
# shellcheck source=tests/browser/lib/daemon.sh.inc
. "$(dirname "$0")/../browser/lib/daemon.sh.inc"
live=${LIVE:-200} steps=${STEPS:-100000}

cat >"$work/launcher" <<'EOS'
#!/usr/bin/env bash
# In place of mpirun: a step a second, behind so many at once as the job's name says.
events=$TRAIND_ATTEMPT_DIR/events.jsonl
exec 9<> <(:)
say() { printf '{"seq": %d, "t": %s, "type": %s}\n' "$1" "$EPOCHREALTIME" "$2" >>"$events"; }
trap 'exit 143' TERM
say 1 '"run_start"'
step=0
if [[ $(<"$TRAIND_ATTEMPT_DIR/../job.json") =~ \"long\ ([0-9]+)\" ]]; then
    step=${BASH_REMATCH[1]}
    awk -v n="$step" -v now="$EPOCHSECONDS" 'BEGIN { srand(1); for (i = 1; i <= n; i++) printf "{\"seq\": %d, \"t\": %.3f, \"type\": \"step\", \"step\": %d, \"epoch\": %.4f, \"loss\": %.4f, \"lr\": %.6f, \"images_per_sec\": %.2f, \"step_ms\": 900, \"data_ms\": 1, \"forward_ms\": 290, \"backward_ms\": 500, \"comm_ms\": 60, \"optim_ms\": 30, \"grad_norm\": %.4f, \"slowest_rank\": 1, \"rank_busy_ms\": [%.2f, %.2f, %.2f, %.2f]}\n",
        i + 1, now - 0.9 * (n - i), i, i / 1000, 6 * i ^ -0.15 + rand() / 4, 0.1 * (1 - i / (2 * n)), 70 + 5 * rand(), 2 + rand(), 800 + 90 * rand(), 800 + 90 * rand(), 800 + 90 * rand(), 820 + 90 * rand() }' >>"$events"
fi
while :; do
    step=$((step + 1))
    say $((step + 1)) "$(printf '"step", "step": %d, "epoch": %d.%03d, "loss": 2.%04d, "lr": 0.1, "images_per_sec": 7%d.5, "step_ms": 900, "data_ms": 1, "forward_ms": 290, "backward_ms": 500, "comm_ms": 60, "optim_ms": 30, "grad_norm": 2.5, "slowest_rank": 1, "rank_busy_ms": [830.1, 841.5, 838.2, 852.9]' \
        "$step" $((step / 1000)) $((step % 1000)) $((RANDOM % 10000)) $((RANDOM % 10)))"
    read -rt 1 -u 9
done
EOS
chmod +x "$work/launcher"
settings=("mpirun = $work/launcher" "slots = $((live + 1))" "requests_per_second = 0" "stall_seconds = 0")

end_launchers() {
    local pid
    for pid in $(pgrep -f "^(bash|/usr/bin/env bash|/bin/bash|/usr/bin/bash) $work/launcher"); do kill -KILL "$pid" 2>/dev/null; done
}
trap 'end_launchers; clean_up' EXIT
story speed.mjs "$live" "$steps"
