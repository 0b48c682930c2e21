"""PyTorch's side of tests/bench/run: the same steps on the same cores, a JSON object a request.

peer.py train  ARCH IMAGE_SIZE BATCH MODE THREADS       forward, loss, backward, SGD with momentum and weight decay
peer.py eval   ARCH IMAGE_SIZE BATCH MODE THREADS       forward without gradients
peer.py train-bf16, eval-bf16                           the same with bf16 autocast
peer.py loader FOLDER IMAGE_SIZE                        decode, random resized crop, flip, normalise: one core
peer.py decode FOLDER IMAGE_SIZE                        the same from memory, in seconds of the processor
peer.py versions                                        of what is measured, and whether torch.compile works and with which vectors

All but versions wait for requests: each line of standard input is a number of steps (of passes over the folder)
and is answered by {"seconds": [one a step], "images": of a step, "memory_bytes": resident at most}. MODE is contiguous or
channels_last, the layout of the tensors, and with -compiled behind it the network goes through torch.compile.
"""
import io
import json
import os
import pathlib
import re
import resource
import sys
import time

SLEEF = "libsleef.so.3"
if any(word.endswith("-compiled") or word == "versions" for word in sys.argv[1:]):
    # What torch.compile builds with vectors calls SLEEF, but Debian's linker leaves out a library that is named before it is used: then all is
    # built without vectors, and nothing says so.
    if SLEEF not in os.environ.get("LD_PRELOAD", ""):
        os.environ.update(LD_PRELOAD=SLEEF, TORCHINDUCTOR_AUTOGRAD_CACHE="1")
        os.execv(sys.executable, [sys.executable, *sys.argv])

import torch
import torchvision
from PIL import Image


def network(arch):
    if arch == "resnext101_32x4d":  # the paper's, which torchvision has no function for
        resnet = torchvision.models.resnet
        return resnet.ResNet(resnet.Bottleneck, [3, 4, 23, 3], groups=32, width_per_group=4)
    return getattr(torchvision.models, arch)()


def sgd(parameters):
    options = {"lr": 0.001, "momentum": 0.9, "weight_decay": 5e-5}
    try:
        return torch.optim.SGD(parameters, **options, fused=True)  # one pass over the parameters, from 2.4 on
    except TypeError:
        return torch.optim.SGD(parameters, **options)


def training(arch, size, batch, layout, bf16, compiled):
    model = network(arch).train().to(memory_format=layout)
    optimizer = sgd(model.parameters())
    if compiled:
        model = torch.compile(model)
    x = torch.randn(batch, 3, size, size).to(memory_format=layout)
    y = torch.arange(batch) % 1000

    def step():
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            scores = model(x)
        torch.nn.functional.cross_entropy(scores.float(), y).backward()
        optimizer.step()

    return step, batch


def evaluation(arch, size, batch, layout, bf16, compiled):
    model = network(arch).eval().to(memory_format=layout)
    if compiled:
        import torch._inductor.config
        torch._inductor.config.freezing = True  # the weights are constants: batch norm goes into the convolutions
        model = torch.compile(model)
    x = torch.randn(batch, 3, size, size).to(memory_format=layout)

    def step():
        with torch.no_grad() if compiled else torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=bf16):
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


def compiling():
    """The vectors of what torch.compile makes, or why it makes nothing; None before PyTorch 2."""
    if not hasattr(torch, "compile"):
        return None
    try:
        torch.compile(lambda x: x.sin() + 1)(torch.ones(64))
        from torch._inductor.cpu_vec_isa import pick_vec_isa
        return f"torch.compile {pick_vec_isa()}"
    except Exception as e:  # of any kind: a compiler, a header or a module is missing
        words = [line for line in str(e).splitlines() if "rror" in line or "No " in line] or [repr(e)]
        return f"torch.compile fails: {words[-1].strip()}"


def versions():
    found = re.search(r"(?:MKL-DNN|oneDNN) v?([0-9.]+)", torch.__config__.show())
    return {"torch": torch.__version__, "torchvision": torchvision.__version__,
            "onednn": f"oneDNN {found.group(1)}" if found else "unknown oneDNN", "compile": compiling()}


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
    arch, size, batch, mode, threads = args
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:int(threads)])
    torch.set_num_threads(int(threads))
    layout, _, compiled = mode.partition("-")
    layout = {"channels_last": torch.channels_last, "contiguous": torch.contiguous_format}[layout]
    what, _, precision = what.partition("-")
    serve(*{"train": training, "eval": evaluation}[what](arch, int(size), int(batch), layout, precision == "bf16", bool(compiled)))


main(*sys.argv[1:])
