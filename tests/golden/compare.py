"""The PyTorch side of tests/golden/torch.sh: repeats what engine_driver did and prints TAP lines.

compare.py logits FIRST_TEST NAME WEIGHTS BATCHES OUT
compare.py train  FIRST_TEST NAME SMOOTHING LOSSES WEIGHTS BATCHES OUT
compare.py family FIRST_TEST DRIVER FOLDER SIZE BATCH NETWORK:STEM...    runs DRIVER itself; three tests a network
"""
import json
import os
import struct
import subprocess
import sys

import numpy
import torch
import torchvision


def load(path):
    with open(path, "rb") as f:
        (length,) = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(length))
        data = f.read()
    header.pop("__metadata__", None)
    tensors = {}
    for name, t in header.items():
        first, end = t["data_offsets"]
        kind = {"F32": "<f4", "I64": "<i8"}[t["dtype"]]
        tensors[name] = torch.from_numpy(numpy.frombuffer(data[first:end], kind).reshape(t["shape"]).copy())
    return tensors


def model_of(path):
    weights = load(path)
    model = torchvision.models.resnet50(num_classes=weights["fc.bias"].shape[0])
    model.load_state_dict(weights, strict=True)
    return model


def tap(number, good, what):
    print(f"{'ok' if good else 'not ok'} {number} - {what}", flush=True)


def distance(ours, theirs):
    return ((ours - theirs).norm() / theirs.norm().clamp_min(1e-12)).item()


def logits(number, name, weights, batches, out):
    model = model_of(weights).eval()
    with torch.no_grad():
        theirs = model(load(batches)["images"][0])
    ours = load(out)["logits"]
    worst = ((ours - theirs).abs().max() / theirs.abs().max()).item()
    tap(number, worst < 1e-4, f"{name}: logits within 1e-4 of torchvision's (largest difference {worst:.1e})")


def worst_of(ours, theirs, chosen):
    names = [n for n in theirs if chosen(n)]
    return max((distance(ours[n].double(), theirs[n].double()), n) for n in names)


def train(number, name, smoothing, losses_path, weights, batches, out):
    model, b = model_of(weights).train(), load(batches)
    bn = {id(p) for m in model.modules() if isinstance(m, torch.nn.BatchNorm2d) for p in m.parameters()}
    groups = [
        {"params": [p for p in model.parameters() if id(p) not in bn], "weight_decay": 5e-5},
        {"params": [p for p in model.parameters() if id(p) in bn], "weight_decay": 0},
    ]
    optimizer = torch.optim.SGD(groups, lr=0.0005, momentum=0.9)
    criterion = torch.nn.CrossEntropyLoss(label_smoothing=float(smoothing))
    ours = [float(line) for line in open(losses_path)]
    steps, worst = len(ours), 0
    for i in range(steps):
        for g in optimizer.param_groups:
            g["lr"] = 0.0005 * (i + 1) / steps
        optimizer.zero_grad()
        loss = criterion(model(b["images"][i]), b["labels"][i])
        loss.backward()
        optimizer.step()
        worst = max(worst, abs(ours[i] - loss.item()) / loss.item())
    tap(number, steps == 10 and worst < 1e-3, f"{name}: loss of {steps} steps within 1e-3 of torch's (largest {worst:.1e})")
    have, want = load(out), model.state_dict()
    stat = lambda n: "running" in n
    far, which = worst_of(have, want, lambda n: not stat(n) and "num_batches" not in n)
    tap(number + 1, far < 1e-3, f"{name}: every weight within 1e-3 of torch's (largest {far:.1e}, {which})")
    far, which = worst_of(have, want, stat)
    tap(number + 2, far < 1e-3, f"{name}: running statistics within 1e-3 of torch's (largest {far:.1e}, {which})")


def network(name, stem, classes):
    """torchvision's, and what it does not have: the paper's strides, a ResNeXt, the small stem."""
    resnet = torchvision.models.resnet
    if name == "resnext101_32x4d":
        model = resnet.ResNet(resnet.Bottleneck, [3, 4, 23, 3], num_classes=classes, groups=32, width_per_group=4)
    else:
        model = getattr(resnet, name.removesuffix("v1"))(num_classes=classes)
    if name.endswith("v1"):
        for block in model.modules():
            if isinstance(block, resnet.Bottleneck):
                block.conv1.stride, block.conv2.stride = block.conv2.stride, block.conv1.stride
    if stem == "small":
        model.conv1 = torch.nn.Conv2d(3, 64, kernel_size=3, stride=1, padding=1, bias=False)
        model.maxpool = torch.nn.Identity()
    return model


def family(number, driver, folder, size, batch, *cases):
    w, b, l, g = (os.path.join(folder, name) for name in "wblg")
    for case in cases:
        name, stem = case.split(":")
        ours = subprocess.run([driver, "step", name, stem, size, batch, w, b, l, g], stdout=subprocess.PIPE, text=True)
        if ours.returncode:
            for i in range(3):
                tap(number + i, False, f"{name}, stem {stem}: engine_driver failed")
        else:
            compare_step(number, name, stem, float(ours.stdout), load(w), load(b), load(l)["logits"], load(g))
        number += 3


def compare_step(number, name, stem, loss, weights, batch, ours, gradients):
    model = network(name, stem, weights["fc.bias"].shape[0])
    model.load_state_dict(weights, strict=True)
    parameters = dict(model.named_parameters())
    images, labels = batch["images"][0], batch["labels"][0]
    with torch.no_grad():
        theirs = model.eval()(images)
    worst = ((ours - theirs).abs().max() / theirs.abs().max()).item()
    count = sum(p.numel() for p in parameters.values())
    same = count == sum(gradients[n].numel() for n in parameters)
    case = f"{name}, stem {stem}"
    tap(number, same and worst < 1e-4, f"{case}: {count} parameters, logits within 1e-4 (largest difference {worst:.1e})")
    criterion = torch.nn.functional.cross_entropy(model.train()(images), labels)
    criterion.backward()
    off = abs(loss - criterion.item()) / criterion.item()
    tap(number + 1, off < 1e-3, f"{case}: loss within 1e-3 of torch's ({off:.1e})")
    # Two pixels of a pooling window may round to each other's order: the gradient then goes to the other one.
    pooled = stem == "imagenet" and distance(gradients["conv1.weight"], parameters["conv1.weight"].grad) < 1e-2
    wanted = {n: p.grad for n, p in parameters.items() if n != "conv1.weight" or not pooled}
    # A bias that only moves what the next batch norm subtracts again has no gradient but rounding: hence the floor.
    floor = 1e-3 * max(g.norm().item() for g in wanted.values())
    far, which = max(((gradients[n] - g).norm().item() / max(g.norm().item(), floor), n) for n, g in wanted.items())
    tap(number + 2, far < 1e-3, f"{case}: every gradient within 1e-3 of torch's (largest {far:.1e}, {which})")


if __name__ == "__main__":
    torch.manual_seed(0)
    {"logits": logits, "train": train, "family": family}[sys.argv[1]](int(sys.argv[2]), *sys.argv[3:])
