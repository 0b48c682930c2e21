"""The Python side of tests/golden/optim.sh: repeats what optim_driver did and prints TAP lines.

optim.py lars FIRST_TEST STEPS NESTEROV CORRECT WEIGHTS GRADIENTS OUT
optim.py mixup FIRST_TEST LAMBDA SMOOTHING LOSS WEIGHTS BATCH OUT
"""
import sys

import numpy
import torch

from compare import load, model_of, tap


def lars_step(w, m, g, lr, nesterov, correct, momentum=0.9, decay=1e-3, eta=0.01):
    """One tensor, the form of TensorFlow; vectors (gamma, beta, bias) without trust and decay. Corrected: torch's, where m has no rate."""
    if w.ndim == 1:
        step = g
    else:
        norm_w, norm_g = numpy.linalg.norm(w), numpy.linalg.norm(g)
        trust = eta * norm_w / (norm_g + decay * norm_w) if norm_w > 0 and norm_g > 0 else 1
        step = trust * (g + decay * w)
    inside, outside = (1, lr) if correct else (lr, 1)
    m = momentum * m + inside * step
    return w - outside * (momentum * m + inside * step if nesterov else m), m


def lars(number, steps, nesterov, correct, weights, gradients, out):
    before, g, after = load(weights), load(gradients), load(out)
    worst, moved = 0, 1
    for name in g:
        w, gradient = before[name].double().numpy(), g[name].double().numpy()
        start, m = w, numpy.zeros_like(w)
        for i in range(int(steps)):
            w, m = lars_step(w, m, gradient * (i + 1), 0.5 * (i + 1), nesterov == "1", correct == "1")
        ours = after[name].double().numpy()
        way = numpy.linalg.norm(w - start)
        worst = max(worst, numpy.linalg.norm(ours - w) / max(way, 1e-12))
        moved = min(moved, way)
    tap(number, len(g) == 161 and moved > 0 and worst < 1e-4,
        f"LARS, nesterov {nesterov}, momentum correction {correct}: {steps} steps of all {len(g)} tensors as numpy makes them (largest difference {worst:.1e} of the way)")


def mixup(number, weight, smoothing, loss, weights, batch, out):
    # In double: one float's rounding that turns a ReLU moves a gradient by a thousandth, in torch as here.
    model, b, weight = model_of(weights).train().double(), load(batch), float(weight)
    criterion = torch.nn.CrossEntropyLoss(label_smoothing=float(smoothing))
    x, y = b["images"].double(), b["labels"]
    logits = model(weight * x + (1 - weight) * x.flip(0))
    theirs = weight * criterion(logits, y) + (1 - weight) * criterion(logits, y.flip(0))
    theirs.backward()
    ours = load(out)
    far = max(((ours[n] - p.grad).norm() / p.grad.norm()).item() for n, p in model.named_parameters())
    tap(number, abs(float(loss) - theirs.item()) < 1e-5 * theirs.item(), f"mixup by {weight}, smoothing {smoothing}: the loss is torch's ({loss})")
    tap(number + 1, far < 3e-3, f"and so is every gradient (largest difference {far:.1e})")


{"lars": lars, "mixup": mixup}[sys.argv[1]](int(sys.argv[2]), *sys.argv[3:])
