"""The PyTorch side of tests/golden/torch.sh: compare.py DRIVER FOLDER

Runs engine_driver (see its head) for each case, repeats what it did, and prints TAP: all in one process.
optim.py takes what reads weights from here.
"""
import copy
import json
import math
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
        data = bytearray(os.path.getsize(path) - f.tell())
        f.readinto(data)
    header.pop("__metadata__", None)
    tensors = {}
    for name, t in header.items():
        first, end = t["data_offsets"]
        kind = {"F32": "<f4", "I64": "<i8"}[t["dtype"]]
        values = numpy.frombuffer(data, kind, (end - first) // int(kind[2]), first).reshape(t["shape"])
        tensors[name] = torch.from_numpy(values if kind == "<f4" else values.copy())
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


class Driver:
    """engine_driver and the folder it writes to. A run of it that fails stops the test: the plan is then not fulfilled."""

    def __init__(self, program, folder):
        self.program, self.folder, self.number = program, folder, 0

    def run(self, *words):
        out = subprocess.run([self.program, *map(str, words), self.folder], stdout=subprocess.PIPE, text=True, check=True)
        return [float(line) for line in out.stdout.split()]

    def load(self, name):
        return load(os.path.join(self.folder, name))

    def tap(self, good, what):
        self.number += 1
        tap(self.number, good, what)


def difference(ours, theirs):
    return ((ours - theirs).abs().max() / theirs.abs().max()).item()


def logits(driver, size, n):
    driver.run("logits", size, n)
    model = model_of(os.path.join(driver.folder, "weights")).eval()
    with torch.no_grad():
        theirs = model(driver.load("batches")["images"][0])
    worst = difference(driver.load("logits")["logits"], theirs)
    driver.tap(worst < 1e-4, f"{size} x {size}: logits within 1e-4 of torchvision's (largest difference {worst:.1e})")


def worst_of(ours, theirs, chosen, start=None):
    """With start: how far both went from there."""
    names = [n for n in theirs if chosen(n)]
    way = lambda tensors, n: tensors[n].double() - (start[n].double() if start else 0)
    return max((distance(way(ours, n), way(theirs, n)), n) for n in names)


def cross_entropy(smoothing, weights):
    """torch's mean divides by the weights of the labels: the sum over the images does not."""
    if weights is None:
        return torch.nn.CrossEntropyLoss(label_smoothing=smoothing)
    criterion = torch.nn.CrossEntropyLoss(weights, label_smoothing=smoothing, reduction="sum")
    return lambda scores, labels: criterion(scores, labels) / len(labels)


def binary_cross_entropy(smoothing, weights):
    """Summed over the classes, averaged over the images: Composer's binary_cross_entropy_with_logits."""
    def loss(scores, labels):
        classes = scores.shape[1]
        target = torch.nn.functional.one_hot(labels, classes) * (1 - smoothing) + smoothing / classes
        weight = None if weights is None else weights[labels].unsqueeze(1).expand_as(target)
        return torch.nn.functional.binary_cross_entropy_with_logits(scores, target, weight, reduction="sum") / len(labels)
    return loss


PARTS = (("conv1", "bn1"), ("layer1",), ("layer2",), ("layer3",), ("layer4",))
CNN_PARTS = (("conv1",), ("conv2",), ("fc1",))


def freeze(model, letters):
    """As PyTorch's users do: the first parts, by the digit in letters, need no gradients and are in eval mode."""
    for part in (CNN_PARTS if isinstance(model, Cnn) else PARTS)[:int("".join(filter(str.isdigit, letters)) or 0)]:
        for name in part:
            getattr(model, name).requires_grad_(False).eval()


def torch_steps(model, batches, letters):
    """The losses of the steps that engine_driver train does with these options."""
    freeze(model, letters)
    bn = {id(p) for m in model.modules() if isinstance(m, torch.nn.BatchNorm2d) for p in m.parameters()}
    head = {id(p) for p in list(model.children())[-1].parameters()} if "h" in letters else set()
    decay = 0.1 if set(letters) & set("dw") else 5e-5
    trained = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in trained if id(p) not in bn | head], "weight_decay": decay, "factor": 1},
        {"params": [p for p in trained if id(p) in bn], "weight_decay": decay if "d" in letters else 0, "factor": 1},
        {"params": [p for p in trained if id(p) in head], "weight_decay": decay, "factor": 7},
    ]
    optimizer = torch.optim.SGD(groups, lr=0.0005, momentum=0.9, nesterov="n" in letters)
    smoothing = 0.1 if "s" in letters else 0
    weights = (torch.arange(list(model.children())[-1].out_features) + 1) / 2 if "k" in letters else None
    criterion = (binary_cross_entropy if "e" in letters else cross_entropy)(smoothing, weights)
    losses, steps = [], len(batches["images"])
    for i, (x, y) in enumerate(zip(batches["images"], batches["labels"])):
        for g in optimizer.param_groups:
            g["lr"] = g["factor"] * 0.0005 * (i + 1) / steps
        optimizer.zero_grad()
        if "m" in letters:
            share = 0.3 + 0.05 * i
            scores = model(share * x + (1 - share) * x.flip(0))
            loss = share * criterion(scores, y) + (1 - share) * criterion(scores, y.flip(0))
        else:
            loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def train(driver, what, arch, batch, steps, threads, letters):
    ours = driver.run("train", arch, 64, batch, steps, threads, letters)
    start, have = driver.load("weights"), driver.load("trained")
    model = network(arch, "imagenet", start["fc.bias"].shape[0])
    model.load_state_dict(start, strict=True)
    losses = torch_steps(model.train(), driver.load("batches"), letters)
    case = f"{arch}, {what}, {threads} thread(s)"
    worst = max(abs(a - b) / b for a, b in zip(ours, losses))
    driver.tap(len(ours) == steps and worst < 1e-3, f"{case}: loss of {steps} steps within 1e-3 of torch's (largest {worst:.1e})")
    want, stat = model.state_dict(), lambda n: "running" in n
    weight = lambda n: not stat(n) and "num_batches" not in n
    far, which = worst_of(have, want, weight)
    driver.tap(far < 1e-3, f"{case}: every weight within 1e-3 of torch's (largest {far:.1e}, {which})")
    far, which = worst_of(have, want, stat)
    driver.tap(far < 1e-3, f"{case}: running statistics within 1e-3 of torch's (largest {far:.1e}, {which})")
    still = [n for n, p in model.named_parameters() if not p.requires_grad]
    still += [n.replace("weight", s) for n in still for s in ("running_mean", "running_var") if n.endswith("weight") and n.replace("weight", s) in want]
    if still:
        driver.tap(all(torch.equal(have[n], start[n]) for n in still), f"{case}: {len(still)} frozen tensors are unchanged")
    weight = lambda n: not stat(n) and "num_batches" not in n and n not in still
    far, which = worst_of(have, want, weight, start)
    driver.tap(far < WAY, f"{case}: every weight's way within {WAY} of torch's (largest {far:.1e}, {which})")


BASIC = ("resnet18", "resnet34")


def blur(x, stride):
    """Composer's blur_2d: its default filter, depthwise, with zeros around the image."""
    taps = torch.tensor([1.0, 2.0, 1.0], dtype=x.dtype)
    weight = (taps[:, None] * taps / 16).expand(x.shape[1], 1, 3, 3)
    return torch.nn.functional.conv2d(x, weight, stride=stride, padding=1, groups=x.shape[1])


class BlurConv2d(torch.nn.Conv2d):
    def forward(self, x):
        return super().forward(blur(x, 1))


class BlurMaxPool2d(torch.nn.Module):
    def forward(self, x):
        return blur(torch.nn.functional.max_pool2d(x, 3, 1, 1), 2)


def add_blur_pool(model):
    """Composer's apply_blurpool."""
    for module in model.modules():
        if isinstance(module, torch.nn.Conv2d) and max(module.stride) > 1 and module.in_channels >= 16:
            module.__class__ = BlurConv2d
    if isinstance(model.maxpool, torch.nn.MaxPool2d):
        model.maxpool = BlurMaxPool2d()


def widen(model, width):
    """torchvision has no width_per_group for basic blocks: here it is the channels between their two convolutions."""
    for block in model.modules():
        if isinstance(block, torchvision.models.resnet.BasicBlock):
            first, inner = block.conv1, int(block.conv1.out_channels * width)
            block.conv1 = torch.nn.Conv2d(first.in_channels, inner, 3, first.stride, 1, bias=False)
            block.bn1 = torch.nn.BatchNorm2d(inner)
            block.conv2 = torch.nn.Conv2d(inner, block.conv2.out_channels, 3, 1, 1, bias=False)


class Cnn(torch.nn.Module):
    """tensorflow/models, official/mnist/mnist.py, without its dropout."""

    def __init__(self, classes):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 32, 5, padding=2)
        self.conv2 = torch.nn.Conv2d(32, 64, 5, padding=2)
        self.fc1 = torch.nn.Linear(7 * 7 * 64, 1024)
        self.fc2 = torch.nn.Linear(1024, classes)

    def forward(self, x):
        relu, pool = torch.nn.functional.relu, torch.nn.functional.max_pool2d
        x = pool(relu(self.conv1(x)), 2)
        x = pool(relu(self.conv2(x)), 2)
        return self.fc2(relu(self.fc1(torch.flatten(x, 1))))


def network(name, stem, classes):
    """torchvision's, and what it does not have: the paper's strides, a ResNeXt, the small stem, widths, cnn."""
    resnet = torchvision.models.resnet
    name, blurs, _ = name.partition("+blur")
    name, _, width = name.partition(":")
    if name == "cnn":
        return Cnn(classes)
    if name == "resnext101_32x4d":
        model = resnet.ResNet(resnet.Bottleneck, [3, 4, 23, 3], num_classes=classes, groups=32, width_per_group=4)
    else:
        wider = {"width_per_group": int(64 * float(width))} if width and name not in BASIC else {}
        model = getattr(resnet, name.removesuffix("v1"))(num_classes=classes, **wider)
    if width and name in BASIC:
        widen(model, float(width))
    if name.endswith("v1"):
        for block in model.modules():
            if isinstance(block, resnet.Bottleneck):
                block.conv1.stride, block.conv2.stride = block.conv2.stride, block.conv1.stride
    if stem == "small":
        model.conv1 = torch.nn.Conv2d(3, 64, kernel_size=3, stride=1, padding=1, bias=False)
        model.maxpool = torch.nn.Identity()
    if blurs:
        add_blur_pool(model)
    return model


def step(model, batch):
    model.zero_grad()
    dtype = next(model.parameters()).dtype
    loss = torch.nn.functional.cross_entropy(model.train()(batch["images"][0].to(dtype)), batch["labels"][0])
    loss.backward()
    return loss.item(), {n: p.grad.detach() for n, p in model.named_parameters()}


def family(driver, name, stem, size, batch, whole=True):
    losses = driver.run("step" if whole else "calm", name, stem, size, batch)
    weights, batches = driver.load("calm-weights"), driver.load("batches")
    model = network(name, stem, weights["fc.bias"].shape[0])
    case = f"{name}, stem {stem}"
    model.load_state_dict(weights, strict=True)
    calm(driver, case, model, batches, losses[0], stem)
    if not whole:
        return
    model.load_state_dict(driver.load("plain-weights"), strict=True)
    plain(driver, case, model, batches, losses[1])


def cnn(driver, what, batch, steps, threads, letters):
    case = f"cnn, {what}, {threads} thread(s)"
    ours = driver.run("train", "cnn", 28, batch, steps, threads, letters)
    start, have, batches = driver.load("weights"), driver.load("trained"), driver.load("batches")
    model = network("cnn", "", start["fc2.bias"].shape[0])
    model.load_state_dict(start, strict=True)
    losses = torch_steps(model.train(), batches, letters)
    worst = max(abs(a - b) / b for a, b in zip(ours, losses))
    driver.tap(len(ours) == steps and worst < 1e-4, f"{case}: loss of {steps} steps within 1e-4 of torch's (largest {worst:.1e})")
    still = [n for n, p in model.named_parameters() if not p.requires_grad]
    if still:
        driver.tap(all(torch.equal(have[n], start[n]) for n in still), f"{case}: {len(still)} frozen tensors are unchanged")
    far, which = worst_of(have, model.state_dict(), lambda n: n not in still, start)
    driver.tap(far < 1e-2, f"{case}: every weight's way within 1e-2 of torch's (largest {far:.1e}, {which})")


def cnn_step(driver):
    losses = driver.run("step", "cnn", "small", 28, 16)
    weights, batches = driver.load("plain-weights"), driver.load("batches")
    model = network("cnn", "", weights["fc2.bias"].shape[0])
    model.load_state_dict(weights, strict=True)
    with torch.no_grad():
        worst = difference(driver.load("plain-logits")["logits"], model.eval()(batches["images"][0]))
    driver.tap(worst < 1e-5, f"cnn: logits within 1e-5 of torch's (largest difference {worst:.1e})")
    plain(driver, "cnn", model, batches, losses[1])


def calm(driver, case, model, batches, loss, stem):
    with torch.no_grad():
        theirs = model.eval()(batches["images"][0])
    worst, gradients = difference(driver.load("calm-logits")["logits"], theirs), driver.load("calm-gradients")
    count = sum(p.numel() for p in model.parameters())
    same = count == sum(gradients[n].numel() for n, p in model.named_parameters())
    driver.tap(same and worst < 1e-4, f"{case}: {count} parameters, logits within 1e-4 (largest difference {worst:.1e})")
    want, wanted = step(model, batches)
    off = abs(loss - want) / want
    driver.tap(off < 1e-3, f"{case}: loss within 1e-3 of torch's ({off:.1e})")
    # Two pixels of a pooling window may round to each other's order: the gradient then goes to the other one.
    if stem == "imagenet" and distance(gradients["conv1.weight"], wanted["conv1.weight"]) < 1e-2:
        del wanted["conv1.weight"]
    # A bias that only moves what the next batch norm subtracts again has no gradient but rounding: hence the floor.
    floor = 1e-3 * max(g.norm().item() for g in wanted.values())
    far, which = max(((gradients[n] - g).norm().item() / max(g.norm().item(), floor), n) for n, g in wanted.items())
    driver.tap(far < 1e-3, f"{case}: every gradient within 1e-3 of torch's (largest {far:.1e}, {which})")


def plain(driver, case, model, batches, loss):
    """A random network as it is: rounding puts an activation near zero on this or that side of a ReLU, and one that changes
    sides can move a gradient by a hundredth. So the engine may be twice as far from torch in double as torch in float gets when
    all its weights are moved by NOISE, relative: ten times what Winograd rounds, so that those that can change sides do."""
    ours = driver.load("plain-gradients")
    exact_loss, exact = step(copy.deepcopy(model).double(), batches)
    shaken_loss, moved = step(shaken(model), batches)
    far, may = distances(ours, exact), [2 * d for d in distances(moved, exact)]
    off, may_be_off = (abs(one - exact_loss) / exact_loss for one in (loss, shaken_loss))
    may_be_off = max(1e-4, 2 * may_be_off)
    driver.tap(off < may_be_off, f"{case}, plain: loss is off torch's in double by {off:.1e}; kinks allow {may_be_off:.1e}")
    driver.tap(far[0] < may[0] and far[1] < may[1],
               f"{case}, plain: gradients are off by {far[0]:.1e}, {far[1]:.1e} in the worst tensor; kinks allow {may[0]:.1e}, {may[1]:.1e}")


def shaken(model):
    other = copy.deepcopy(model)
    with torch.no_grad():
        for p in other.parameters():
            p *= 1 + NOISE * torch.randn_like(p)
    return other


def distances(have, exact):
    """Of all gradients together, and the largest of one tensor (of those that are more than rounding)."""
    off = {n: (have[n].double() - g).norm().item() for n, g in exact.items()}
    size = {n: g.norm().item() for n, g in exact.items()}
    floor = 1e-2 * max(size.values())
    return math.hypot(*off.values()) / math.hypot(*size.values()), max(off[n] / max(size[n], floor) for n in off)


WAY = 0.1
NOISE = 5e-6
LOGITS = [(32, 8), (64, 4), (224, 2)]
# What, network, batch, steps, threads, engine_driver's letters. The rate moves in all: the first form of momentum correction. The
# first step has no momentum yet, the second takes the first's, the third is as all others.
TRAININGS = [
    ("plain SGD", "resnet50", 16, 3, 1, "-"),
    ("label smoothing", "resnet18:0.125", 16, 3, 2, "s"),
    ("Nesterov, decay of batch norm", "resnet18:0.125", 16, 3, 1, "nd"),
    ("the same decay, not of batch norm", "resnet18:0.125", 16, 3, 2, "w"),
    ("label smoothing and mixup", "resnet18:0.125", 16, 3, 1, "sm"),
    ("binary cross entropy", "resnet18:0.125", 16, 3, 2, "e"),
    ("binary cross entropy, label smoothing and mixup", "resnet18:0.125", 16, 3, 1, "esm"),
    ("class weights, label smoothing and mixup", "resnet18:0.125", 16, 3, 2, "ksm"),
    ("class weights, binary cross entropy, label smoothing and mixup", "resnet18:0.125", 16, 3, 1, "kesm"),
    ("without Winograd: Nesterov, label smoothing and mixup", "resnet18:0.125", 16, 3, 1, "xnsm"),
    ("convolutions by OpenBLAS", "resnet18", 16, 3, 1, "b"),
    ("binary cross entropy and label smoothing", "resnet18:0.125+blur", 16, 3, 2, "es"),
    ("frozen conv1", "resnet18:0.125", 16, 3, 1, "n1"),
    ("frozen conv1 and layer1, the classifier seven times as fast", "resnet50:0.25", 16, 3, 2, "h2"),
    ("frozen up to layer3, decay, convolutions by OpenBLAS", "resnet18:0.125+blur", 16, 3, 1, "dhb4"),
    ("frozen backbone, mixup", "resnet50:0.25", 16, 3, 2, "mh5"),
]
# Network, stem, image size, batch: the last stage has 16 values a channel. What others show at full width, or its layers, is narrow.
FAMILY = [
    ("resnet18", "imagenet", 64, 4), ("resnet34:0.25", "imagenet", 64, 4), ("resnet50v1:0.25", "imagenet", 64, 4), ("resnet18", "small", 32, 4),
    ("resnet50:0.25", "small", 32, 4), ("resnext50_32x4d", "imagenet", 64, 4), ("resnet50:0.375", "small", 32, 4),
    ("resnet18:1.5", "small", 32, 4), ("resnet50:0.25+blur", "imagenet", 88, 4), ("resnet18:0.5+blur", "imagenet", 64, 4),
    ("resnet50v1:0.25+blur", "small", 40, 4),
]
# Made of the same layers, but more or wider ones: the paper's first, in torch's double and the others by make check-long.
LARGE = [
    ("resnext101_32x4d", "imagenet", 64, 4), ("resnet34", "imagenet", 64, 4), ("resnet50v1", "imagenet", 64, 4), ("resnet50", "small", 32, 4),
    ("resnet101", "imagenet", 64, 4), ("resnet152", "imagenet", 64, 4), ("resnext101_32x8d", "imagenet", 64, 4),
    ("resnet50:1.5", "imagenet", 64, 4), ("resnext50_32x4d+blur", "imagenet", 64, 4), ("resnet50+blur", "imagenet", 88, 4),
]
# What, batch, steps, threads, engine_driver's letters.
CNN = [
    ("plain SGD", 16, 5, 1, "-"),
    ("Nesterov, label smoothing and mixup", 16, 5, 2, "nsm"),
    ("weight decay", 7, 5, 2, "w"),
    ("binary cross entropy and label smoothing", 16, 5, 2, "es"),
    ("convolutions by OpenBLAS", 16, 5, 1, "b"),
    ("frozen conv1", 16, 5, 2, "1"),
    ("frozen conv1 and conv2, the classifier seven times as fast", 16, 5, 1, "h2"),
    ("frozen but for the classifier", 16, 5, 2, "3"),
]


def leave_uninitialised():
    """Every weight of every network is loaded: what torch fills it with first takes longer than a step of a large one."""
    for kind in (torch.nn.Linear, torch.nn.modules.conv._ConvNd):
        kind.reset_parameters = lambda self: None
    torch.nn.init.kaiming_normal_ = lambda tensor, **_: tensor


def main(program, folder):
    torch.manual_seed(0)
    leave_uninitialised()
    long = os.environ.get("TRAIND_TEST_LONG") == "yes"
    frozen = sum(any(map(str.isdigit, case[-1])) for case in TRAININGS + CNN)
    checks = len(LOGITS) + 4 * len(TRAININGS) + 2 * len(CNN) + frozen + 3 + 5 * len(FAMILY) + (5 * len(LARGE) if long else 3)
    print(f"1..{checks}", flush=True)
    driver = Driver(program, folder)
    for case in LOGITS:
        logits(driver, *case)
    for case in TRAININGS:
        train(driver, *case)
    for case in CNN:
        cnn(driver, *case)
    cnn_step(driver)
    for case in FAMILY:
        family(driver, *case)
    for case in LARGE if long else LARGE[:1]:
        family(driver, *case, whole=long)


if __name__ == "__main__":
    main(*sys.argv[1:])
