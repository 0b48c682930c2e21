"""Compares tests/bin/preprocess with torchvision, Pillow and numpy; prints TAP. See preprocess.sh."""
import math
import subprocess
import sys

import numpy as np
import torch
from PIL import Image
from torchvision import transforms
from torchvision.transforms import functional

program, work = sys.argv[1], sys.argv[2]
MEAN = np.array([0.485, 0.456, 0.406])
STD = np.array([0.229, 0.224, 0.225])
MLPERF_MEAN = np.array([123.68, 116.78, 103.94])
number = 0
failed = False


def ours(path, family, size, which):
    """The crop (x, y, width, height, flip) and the image in [0, 1], (size, size, 3)."""
    out = subprocess.run([program, path, family, str(size), str(which)], check=True, capture_output=True).stdout
    line, raw = out.split(b"\n", 1)
    image = np.frombuffer(raw, np.float32).reshape(size, size, 3)
    if family == "mlperf":
        return [int(word) for word in line.split()], (image + MLPERF_MEAN) / 255
    return [int(word) for word in line.split()], image * STD + MEAN


def check(what, image, reference):
    global number, failed
    number += 1
    difference = float(np.abs(image - reference).mean()) * 255
    good = image.shape == reference.shape and difference < 0.5
    failed |= not good
    print(f"{'ok' if good else 'not ok'} {number} - {what}: mean difference {difference:.3f}/255")


def to_array(image):
    return functional.to_tensor(image).numpy().transpose(1, 2, 0)


def torchvision_train(image, plan, size):
    x, y, width, height, flip = plan
    image = functional.resized_crop(image, y, x, height, width, [size, size])
    return to_array(functional.hflip(image) if flip else image)


def torchvision_eval(image, size):
    return to_array(transforms.Compose(
        [transforms.Resize(round(size * 256 / 224)), transforms.CenterCrop(size)])(image))


def cubic(x):
    a, x = -0.75, abs(x)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0


def bicubic_matrix(inputs, size):
    """TF 1's resize_bicubic along one axis: (size, inputs), edge pixels repeated."""
    matrix = np.zeros((size, inputs))
    for i in range(size):
        at = i * inputs / size
        for k in range(math.floor(at) - 1, math.floor(at) + 3):
            matrix[i, min(max(k, 0), inputs - 1)] += cubic(at - k)
    return matrix


def tpu(image, plan, size):
    x, y, width, height, flip = plan
    pixels = np.asarray(image)[y:y + height, x:x + width] / 255
    rows, columns = bicubic_matrix(height, size), bicubic_matrix(width, size)
    out = np.einsum("yj,jic,xi->yxc", rows, pixels, columns, optimize=True)
    return out[:, ::-1] if flip else out


def tpu_eval_plan(width, height):
    side = max(1, int(0.875 * min(width, height)))
    return [(width - side + 1) // 2, (height - side + 1) // 2, side, side, 0]


def bilinear_matrix(inputs, size):
    """TF 1's resize_bilinear along one axis."""
    matrix = np.zeros((size, inputs))
    for i in range(size):
        at = i * inputs / size
        low = math.floor(at)
        matrix[i, low] += 1 - (at - low)
        matrix[i, min(low + 1, inputs - 1)] += at - low
    return matrix


def mlperf_train(image, plan, size):
    x, y, width, height, flip = plan
    pixels = np.asarray(image)[y:y + height, x:x + width] / 255
    pixels = pixels[:, ::-1] if flip else pixels
    return np.einsum("yj,jic,xi->yxc", bilinear_matrix(height, size), pixels, bilinear_matrix(width, size), optimize=True)


def mlperf_eval(image, size):
    scale = np.float32(round(size * 256 / 224)) / np.float32(min(image.size))
    width, height = (int(np.float32(side) * scale) for side in image.size)
    rows, columns = bilinear_matrix(image.height, height), bilinear_matrix(image.width, width)
    left, top = (width - size) // 2, (height - size) // 2
    return np.einsum("yj,jic,xi->yxc", rows[top:top + size], np.asarray(image) / 255, columns[left:left + size], optimize=True)


def picture(width, height, mode):
    """Shapes, gradients and noise, from a fixed seed."""
    random = np.random.default_rng(width * 10000 + height)
    y, x = np.mgrid[0:height, 0:width]
    channels = {"L": 1, "RGB": 3, "CMYK": 4}[mode]
    planes = []
    for c in range(channels):
        plane = 128 + 60 * np.sin(x / (9 + c)) * np.cos(y / (13 - c)) + 50 * ((x // 16 + y // 24) % 2)
        planes.append(plane + random.normal(0, 12, (height, width)))
    array = np.clip(np.stack(planes, -1), 0, 255).astype(np.uint8)
    return Image.fromarray(array[:, :, 0] if channels == 1 else array, mode)


def main():
    cases = [(500, 375, "RGB", 224), (375, 500, "RGB", 224), (28, 28, "L", 32), (64, 48, "RGB", 96),
             (1200, 900, "RGB", 160), (10000, 70, "RGB", 64), (301, 200, "CMYK", 64), (256, 256, "L", 224), (1, 1, "RGB", 32), (3, 200, "RGB", 32),
             (1601, 1203, "RGB", 160), (901, 1300, "L", 64), (1210, 907, "CMYK", 64)]
    for width, height, mode, size in cases:
        path = f"{work}/{width}x{height}-{mode}.jpg"
        picture(width, height, mode).save(path, quality=92)
        image = Image.open(path).convert("RGB")
        name = f"{width}x{height} {mode} to {size}"
        check(f"torchvision evaluation, {name}", ours(path, "torchvision", size, "eval")[1], torchvision_eval(image, size))
        plan, out = ours(path, "tpu", size, "eval")
        if plan != tpu_eval_plan(width, height):
            out = np.zeros((0, 0, 3))
        check(f"tpu evaluation, {name}", out, tpu(image, tpu_eval_plan(width, height), size))
        check(f"mlperf evaluation, {name}", ours(path, "mlperf", size, "eval")[1], mlperf_eval(image, size))
        for which in range(3):
            plan, out = ours(path, "mlperf", size, which)
            check(f"mlperf training crop {which}, {name}", out, mlperf_train(image, plan, size))
            plan, out = ours(path, "torchvision", size, which)
            check(f"torchvision training crop {which}, {name}", out, torchvision_train(image, plan, size))
            plan, out = ours(path, "tpu", size, which)
            check(f"tpu training crop {which}, {name}", out, tpu(image, plan, size))
    print(f"1..{number}")
    return failed


torch.set_num_threads(1)
sys.exit(main())
