#!/bin/bash
# Training steps of the engine against PyTorch's, interleaved on the same two cores, and their ratio.
# Ours: two processes of one thread, each bound to a core, with half the batch each. PyTorch: one process of two threads with the whole batch,
# contiguous and channels_last (the better one counts). Full steps: forward, loss, backward, SGD.
#   engine-vs-torch.sh [IMAGE_SIZE [BATCH_OF_BOTH_CORES [ROUNDS]]]     default 32 256 3
set -eu
size=${1:-32} batch=${2:-256} rounds=${3:-3}
bench=${top_builddir:-.}/tests/bench/engine_step
python=${PYTHON3:-/usr/bin/python3}
steps=3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

ours() {
    taskset -c 0 "$bench" --image-size "$size" --batch $((batch / 2)) --steps $steps --json >"$work/a" &
    local other=$!
    taskset -c 1 "$bench" --image-size "$size" --batch $((batch / 2)) --steps $steps --json >"$work/b"
    wait $other
    cat "$work/a" "$work/b" | sed 's/.*"images_per_sec": \([0-9.]*\).*/\1/' | awk '{ sum += $1 } END { print sum }'
}

torch() {
    taskset -c 0,1 "$python" - "$size" "$batch" "$steps" "$1" <<'PYTHON'
import sys, time, torch, torchvision
size, batch, steps, layout = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
torch.set_num_threads(2)
torch.set_flush_denormal(True)
memory = torch.channels_last if layout == "channels_last" else torch.contiguous_format
model = torchvision.models.resnet50().train().to(memory_format=memory)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-5)
x = torch.randn(batch, 3, size, size).to(memory_format=memory)
y = torch.arange(batch) % 1000
best = 1e9
for i in range(steps + 1):
    start = time.monotonic()
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
    if i:
        best = min(best, time.monotonic() - start)
print(batch / best)
PYTHON
}

echo "ResNet-50, fp32, ${size}x${size}, $batch images a step on two cores: images/s, best of $steps steps"
printf '%8s %10s %18s %20s %8s\n' round ours torch torch-channels-last ratio
for ((round = 1; round <= rounds; round++)); do
    a=$(ours)
    b=$(torch contiguous)
    c=$(torch channels_last)
    awk -v n=$round -v a="$a" -v b="$b" -v c="$c" \
        'BEGIN { printf "%8d %10.2f %18.2f %20.2f %8.2f\n", n, a, b, c, a / (b > c ? b : c) }'
done
