"""The other side of tests/system/data/distort.sh: distort.py DRIVER FOLDER. Prints TAP."""
import os
import subprocess
import sys

import numpy
import torch
from PIL import Image
from torchvision.transforms import InterpolationMode, RandAugment, TrivialAugmentWide
from torchvision.transforms import functional as F
from torchvision.transforms.autoaugment import _apply_op

sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests/golden"))
from compare import tap

NAMES = ("Identity ShearX ShearY TranslateX TranslateY Rotate Brightness Color Contrast Sharpness Posterize Solarize AutoContrast Equalize").split()


def pictures():
    random = numpy.random.default_rng(4)
    for size in (33, 64):
        smooth = Image.fromarray(random.integers(0, 256, (5, 5, 3), dtype=numpy.uint8)).resize((size, size), Image.BICUBIC)
        noise = numpy.clip(numpy.asarray(smooth, dtype=int) + random.integers(-20, 21, (size, size, 3)), 0, 255).astype(numpy.uint8)
        yield Image.fromarray(noise)
        yield Image.fromarray((noise // 4 + 90).astype(numpy.uint8))  # little contrast
        yield Image.fromarray(noise).convert("L")
    yield Image.new("RGB", (32, 32), (9, 200, 77))


def ours(driver, image, op, magnitude):
    channels = len(image.getbands())
    done = subprocess.run([driver, str(image.width), str(channels), str(op), repr(magnitude)], input=image.tobytes(), stdout=subprocess.PIPE, check=True)
    return done.stdout


def far(a, b):
    a, b = (numpy.frombuffer(x, dtype=numpy.uint8).astype(int) for x in (a, b))
    return int((a != b).sum()), int(abs(a - b).max())


def main(driver, _):
    images = list(pictures())
    spaces = [RandAugment()._augmentation_space(31, (64, 64)), TrivialAugmentWide()._augmentation_space(31)]
    print(f"1..{len(NAMES) + 1}", flush=True)
    for op, name in enumerate(NAMES):
        strengths = set()
        for space in spaces:
            values, signed = space[name]
            for value in values.flatten().tolist()[::2]:
                strengths |= {value, -value} if signed else {value}
        worst = (0, 0)
        for image in images:
            for strength in strengths:
                want = _apply_op(image, name, float(strength), InterpolationMode.NEAREST, None)
                worst = max(worst, far(ours(driver, image, op, float(strength)), want.tobytes()))
        tap(op + 1, worst == (0, 0), f"{name}, {len(strengths)} strengths on {len(images)} pictures: {worst[0]} bytes differ, by {worst[1]} at most")
    worst = (0, 0)
    for image in images:
        for turn in (-0.5, -0.31, -0.1, 0.0, 0.05, 0.25, 0.5):
            worst = max(worst, far(ours(driver, image, len(NAMES), turn), F.adjust_hue(image, turn).tobytes()))
    tap(len(NAMES) + 1, worst == (0, 0), f"hue: {worst[0]} bytes differ, by {worst[1]} at most")


main(*sys.argv[1:])
