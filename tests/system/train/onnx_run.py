"""onnx_run.py MODEL IMAGES PREDICTIONS: calculates an ONNX model node by node with PyTorch, on JPEGs in class folders, and compares the answers
with the predictions.csv of an evaluation."""
import csv
import os
import sys

import numpy
import onnx
import onnx.numpy_helper
import torch
from PIL import Image
from torch.nn import functional as F

model_path, images, predictions = sys.argv[1:]
model = onnx.load(model_path)
onnx.checker.check_model(model, full_check=True)
facts = {p.key: p.value for p in model.metadata_props}
channels, height, width = (d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim[1:])
assert facts["image_size"] == str(height) == str(width), facts


def read(path):
    image = Image.open(path).convert("RGB" if channels == 3 else "L")
    assert facts["resize"] == str(height), facts  # the shorter side; the pictures are square
    image = image.resize((width, height), Image.BILINEAR)
    x = torch.tensor(numpy.asarray(image), dtype=torch.float32).reshape(height, width, channels).permute(2, 0, 1) / 255
    if facts["preprocess"] == "torchvision":
        x = (x - torch.tensor([.485, .456, .406])[:, None, None]) / torch.tensor([.229, .224, .225])[:, None, None]
    return x


def symmetric(pads):
    assert pads[:2] == pads[2:]
    return pads[:2]


def run(node, a, x, *more):
    if node.op_type == "Conv":
        return F.conv2d(x, more[0], more[1] if len(more) > 1 else None, a["strides"], symmetric(a["pads"]), 1, a["group"])
    if node.op_type == "BatchNormalization":
        weight, bias, mean, var = more
        return F.batch_norm(x, mean, var, weight, bias, False, 0, a["epsilon"])
    if node.op_type == "MaxPool":
        return F.max_pool2d(x, a["kernel_shape"], a["strides"], symmetric(a["pads"]))
    if node.op_type == "Gemm":
        assert a["transB"] == 1
        return F.linear(x, *more)
    return {"Relu": F.relu, "Add": torch.add, "GlobalAveragePool": lambda v: v.mean((2, 3), True), "Flatten": lambda v: v.flatten(1)}[node.op_type](x, *more)


def answer(batch):
    values = {w.name: torch.tensor(onnx.numpy_helper.to_array(w)) for w in model.graph.initializer}
    values["input"] = batch
    for node in model.graph.node:
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        values[node.output[0]] = run(node, attributes, *(values[name] for name in node.input))
    return values["output"].softmax(1)


with open(predictions) as f:
    rows = list(csv.DictReader(f))
paths = {name: os.path.join(at, name) for at, _, names in os.walk(images) for name in names}
p = answer(torch.stack([read(paths[os.path.basename(row["file"])]) for row in rows]))
best, classes = p.max(1)
far = max(abs(float(row["p"]) - b) for row, b in zip(rows, best.tolist()))
assert classes.tolist() == [int(row["top1"]) for row in rows], (classes.tolist(), rows)
assert far < 2e-4, far
print(f"{len(rows)} images: the same classes, {len(set(classes.tolist()))} different ones, probabilities within {far:.1g}")
