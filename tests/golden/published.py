"""The PyTorch side of tests/golden/published.sh: published.py WORKER FOLDER. Prints TAP."""
import csv
import json
import os
import re
import subprocess
import sys

import numpy
import torch
import torchvision
from PIL import Image
from torchvision.transforms._presets import ImageClassification

from compare import tap

IMAGES, CLASSES = 12, 1000

# Stands for the package safetensors, which Debian 12 does not have: by the description of its format.
SAFETENSORS = '''
import json, struct
def save_file(tensors, path):
    header, data = {}, b""
    for name, t in tensors.items():
        raw = t.contiguous().numpy().tobytes()
        header[name] = {"dtype": {"torch.float32": "F32", "torch.int64": "I64"}[str(t.dtype)], "shape": list(t.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    header = json.dumps(header).encode()
    header += b" " * (-len(header) % 8)
    open(path, "wb").write(struct.pack("<Q", len(header)) + header + data)
'''
# Stands for the download.
DOWNLOAD = '''
import torch, torchvision.models._api as api
api.load_state_dict_from_url = lambda url, **_: torch.load("published.pth")
'''


def photographs(folder):
    """Smooth colours with some noise; the shorter side is that of the evaluation, so that nothing is resized."""
    random = numpy.random.default_rng(1)
    paths = []
    for i in range(IMAGES):
        small = Image.fromarray(random.integers(0, 256, (4 + i % 3, 5, 3), dtype=numpy.uint8))
        pixels = numpy.asarray(small.resize((256, 256 + 12 * i), Image.BICUBIC), dtype=int)
        noisy = numpy.clip(pixels + random.integers(-9, 10, pixels.shape), 0, 255).astype(numpy.uint8)
        paths.append(os.path.join(folder, f"{i}.jpg"))
        Image.fromarray(noisy).save(paths[-1], quality=95)
    return paths


def published(batch):
    """A network whose answers differ from image to image, as its statistics are those of the images; branches that add little, as a random
    network amplifies the rounding of pixels otherwise."""
    torch.manual_seed(3)
    model = torchvision.models.resnet50()
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = 1
        if isinstance(module, torchvision.models.resnet.Bottleneck):
            torch.nn.init.constant_(module.bn3.weight, 0.1)
    with torch.no_grad():
        model.train()(batch)
        model.fc.weight *= 10
    return model.eval()


def prepare(paths, resize):
    return torch.stack([ImageClassification(crop_size=224, resize_size=resize)(Image.open(path)) for path in paths])


def evaluate(worker, work, resize):
    job = {"mode": "eval", "model": {"arch": "resnet50", "classes": CLASSES, "init": os.path.join(work, "resnet50.safetensors")},
           "data": {"eval": os.path.join(work, "eval"), "preprocess": "torchvision"}, "cluster": {"workers_per_node": 1, "threads_per_worker": 1},
           "eval": {"batch": 6, "predictions": True, **resize}}
    run = os.path.join(work, f"run{len(resize)}")
    with open(run + ".json", "w") as f:
        json.dump(job, f)
    subprocess.run([worker, "--job", run + ".json", "--run-dir", run], check=True, stdout=subprocess.DEVNULL)
    with open(os.path.join(run, "result.json")) as f:
        result = json.load(f)
    (name,) = [os.path.join(at, n) for at, _, names in os.walk(run) for n in names if n == "predictions.csv"]
    with open(name) as f:
        return result, list(csv.DictReader(f))


def main(worker, work):
    print("1..8", flush=True)
    with open(os.path.join(os.environ["top_srcdir"], "doc/fine-tuning.md")) as f:
        (command,) = re.findall(r"^    (python3 -c .*save_file.*)$", f.read(), re.M)
    photos = photographs(work)
    model = published(prepare(photos, 256))
    for folder, name, text in (("safetensors", "torch.py", SAFETENSORS), (".", "sitecustomize.py", DOWNLOAD)):
        os.makedirs(os.path.join(work, folder), exist_ok=True)
        with open(os.path.join(work, folder, name), "w") as f:
            f.write(text)
    torch.save(model.state_dict(), os.path.join(work, "published.pth"))
    subprocess.run(command.replace("python3", sys.executable, 1), shell=True, cwd=work, check=True, env={**os.environ, "PYTHONPATH": work})
    with torch.no_grad():
        answers = model(prepare(photos, 256)).softmax(1).max(1)
    for i in range(CLASSES):
        os.makedirs(os.path.join(work, "eval", f"{i:03}"))
    # the even ones are of the class that torchvision finds, the odd ones are not
    paths = [os.path.join(work, "eval", f"{(int(c) + i % 2) % CLASSES:03}", f"{i}.jpg") for i, c in enumerate(answers.indices)]
    for old, new in zip(photos, paths):
        os.rename(old, new)
    labels = torch.tensor([int(path.split("/")[-2]) for path in paths])
    number = 0
    for words, resize, most in ({}, 256, 0.0001), ({"resize": 232}, 232, 0.05):
        with torch.no_grad():
            logits = model(prepare(paths, resize))
        p, found = logits.softmax(1).max(1)
        loss, top1 = torch.nn.functional.cross_entropy(logits, labels).item(), (found == labels).float().mean().item()
        result, rows = evaluate(worker, work, words)
        rows.sort(key=lambda row: int(row["file"].split(".")[0]))
        far = max(abs(float(row["p"]) - x) / x for row, x in zip(rows, p.tolist()))
        same = [int(row["top1"]) for row in rows] == found.tolist()
        for good, what in (
            (len(rows) == IMAGES and same and len(set(found.tolist())) > 1, f"the classes are torchvision's ({len(set(found.tolist()))} different ones)"),
            (far < most, f"probabilities within {100 * most:g} % of torchvision's (largest difference {100 * far:.2g} %)"),
            (abs(result["top1"] - top1) < 1e-6 and 0.2 < top1 < 0.8, f"top-1 is {top1:.3f}, ours {result['top1']:.3f}"),
            (abs(result["eval_loss"] - loss) < most * loss, f"the loss is {loss:.5f}, ours {result['eval_loss']:.5f}"),
        ):
            number += 1
            tap(number, good, f"shorter side {resize}: {what}")


main(*sys.argv[1:])
