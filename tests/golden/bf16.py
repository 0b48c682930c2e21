"""The PyTorch side of tests/golden/bf16.sh: bf16.py DRIVER FOLDER

One step of a network with precision bf16, and PyTorch's bf16 autocast of the same weights and batch: how far each one's gradients
are from PyTorch's in double. Prints TAP.

Without AVX-512, PyTorch's bf16 convolutions take ten times as long as its float ones. What they compute is known: numbers rounded to
bf16, multiplied and added in float, and the sums rounded. So most cases compute that by PyTorch's float convolutions, the first one
shows that it is the same, and make check-long takes the bf16 convolutions for all. It also takes the weights as
they are drawn ("plain").
"""
import copy
import os
import sys

import torch

import compare

# Rounding that is as good is as far away, but not to the last percent.
MAY_BE = 1.2
# In float, another order of additions moves a sum across the middle between two bf16 numbers now and then.
SAME = 0.02
CASES = [
    ("resnet18:0.5", "imagenet", 64, 8), ("resnet50", "imagenet", 64, 8), ("resnet50", "small", 32, 4),
    ("resnext50_32x4d", "imagenet", 64, 8), ("resnet50:0.5+blur", "imagenet", 64, 8),
]
WIDE = [("resnet18", "imagenet", 64, 8)]  # by make check-long
# The engine's precision, and how it then computes its 3x3 convolutions of stride 1.
WAYS = {"bf16": "Winograd", "bf16-direct": "direct"}


class RoundedConv(torch.autograd.Function):
    """What autocast makes of a convolution: bf16 numbers in and out, sums in float."""

    @staticmethod
    def forward(context, x, w, stride, padding, groups):
        rounded = x.bfloat16().float(), w.bfloat16().float()
        context.save_for_backward(*rounded)
        context.how, context.kind = (stride, padding, (1, 1), groups), x.dtype
        return torch.nn.functional.conv2d(*rounded, None, *context.how).bfloat16()

    @staticmethod
    def backward(context, dz):
        x, w = context.saved_tensors
        dx = torch.nn.grad.conv2d_input(x.shape, w, dz.float(), *context.how)
        dw = torch.nn.grad.conv2d_weight(x, w.shape, dz.float(), *context.how)
        return dx.bfloat16().to(context.kind), dw.bfloat16().float(), None, None, None


def by_float(model):
    for conv in model.modules():
        if isinstance(conv, torch.nn.Conv2d):
            before = (lambda x: compare.blur(x, 1)) if isinstance(conv, compare.BlurConv2d) else (lambda x: x)
            conv.forward = lambda x, c=conv, before=before: RoundedConv.apply(before(x), c.weight, c.stride, c.padding, c.groups)
    return model


def autocast_step(model, batches):
    model.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        scores = model.train()(batches["images"][0])
    loss = torch.nn.functional.cross_entropy(scores.float(), batches["labels"][0])
    loss.backward()
    return loss.item(), {n: p.grad.detach() for n, p in model.named_parameters()}


def peers(driver, prefix, model, batches, live):
    """Losses and gradients of PyTorch in double, and in bf16."""
    model.load_state_dict(driver.load(prefix + "-weights"), strict=True)
    exact = compare.step(copy.deepcopy(model).double(), batches)
    return *exact, *autocast_step(copy.deepcopy(model) if live else by_float(copy.deepcopy(model)), batches)


def check(driver, prefix, case, loss, of):
    exact_loss, exact, their_loss, theirs = of
    off, may = abs(loss - exact_loss), abs(their_loss - exact_loss)
    far, theirs_far = (compare.distances(g, exact) for g in (driver.load(prefix + "-gradients"), theirs))
    # a random network amplifies rounding until both losses are as good as drawn
    driver.tap(off <= (max(MAY_BE * may, 0.01 * exact_loss) if prefix == "calm" else 0.2 * exact_loss),
               f"{case}: loss {off / exact_loss:.1e} from double, PyTorch's bf16 {may / exact_loss:.1e}")
    driver.tap(far[0] <= MAY_BE * theirs_far[0],
               f"{case}: all gradients {far[0]:.2e} from double, PyTorch's bf16 {theirs_far[0]:.2e}: {far[0] / theirs_far[0]:.2f}")
    driver.tap(far[1] <= MAY_BE * theirs_far[1],
               f"{case}: the worst tensor's {far[1]:.2e} from double, PyTorch's bf16 {theirs_far[1]:.2e}: {far[1] / theirs_far[1]:.2f}")


def same(driver, case, model, batches, live):
    """That RoundedConv does what autocast's own convolutions do."""
    _, exact, their_loss, theirs = live
    loss, gradients = autocast_step(by_float(copy.deepcopy(model)), batches)
    apart, rounding = compare.distances(gradients, theirs)[0], compare.distances(theirs, exact)[0]
    driver.tap(abs(loss - their_loss) <= SAME * their_loss and apart <= 0.25 * rounding,
               f"{case}: by float convolutions of rounded numbers the same as by bf16 ones ({apart:.1e}; rounding {rounding:.1e})")


def main(program, folder):
    torch.manual_seed(0)
    compare.leave_uninitialised()
    long = os.environ.get("TRAIND_TEST_LONG") == "yes"
    cases = CASES + WIDE if long else CASES
    print(f"1..{(6 if long else 3) * len(WAYS) * len(cases) + 1}", flush=True)
    driver = compare.Driver(program, folder)
    for name, stem, size, batch in cases:
        model, of = compare.network(name, stem, 10), {}
        for precision, way in WAYS.items():
            losses = driver.run("step" if long else "calm", name, stem, size, batch, precision)
            batches = driver.load("batches")
            for prefix, loss in zip(("calm", "plain"), losses):
                case, first = f"{name}, stem {stem}, {way}, {prefix}", driver.number == 0
                if prefix not in of:  # the weights are the same each way
                    of[prefix] = peers(driver, prefix, model, batches, live=long or first)
                check(driver, prefix, case, loss, of[prefix])
                if first:
                    same(driver, case, model, batches, of[prefix])


if __name__ == "__main__":
    main(*sys.argv[1:])
