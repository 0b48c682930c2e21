"""PyTorch's side of tests/bench/run: the same steps on the same cores, a JSON object a request.

peer.py train  ARCH IMAGE_SIZE BATCH LAYOUT THREADS     forward, loss, backward, SGD with momentum and weight decay
peer.py eval   ARCH IMAGE_SIZE BATCH LAYOUT THREADS     forward without gradients
peer.py loader FOLDER IMAGE_SIZE                        decode, random resized crop, flip, normalise: one core
peer.py images FOLDER COUNT                             makes JPEGs of 500x375 for the loaders
peer.py versions

train, eval and loader wait for requests: each line of standard input is a number of steps (of passes over the folder)
and is answered by {"seconds": [one a step], "images": of a step, "memory_bytes": resident at most}. LAYOUT is contiguous
or channels_last.
"""
import json
import os
import re
import resource
import sys
import time

import torch
import torchvision


def network(arch):
    if arch == "resnext101_32x4d":  # the paper's, which torchvision has no function for
        resnet = torchvision.models.resnet
        return resnet.ResNet(resnet.Bottleneck, [3, 4, 23, 3], groups=32, width_per_group=4)
    return getattr(torchvision.models, arch)()


def training(arch, size, batch, layout):
    model = network(arch).train().to(memory_format=layout)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9, weight_decay=5e-5)
    x = torch.randn(batch, 3, size, size).to(memory_format=layout)
    y = torch.arange(batch) % 1000

    def step():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step, batch


def evaluation(arch, size, batch, layout):
    model = network(arch).eval().to(memory_format=layout)
    x = torch.randn(batch, 3, size, size).to(memory_format=layout)

    def step():
        with torch.inference_mode():
            model(x)

    return step, batch


def loading(folder, size):
    transforms = torchvision.transforms
    images = torchvision.datasets.ImageFolder(folder, transforms.Compose([
        transforms.RandomResizedCrop(size),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    ]))

    def step():
        for i in range(len(images)):
            images[i]

    return step, len(images)


def make_images(folder, count):
    """Smooth colours with a little noise: files of the size of photographs."""
    os.makedirs(folder)
    torch.manual_seed(1)
    for i in range(count):
        smooth = torch.nn.functional.interpolate(torch.rand(1, 3, 12, 16), (375, 500), mode="bicubic")[0]
        image = (smooth + 0.03 * torch.randn_like(smooth)).clamp(0, 1)
        torchvision.transforms.functional.to_pil_image(image).save(f"{folder}/{i}.jpg", quality=90)


def versions():
    found = re.search(r"(?:MKL-DNN|oneDNN) v?([0-9.]+)", torch.__config__.show())
    return {"torch": torch.__version__, "torchvision": torchvision.__version__,
            "onednn": f"oneDNN {found.group(1)}" if found else "unknown oneDNN"}


def serve(step, images):
    for line in sys.stdin:
        seconds = []
        for _ in range(int(line)):
            start = time.monotonic()
            step()
            seconds.append(time.monotonic() - start)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps({"seconds": seconds, "images": images, "memory_bytes": memory}), flush=True)


def main(what, *args):
    if what == "versions":
        print(json.dumps(versions()))
        return
    if what == "images":
        make_images(args[0], int(args[1]))
        return
    torch.set_flush_denormal(True)
    if what == "loader":
        torch.set_num_threads(1)
        serve(*loading(args[0], int(args[1])))
        return
    arch, size, batch, layout, threads = args
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:int(threads)])
    torch.set_num_threads(int(threads))
    layout = torch.channels_last if layout == "channels_last" else torch.contiguous_format
    serve(*{"train": training, "eval": evaluation}[what](arch, int(size), int(batch), layout))


main(*sys.argv[1:])
