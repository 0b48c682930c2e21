"""The Python side of tests/golden/optim.sh: repeats what optim_driver did and prints TAP lines.

optim.py DRIVER FOLDER: all in one process, as importing torch takes its time.
"""
import json
import os
import subprocess
import sys

import numpy
import torch

from compare import load, model_of, tap


def lars_step(w, m, g, lr, keys):
    """One tensor, the form of TensorFlow; vectors (gamma, beta, bias) without trust and decay. Corrected: torch's, where m has no rate."""
    if w.ndim == 1:
        step = g
    else:
        norm_w, norm_g, decay = numpy.linalg.norm(w), numpy.linalg.norm(g), keys["weight_decay"]
        trust = keys["lars_eta"] * norm_w / (norm_g + decay * norm_w) if norm_w > 0 and norm_g > 0 else 1
        step = trust * (g + decay * w)
    inside, outside = (1, lr) if keys["momentum_correction"] else (lr, 1)
    momentum = keys["momentum"]
    m = momentum * m + inside * step
    return w - outside * (momentum * m + inside * step if keys["nesterov"] else m), m


def lars(before, g, base, steps, keys):
    end = {}
    norm = numpy.sqrt(sum((gradient.double() ** 2).sum().item() for gradient in g.values()))
    for name in g:
        w, gradient = before[name].double().numpy(), g[name].double().numpy()
        m = numpy.zeros_like(w)
        for i in range(steps):
            clip = min(1, keys.get("clip_norm", numpy.inf) / ((i + 1) * norm))
            w, m = lars_step(w, m, clip * gradient * (i + 1), base * (i + 1), keys)
        end[name] = torch.from_numpy(w)
    return end


class DecoupledSGDW(torch.optim.SGD):
    """That of MosaicML's Composer: a weight shrinks by weight_decay times the fraction that the rate has of the group's initial_lr."""

    @torch.no_grad()
    def step(self):
        decays = [group["weight_decay"] for group in self.param_groups]
        for group, decay in zip(self.param_groups, decays):
            group["weight_decay"] = 0
            for p in group["params"]:
                p.mul_(1 - group["lr"] / group["initial_lr"] * decay)
        super().step()
        for group, decay in zip(self.param_groups, decays):
            group["weight_decay"] = decay


# Our key by PyTorch's argument; what a job does not state is PyTorch's default on that side.
ARGUMENTS = {
    "sgd": (torch.optim.SGD, {"momentum": "momentum", "nesterov": "nesterov"}),
    "sgdw": (DecoupledSGDW, {"momentum": "momentum", "nesterov": "nesterov"}),
    "adam": (torch.optim.Adam, {"eps": "eps"}),
    "adamw": (torch.optim.AdamW, {"eps": "eps"}),
    "rmsprop": (torch.optim.RMSprop, {"eps": "eps", "alpha": "alpha", "momentum": "momentum", "centered": "centered"}),
    "adagrad": (torch.optim.Adagrad, {"eps": "eps", "lr_decay": "lr_decay"}),
    "adadelta": (torch.optim.Adadelta, {"eps": "eps", "rho": "rho"}),
}


def by_torch(before, g, base, steps, keys, kind):
    """All tensors, in the given precision; gamma and beta without decay unless decay_bn."""
    make, arguments = ARGUMENTS[keys["name"]]
    options = {theirs: keys[ours] for theirs, ours in arguments.items() if ours in keys}
    if "beta1" in keys or "beta2" in keys:
        options["betas"] = (keys.get("beta1", 0.9), keys.get("beta2", 0.999))
    w = {name: torch.nn.Parameter(before[name].to(kind, copy=True)) for name in g}
    spared = [p for name, p in w.items() if p.dim() == 1 and name != "fc.bias"]
    others = [p for name, p in w.items() if p.dim() > 1 or name == "fc.bias"]
    decay = {"weight_decay": keys["weight_decay"]} if "weight_decay" in keys else {}
    groups = [{"params": others, **decay}, {"params": spared, **(decay if keys.get("decay_bn") else {"weight_decay": 0})}]
    optimizer = make(groups, lr=base, **options)
    for group in optimizer.param_groups:
        group["initial_lr"] = 2 * base
    for i in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = base * (i + 1)
        for name, p in w.items():
            p.grad = g[name].to(kind) * (i + 1)
        if "clip_norm" in keys:
            torch.nn.utils.clip_grad_norm_(w.values(), keys["clip_norm"])
        optimizer.step()
    return {name: p.detach().double() for name, p in w.items()}


def far(a, b, before):
    """The largest difference of all tensors, by the way the weights went."""
    return max(((a[n].double() - b[n]).norm() / (b[n] - before[n].double()).norm().clamp_min(1e-12)).item() for n in b)


# Learning rate, optimizer keys. Where nothing but the name is stated, the defaults are PyTorch's.
LARS = {"name": "lars", "weight_decay": 1e-3, "lars_eta": 0.01, "momentum": 0.9}
CASES = [
    *((0.5, {**LARS, "nesterov": n, "momentum_correction": c}) for n in (False, True) for c in (False, True)),
    (0.5, {**LARS, "nesterov": False, "momentum_correction": False, "clip_norm": 5}),
    (0.05, {"name": "sgd", "momentum": 0.9, "weight_decay": 0.01}),
    (0.05, {"name": "sgd", "momentum": 0.9, "weight_decay": 0.01, "clip_norm": 40}),  # the norms are 26, 52 and 78
    (0.05, {"name": "sgd", "momentum": 0.9, "nesterov": True, "weight_decay": 0.01, "decay_bn": True}),
    (0.05, {"name": "sgdw", "momentum": 0.9, "weight_decay": 0.01}),
    (0.05, {"name": "sgdw", "momentum": 0.9, "nesterov": True, "weight_decay": 0.1, "decay_bn": True}),
    *((0.01, {"name": name}) for name in ("adam", "adamw", "rmsprop", "adagrad", "adadelta")),
    (0.01, {"name": "adam", "beta1": 0.8, "beta2": 0.95, "eps": 1e-3, "weight_decay": 0.1, "decay_bn": True}),
    (0.01, {"name": "adam", "clip_norm": 5}),
    (0.01, {"name": "adamw", "beta1": 0.8, "beta2": 0.95, "weight_decay": 0.1}),
    (0.01, {"name": "rmsprop", "alpha": 0.8, "momentum": 0.9, "weight_decay": 0.1}),
    (0.01, {"name": "rmsprop", "alpha": 0.8, "momentum": 0.9, "centered": True, "eps": 1e-4}),
    (0.01, {"name": "adagrad", "lr_decay": 0.1, "weight_decay": 0.1}),
    (1, {"name": "adadelta", "rho": 0.8, "eps": 1e-4, "weight_decay": 0.1}),
]
STEPS = 3  # the first has no momentum yet, the second takes the first's, the third is as all others


class Updates:
    """optim_driver update: one process, from the same weights for each document of an optimizer."""

    def __init__(self, driver, folder):
        self.job, weights, gradients, self.out = (os.path.join(folder, name) for name in ("job.json", "w", "g", "o"))
        self.driver = subprocess.Popen([driver, "update", str(STEPS), weights, gradients, self.out],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.wait()
        self.before, self.gradients = load(weights), load(gradients)

    def ask(self, keys, base):
        """The weights after all steps."""
        with open(self.job, "w") as f:
            json.dump({"data": {"train": "synthetic"}, "lr": {"base": base}, "optimizer": keys}, f)
        print(self.job, file=self.driver.stdin, flush=True)
        self.wait()
        return load(self.out)

    def wait(self):
        if not self.driver.stdout.readline():
            sys.exit(f"optim_driver update ended with status {self.driver.wait()}")

    def end(self):
        self.driver.stdin.close()
        self.driver.wait()


def update(number, base, keys, updates):
    before, g, ours = updates.before, updates.gradients, updates.ask(keys, base)
    words = " ".join(f"{k} {v}" for k, v in keys.items())
    if keys["name"] == "lars":
        exact, bound, theirs = lars(before, g, base, STEPS, keys), 1e-4, "numpy in double"
    else:
        exact = by_torch(before, g, base, STEPS, keys, torch.float64)
        single = far(by_torch(before, g, base, STEPS, keys, torch.float32), exact, before)
        # What PyTorch itself loses in single precision, and more for other roundings: an engine without FMA rounds a product before its sum.
        bound, theirs = 4 * single + 1e-7, f"PyTorch in double, PyTorch in single {single:.1e}"
    moved = min((exact[n] - before[n].double()).norm().item() for n in exact)
    distance = far(ours, exact, before)
    tap(number, len(g) == 62 and moved > 0 and distance < bound < 1e-3,
        f"{words}: {STEPS} steps of all {len(g)} tensors are {distance:.1e} of the way from those of {theirs}")


AVERAGED_STEPS = 7


def average(number, worker, folder, keys, decay_of):
    """The average of a run against the checkpoints of its steps, by compute_ema of MosaicML's Composer. decay_of(step): from 1; None: no update."""
    job, run = os.path.join(folder, "job.json"), os.path.join(folder, f"run{number}")
    with open(job, "w") as f:
        json.dump({"data": {"train": "synthetic", "train_images": 64}, "cluster": {"workers_per_node": 1, "threads_per_worker": 1},
                   "model": {"arch": "resnet18", "width": 0.0625, "image_size": 32, "classes": 10}, "lr": {"base": 2, "warmup_epochs": 0},
                   "batch_per_worker": 4, "steps": AVERAGED_STEPS, "checkpoint": {"every_steps": 1, "keep": AVERAGED_STEPS}, "ema": keys}, f)
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    subprocess.run([worker, "--job", job, "--run-dir", run], env={**os.environ, **root}, stdout=subprocess.DEVNULL, check=True)

    def tensors(step, name):
        loaded = load(os.path.join(run, "checkpoints", f"step-{step:08}", name + ".safetensors"))
        return {n: t.double() for n, t in loaded.items() if t.is_floating_point()}

    first = mean = tensors(1, "model")
    for step in range(2, AVERAGED_STEPS + 1):
        smoothing = decay_of(step)
        if smoothing is not None:
            mean = {n: mean[n] * smoothing + (1 - smoothing) * w for n, w in tensors(step, "model").items()}
    ours = tensors(AVERAGED_STEPS, "ema")
    distance = (sum((ours[n] - w).norm() ** 2 for n, w in mean.items()) / sum((first[n] - w).norm() ** 2 for n, w in mean.items())).sqrt().item()
    tap(number, distance < 1e-5, f"the average by {json.dumps(keys)} is {distance:.1e} of the way from that of the steps' weights")


def mixup(number, weight, smoothing, run, folder):
    # In double: one float's rounding that turns a ReLU moves a gradient by a thousandth, in torch as here.
    weights, batch, out = (os.path.join(folder, name) for name in ("w", "b", "o"))
    loss = run("mixup", 8, weight, smoothing, weights, batch, out)
    model, b = model_of(weights).train().double(), load(batch)
    criterion = torch.nn.CrossEntropyLoss(label_smoothing=smoothing)
    x, y = b["images"].double(), b["labels"]
    logits = model(weight * x + (1 - weight) * x.flip(0))
    theirs = weight * criterion(logits, y) + (1 - weight) * criterion(logits, y.flip(0))
    theirs.backward()
    ours = load(out)
    far = max(((ours[n] - p.grad).norm() / p.grad.norm()).item() for n, p in model.named_parameters())
    tap(number, abs(float(loss) - theirs.item()) < 1e-5 * theirs.item(), f"mixup by {weight}, smoothing {smoothing}: the loss is torch's ({loss.strip()})")
    tap(number + 1, far < 3e-3, f"and so is every gradient (largest difference {far:.1e})")


def main(driver, folder):
    def run(*words):
        return subprocess.run([driver, *map(str, words)], stdout=subprocess.PIPE, text=True, check=True).stdout

    print(f"1..{len(CASES) + 6}", flush=True)
    updates = Updates(driver, folder)
    for number, (base, keys) in enumerate(CASES, 1):
        update(number, base, keys, updates)
    updates.end()
    mixup(len(CASES) + 1, 0.3, 0, run, folder)
    mixup(len(CASES) + 3, 0.85, 0.1, run, folder)
    worker = os.path.join(os.path.dirname(driver), "..", "bin", "train-worker")
    average(len(CASES) + 5, worker, folder, {"half_life": 4, "every": 3, "warmup": False}, lambda step: None if step % 3 else 2 ** -(3 / 4))
    average(len(CASES) + 6, worker, folder, {"decay": 0.3, "every": 2}, lambda step: None if step % 2 else min(0.09, (1 + step / 2) / (10 + step / 2)))


main(*sys.argv[1:])
