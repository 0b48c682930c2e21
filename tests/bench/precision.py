#!/usr/bin/env python3
"""bf16 against fp32 in whole trainings: precision.py PREFIX DATA RUNS [KEY=VALUE...], as

    tests/bench/precision.py _install _data/fashion-mnist /tmp/precision > doc/img/bf16-loss.svg

trains the quickstart's job with seeds 1 to 3 in either precision by the programs installed in PREFIX, one run after the other, and
evaluates the weights of the fp32 runs in bf16; a run that RUNS has already is not repeated. Keys of the job can be set, as
model.arch=resnet18. The curves of loss go to standard output as SVG, the accuracies to standard error.
"""
import json
import os
import statistics
import subprocess
import sys

SEEDS, PRECISIONS = (1, 2, 3), ("fp32", "bf16")
COLOURS = {"fp32": "#1f77b4", "bf16": "#d62728"}
WIDTH, HEIGHT, LEFT, TOP = 640, 320, 48, 24
SMOOTHED = 12  # steps
WORDS = 'font-family="sans-serif" font-size="12"'


def set_key(job, key, value):
    *groups, name = key.split(".")
    for group in groups:
        job = job.setdefault(group, {})
    job[name] = value


def events(folder):
    with open(f"{folder}/attempt-1/events.jsonl") as f:
        return [json.loads(line) for line in f]


def accuracy(folder):
    return [event["top1"] for event in events(folder) if event["type"] == "eval"][-1]


def run(prefix, folder, job):
    if os.path.exists(f"{folder}/result.json"):
        return
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/job.json", "w") as f:
        json.dump(job, f)
    allow = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    subprocess.run(["mpirun", "-np", "2", "--bind-to", "none", f"{prefix}/bin/train-worker", "--job", f"{folder}/job.json", "--run-dir",
                    folder], check=True, stdout=sys.stderr, env={**os.environ, **allow})


def train_all(prefix, data, runs, settings):
    with open(f"{prefix}/share/traind/examples/resnet50.json") as f:
        example = f.read().replace("@DATA@", os.path.abspath(data))
    for seed in SEEDS:
        for precision in PRECISIONS:
            job = {**json.loads(example), "seed": seed, "precision": precision}
            for key, value in settings:
                set_key(job, key, value)
            run(prefix, f"{runs}/{precision}-{seed}", job)
        folder = os.path.abspath(f"{runs}/fp32-{seed}")
        evaluation = {"mode": "eval", "precision": "bf16", "model": {**job["model"], "init": folder}, "cluster": job["cluster"],
                      "data": {key: job["data"][key] for key in ("eval", "preprocess")}}
        run(prefix, f"{runs}/eval-{seed}", evaluation)


def say(runs):
    means = {}
    for name in (*PRECISIONS, "eval"):
        top1 = [100 * accuracy(f"{runs}/{name}-{seed}") for seed in SEEDS]
        means[name] = statistics.mean(top1)
        words = "weights of fp32, evaluated in bf16" if name == "eval" else name
        print(f"{words}: top-1 {', '.join(f'{x:.2f}' for x in top1)} %, mean {means[name]:.2f} %", file=sys.stderr)
    print(f"bf16 - fp32: {means['bf16'] - means['fp32']:+.2f} points; evaluation: {means['eval'] - means['fp32']:+.2f}", file=sys.stderr)


def smoothed(losses):
    return [statistics.mean(losses[max(0, i - SMOOTHED + 1):i + 1]) for i in range(len(losses))]


def curve(losses, most, colour):
    right, bottom = WIDTH - 12, HEIGHT - 32
    points = (f"{LEFT + (right - LEFT) * i / (len(losses) - 1):.1f},{bottom - (bottom - TOP) * min(y / most, 1):.1f}"
              for i, y in enumerate(losses))
    return f'<polyline fill="none" stroke="{colour}" stroke-width="1.2" stroke-opacity="0.7" points="{" ".join(points)}"/>'


def draw(runs):
    bottom, most = HEIGHT - 32, 1.0
    lines, steps = [], 0
    for precision in PRECISIONS:
        for seed in SEEDS:
            losses = [event["loss"] for event in events(f"{runs}/{precision}-{seed}") if event["type"] == "step"]
            steps = len(losses)
            lines.append(curve(smoothed(losses), most, COLOURS[precision]))
    for loss in (0, 0.25, 0.5, 0.75, 1):
        y = bottom - (bottom - TOP) * loss / most
        lines.append(f'<line x1="{LEFT}" x2="{WIDTH - 12}" y1="{y}" y2="{y}" stroke="#ccc"/><text {WORDS} x="{LEFT - 6}" y="{y + 4}" '
                     f'text-anchor="end">{loss:g}</text>')
    lines += [f'<text {WORDS} x="{LEFT}" y="{HEIGHT - 10}">step 1</text>',
              f'<text {WORDS} x="{WIDTH - 12}" y="{HEIGHT - 10}" text-anchor="end">{steps}</text>',
              f'<text {WORDS} x="{LEFT}" y="14">loss of training, mean of {SMOOTHED} steps, {len(SEEDS)} seeds each:</text>']
    lines += [f'<text {WORDS} x="{380 + 60 * i}" y="14" fill="{COLOURS[name]}">{name}</text>' for i, name in enumerate(PRECISIONS)]
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">'
          '<rect width="100%" height="100%" fill="white"/>', *lines, "</svg>", sep="\n")


def main(prefix, data, runs, *settings):
    train_all(prefix, data, runs, [(key, json.loads(value) if value[0] in "0123456789[{" else value)
                                   for key, value in (word.split("=", 1) for word in settings)])
    say(runs)
    draw(runs)


if len(sys.argv) < 4:
    sys.exit(__doc__)
main(*sys.argv[1:])
