"""PyTorch's side of tests/bench/run: the same steps on the same cores, a JSON object a request.

peer.py train  ARCH IMAGE_SIZE BATCH LAYOUT THREADS     forward, loss, backward, SGD with momentum and weight decay
peer.py eval   ARCH IMAGE_SIZE BATCH LAYOUT THREADS     forward without gradients
peer.py train-bf16, eval-bf16                           the same with bf16 autocast
peer.py loader FOLDER IMAGE_SIZE                        decode, random resized crop, flip, normalise: one core
peer.py decode FOLDER IMAGE_SIZE                        the same from memory, in seconds of the processor
peer.py versions

All but versions wait for requests: each line of standard input is a number of steps (of passes over the folder)
and is answered by {"seconds": [one a step], "images": of a step, "memory_bytes": resident at most}. LAYOUT is contiguous
or channels_last.
"""
import io
import json
import os
import pathlib
import re
import resource
import sys
import time

import torch
import torchvision
from PIL import Image


def network(arch):
    if arch == "resnext101_32x4d":  # the paper's, which torchvision has no function for
        resnet = torchvision.models.resnet
        return resnet.ResNet(resnet.Bottleneck, [3, 4, 23, 3], groups=32, width_per_group=4)
    return getattr(torchvision.models, arch)()


def training(arch, size, batch, layout, bf16):
    model = network(arch).train().to(memory_format=layout)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9, weight_decay=5e-5)
    x = torch.randn(batch, 3, size, size).to(memory_format=layout)
    y = torch.arange(batch) % 1000

    def step():
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            scores = model(x)
        torch.nn.functional.cross_entropy(scores.float(), y).backward()
        optimizer.step()

    return step, batch


def evaluation(arch, size, batch, layout, bf16):
    model = network(arch).eval().to(memory_format=layout)
    x = torch.randn(batch, 3, size, size).to(memory_format=layout)

    def step():
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            model(x)

    return step, batch


def training_transforms(size):
    transforms = torchvision.transforms
    return transforms.Compose([
        transforms.RandomResizedCrop(size),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    ])


def loading(folder, size):
    images = torchvision.datasets.ImageFolder(folder, training_transforms(size))

    def step():
        for i in range(len(images)):
            images[i]

    return step, len(images)


def decoding(folder, size):
    transform = training_transforms(size)
    files = [path.read_bytes() for path in sorted(pathlib.Path(folder).rglob("*.jpg"))]

    def step():
        for data in files:
            transform(Image.open(io.BytesIO(data)).convert("RGB"))

    return step, len(files)


def versions():
    found = re.search(r"(?:MKL-DNN|oneDNN) v?([0-9.]+)", torch.__config__.show())
    return {"torch": torch.__version__, "torchvision": torchvision.__version__,
            "onednn": f"oneDNN {found.group(1)}" if found else "unknown oneDNN"}


def serve(step, images, clock=time.monotonic):
    for line in sys.stdin:
        seconds = []
        for _ in range(int(line)):
            start = clock()
            step()
            seconds.append(clock() - start)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps({"seconds": seconds, "images": images, "memory_bytes": memory}), flush=True)


def main(what, *args):
    if what == "versions":
        print(json.dumps(versions()))
        return
    torch.set_flush_denormal(True)
    if what in ("loader", "decode"):
        torch.set_num_threads(1)
        serve(*{"loader": loading, "decode": decoding}[what](args[0], int(args[1])),
              time.thread_time if what == "decode" else time.monotonic)
        return
    arch, size, batch, layout, threads = args
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:int(threads)])
    torch.set_num_threads(int(threads))
    layout = torch.channels_last if layout == "channels_last" else torch.contiguous_format
    what, _, precision = what.partition("-")
    serve(*{"train": training, "eval": evaluation}[what](arch, int(size), int(batch), layout, precision == "bf16"))


main(*sys.argv[1:])
