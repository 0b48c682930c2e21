"""The PyTorch side of tests/golden/bf16.sh: bf16.py DRIVER FOLDER

One step of a network with precision bf16, and PyTorch's bf16 autocast of the same weights and batch: how far each one's gradients
are from PyTorch's in double. Prints TAP.
"""
import copy
import sys

import torch

import compare

# Rounding that is as good is as far away, but not to the last percent.
MAY_BE = 1.2
CASES = [
    ("resnet18", "imagenet", 64, 16), ("resnet50", "imagenet", 64, 8), ("resnet50", "small", 32, 8),
    ("resnext50_32x4d", "imagenet", 64, 8),
]


def autocast_step(model, batches):
    model.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        scores = model.train()(batches["images"][0])
    loss = torch.nn.functional.cross_entropy(scores.float(), batches["labels"][0])
    loss.backward()
    return loss.item(), {n: p.grad.detach() for n, p in model.named_parameters()}


def check(driver, prefix, case, model, batches, loss):
    model.load_state_dict(driver.load(prefix + "-weights"), strict=True)
    exact_loss, exact = compare.step(copy.deepcopy(model).double(), batches)
    their_loss, theirs = autocast_step(copy.deepcopy(model), batches)
    off, may = abs(loss - exact_loss), abs(their_loss - exact_loss)
    far, theirs = (compare.distances(g, exact) for g in (driver.load(prefix + "-gradients"), theirs))
    # a random network amplifies rounding until both losses are as good as drawn
    driver.tap(off <= (max(MAY_BE * may, 0.01 * exact_loss) if prefix == "calm" else 0.2 * exact_loss),
               f"{case}: loss {off / exact_loss:.1e} from double, PyTorch's bf16 {may / exact_loss:.1e}")
    driver.tap(far[0] <= MAY_BE * theirs[0],
               f"{case}: all gradients {far[0]:.2e} from double, PyTorch's bf16 {theirs[0]:.2e}: {far[0] / theirs[0]:.2f}")
    driver.tap(far[1] <= MAY_BE * theirs[1],
               f"{case}: the worst tensor's {far[1]:.2e} from double, PyTorch's bf16 {theirs[1]:.2e}: {far[1] / theirs[1]:.2f}")


def main(program, folder):
    torch.manual_seed(0)
    compare.leave_uninitialised()
    print(f"1..{6 * len(CASES)}", flush=True)
    driver = compare.Driver(program, folder)
    for name, stem, size, batch in CASES:
        losses = driver.run("step", name, stem, size, batch, "bf16")
        batches = driver.load("batches")
        model = compare.network(name, stem, 10)
        for prefix, loss in zip(("calm", "plain"), losses):
            check(driver, prefix, f"{name}, stem {stem}, {prefix}", model, batches, loss)


if __name__ == "__main__":
    main(*sys.argv[1:])
